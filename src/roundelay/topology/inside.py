"""The links inside nodes, and the ways over them, on arrays of (node, card).

A way is a list of rows, each an array of link ids, -1 where a message has no link there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..errors import RoundelayError
from .links import Links, Register, Rows
from .parts import Inside, Ints, Nics


class Node(ABC):
    """The inside of a cluster's nodes, which are equal.

    Links of their own lead from cards to cards, and PCIe to the network: nothing that counts with
    GPUDirect, else the card's own PCIe link to the host's memory.
    """

    switch = True
    """Whether something stands above the cards: a switch, or the host."""

    def __init__(
        self, inside: Inside, nics: Nics, shape: tuple[int, int], register: Register
    ) -> None:
        self.inside, self.shape = inside, shape
        self.add_links(register)
        self._pcie: tuple[Links, ...] = ()
        if nics.count and not nics.gpudirect and inside.kind != "bus":
            self._pcie = register.both_ways(
                "card PCIe", "pcie", nics.card_pcie, shape, "PCIe of card {1} of node {0}"
            )

    @abstractmethod
    def add_links(self, register: Register) -> None:
        """Make the links between cards."""

    @abstractmethod
    def across(self, node: Ints, i: Ints, j: Ints) -> Rows:
        """From card i to another card j."""

    @abstractmethod
    def bisection(self) -> float:
        """Rate one way from one half of a node's cards to the other."""

    @abstractmethod
    def to_switch(self, node: Ints, i: Ints) -> Rows:
        """From card i to what stands above."""

    @abstractmethod
    def from_switch(self, node: Ints, i: Ints) -> Rows:
        """From what stands above to card i."""

    def to_nic(self, node: Ints, i: Ints, nic: Ints) -> Rows:
        """From card i to its network card."""
        return [links.at(node, i) for links in self._pcie[:1]]

    def from_nic(self, node: Ints, i: Ints, nic: Ints) -> Rows:
        """From its network card to card i."""
        return [links.at(node, i) for links in self._pcie[1:]]


class Switched(Node):
    """All cards on one switch."""

    def add_links(self, register: Register) -> None:
        """A card's links work as one."""
        self.out, self.into = register.both_ways(
            "card", self.inside.medium, self.inside.rate, self.shape, "card {1} of node {0}",
            cables=self.inside.links,
        )  # fmt: skip

    def across(self, node: Ints, i: Ints, j: Ints) -> Rows:
        """Out and in."""
        return [self.out.at(node, i), self.into.at(node, j)]

    def bisection(self) -> float:
        """What half of the cards send."""
        return self.shape[1] // 2 * self.inside.rate

    def to_switch(self, node: Ints, i: Ints) -> Rows:
        """Out."""
        return [self.out.at(node, i)]

    def from_switch(self, node: Ints, i: Ints) -> Rows:
        """In."""
        return [self.into.at(node, i)]


class Mesh(Node):
    """Direct links between every two cards: each pair has its share of a card's links."""

    switch = False

    def add_links(self, register: Register) -> None:
        """A link each way between every two cards, of as many whole links as there are for each."""
        inside, (nodes, cards) = self.inside, self.shape
        share = inside.links // max(cards - 1, 1)
        if not share:
            raise RoundelayError(
                f"inside.links: {inside.links}; a mesh of {cards} cards needs at least {cards - 1}"
                ", one to each other card, or some cards are not connected"
            )
        self.direct = register.add(
            Links("card to card", inside.medium, inside.rate * share / inside.links,
                  (nodes, cards, cards - 1), "card {1} to card {2} of node {0}", pairs=True,
                  cables=share)
        )  # fmt: skip

    def across(self, node: Ints, i: Ints, j: Ints) -> Rows:
        """One link."""
        return [self.direct.at(node, i, j)]

    def bisection(self) -> float:
        """Every pair with one card in each half."""
        cards = self.shape[1]
        return cards // 2 * -(-cards // 2) * self.direct.rate

    def to_switch(self, node: Ints, i: Ints) -> Rows:
        """There is none."""
        raise RoundelayError("cards in a mesh have no switch above them; "
                             "choose an algorithm without helpers")  # fmt: skip

    from_switch = to_switch


class Bus(Node):
    """PCIe or the host's memory: cards, what those of a socket share, and links between sockets.

    Where `medium` is "memory", data pass through the host's memory also between two cards of one
    socket; where it is "pcie", they need what the socket shares only to leave it. A network card
    is on the socket of the first card that uses it.
    """

    def __init__(
        self, inside: Inside, nics: Nics, shape: tuple[int, int], register: Register, sockets: int
    ) -> None:
        self.sockets = sockets
        self.bounce = inside.medium == "memory"
        self.nic_bounce = self.bounce or not nics.gpudirect
        self.ports = min(nics.count, shape[1])
        super().__init__(inside, nics, shape, register)

    def add_links(self, register: Register) -> None:
        """Links of cards, of sockets, and between sockets."""
        inside, (nodes, _), sockets = self.inside, self.shape, self.sockets
        self.out, self.into = register.both_ways(
            "card", inside.medium, inside.rate, self.shape, "card {1} of node {0}"
        )
        self.socket: tuple[Links, ...] = ()
        if inside.uplink is not None:
            self.socket = register.both_ways(
                "socket", inside.medium, inside.uplink, (nodes, sockets), "socket {1} of node {0}"
            )
        if sockets == 1:
            return
        if inside.between_sockets is None:
            raise RoundelayError(
                f"inside.between_sockets is missing: without it the {sockets} sockets of a node "
                "are not connected; give its rate, or say sockets = 1"
            )
        self.between = register.add(
            Links("between sockets", inside.medium, inside.between_sockets,
                  (nodes, sockets, sockets - 1), "socket {1} to socket {2} of node {0}",
                  pairs=True)
        )  # fmt: skip

    def across(self, node: Ints, i: Ints, j: Ints) -> Rows:
        """Out, from socket to socket if need be, and in."""
        through = self._through(node, self._socket(i), self._socket(j), self.bounce)
        return [self.out.at(node, i), *through, self.into.at(node, j)]

    def bisection(self) -> float:
        """Between halves of the sockets; with one socket, what half of the cards send."""
        half = self.sockets // 2 * -(-self.sockets // 2)
        cards = self.shape[1] // 2 * self.inside.rate
        through = self.inside.uplink or np.inf
        if not half:
            return min(cards, through) if self.bounce else cards
        between = self.inside.between_sockets or np.inf
        return min(cards, half * between, self.sockets // 2 * through)

    def to_nic(self, node: Ints, i: Ints, nic: Ints) -> Rows:
        """Out, and to the network card's socket."""
        through = self._through(node, self._socket(i), self._nic_socket(nic), self.nic_bounce)
        return [self.out.at(node, i), *through]

    def from_nic(self, node: Ints, i: Ints, nic: Ints) -> Rows:
        """From the network card's socket, and in."""
        through = self._through(node, self._nic_socket(nic), self._socket(i), self.nic_bounce)
        return [*through, self.into.at(node, i)]

    def to_switch(self, node: Ints, i: Ints) -> Rows:
        """Up to the host."""
        up = [links.at(node, self._socket(i)) for links in self.socket[:1]]
        return [self.out.at(node, i), *up]

    def from_switch(self, node: Ints, i: Ints) -> Rows:
        """Down from the host."""
        return [
            *(down.at(node, self._socket(i)) for down in self.socket[1:]),
            self.into.at(node, i),
        ]

    def _socket(self, card: Ints) -> Ints:
        return card * self.sockets // self.shape[1]

    def _nic_socket(self, nic: Ints) -> Ints:
        first = -(-nic * self.shape[1] // self.ports)
        return self._socket(first)

    def _through(self, node: Ints, s: Ints, t: Ints, bounce: bool) -> Rows:
        """From socket s to socket t; within one only if data go through the host's memory."""
        rows: Rows = []
        used = np.broadcast_to(bounce, np.shape(s)) | (s != t)
        ends = [(links, socket) for links, socket in zip(self.socket, (s, t), strict=False)]
        rows = [np.where(used, links.at(node, socket), -1) for links, socket in ends]
        if self.sockets > 1:
            other = np.where(s != t, t, (s + 1) % self.sockets)
            rows.insert(1 if rows else 0, np.where(s != t, self.between.at(node, s, other), -1))
        return rows
