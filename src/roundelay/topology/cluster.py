"""A cluster: equal nodes with cards, the network between them, and the ways over it.

Positions number what messages go from and to: cards 0 to size - 1, node by node; then the switch of
each node; then the fabric's switches, level by level from the leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from .fabrics import Ends, Level, wiring
from .inside import Bus, Mesh, Node, Switched
from .links import Links, Path, Register
from .parts import MEDIA, Fabric, Floats, Inside, Nics, check_count, check_one_of, check_time
from .ways import Latencies, Ways

Generation: TypeAlias = Literal[
    "volta", "ampere", "ada", "hopper", "blackwell", "rubin", "cdna3", "cpu"
]
Processor: TypeAlias = Literal["intel", "amd", "arm", "other"]

LAUNCH_LIMIT: Final = 1.0
"""Seconds that a host's launching may take, at most."""
LINKS_LIMIT: Final = 2**27
"""Links of a cluster, at most: a gigabyte of rates."""


@dataclass(frozen=True)
class Cluster:
    """Equal nodes, their cards, network cards and switches.

    A node is one scale-up domain: a rack of 72 cards on one NVLink switch is one node.

    Attributes:
        name: short, such as "dgx-h100".
        title: in words.
        generation: of the cards.
        nodes: how many.
        cards: of a node.
        inside: how the cards of a node reach one another.
        nics: the network cards of a node.
        fabric: the switches between nodes.
        hosts: computers (trays) that share a node's cards; 18 in an NVL72 rack, else 1.
        sockets: processors of a host.
        processor: whose they are.
        launch: seconds that the host's launching puts under every collective, at least; 0: not
            known, or none.
        sources: where figures are from, by field, such as "inside.rate".
    """

    name: str
    title: str
    generation: Generation
    nodes: int
    cards: int
    inside: Inside
    nics: Nics
    fabric: Fabric
    hosts: int = 1
    sockets: int = 2
    processor: Processor = "intel"
    launch: float = 0.0
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def __post_init__(self) -> None:
        check_one_of("generation", self.generation, Generation)
        check_one_of("processor", self.processor, Processor)
        check_time("launch", self.launch, LAUNCH_LIMIT)
        for name in ("nodes", "cards", "hosts", "sockets"):
            check_count(name, getattr(self, name))
        check_count("nodes * cards", self.size)
        if self.cards % self.hosts:
            raise RoundelayError(f"hosts: {self.hosts}; expected a divisor of the "
                                 f"{self.cards} cards of a node")  # fmt: skip
        self._check_network()
        self._wired  # noqa: B018 (its parts say what does not fit)

    def _check_network(self) -> None:
        nics, fabric = self.nics, self.fabric
        if self.nodes > 1 and (fabric.kind == "none" or not nics.count):
            what = "fabric.kind is none" if nics.count else "nics.count is 0"
            raise RoundelayError(f"{what}, so the {self.nodes} nodes are not connected; describe "
                                 "[nics] and [fabric], or take one node")  # fmt: skip
        if not nics.count:
            if fabric.kind != "none":
                raise RoundelayError(f"fabric.kind: {fabric.kind}; expected none, for "
                                     "there are no network cards")  # fmt: skip
            return
        if nics.count > self.cards and nics.count % self.cards and fabric.kind != "torus":
            raise RoundelayError(f"nics.count: {nics.count}; expected at most {self.cards}, or a "
                                 f"multiple of it, as a node has {self.cards} cards")  # fmt: skip
        if self.ports % fabric.planes:
            raise RoundelayError(f"fabric.planes: {fabric.planes}; expected a divisor of the "
                                 f"{self.ports} network cards that cards have")  # fmt: skip
        given, lane = nics.rate * self.cables, nics.card_pcie
        if given > lane * (1 + 1e-9) and fabric.kind != "torus":
            what = "a network card" if self.cables == 1 else f"{self.cables} network cards"
            raise RoundelayError(
                f"nics.rate: {what} of a card would take {given / 1e9:.4g} GB/s one way through "
                f"PCIe of {lane / 1e9:.4g} GB/s (nics.card_pcie); give the slower as nics.rate, "
                "or the right slot as nics.card_pcie"
            )
        self._check_radix()

    def _check_radix(self) -> None:
        radix, fabric = self.fabric.radix, self.fabric
        if radix is None:
            return
        below = {
            "switch": self.nodes * self.nics.count // fabric.planes,
            "rail": (fabric.nodes_per_leaf or 0) * self.cables,
            "fat_tree": (fabric.nodes_per_leaf or 0) * self.nics.count // fabric.planes,
        }.get(fabric.kind, 0)
        if below > radix:
            raise RoundelayError(
                f"fabric.radix: {radix} ports, but {below} network cards on one switch; "
                "take fewer nodes on it, or a fabric of more levels"
            )

    def scaled(self, nodes: int) -> Cluster:
        """The same with so many nodes.

        Raises:
            RoundelayError: its fabric does not join so many.
        """
        return replace(self, nodes=nodes)

    @property
    def size(self) -> int:
        """Cards in all."""
        return self.nodes * self.cards

    @property
    def ports(self) -> int:
        """Ports of a node: its network cards, those of one card counted once."""
        return min(self.nics.count, self.cards)

    @property
    def cables(self) -> int:
        """Network cards of a port."""
        return max(1, self.nics.count // self.cards)

    @cached_property
    def _wired(self) -> tuple[Ways, tuple[Links, ...]]:
        register = Register()
        shape = self.nodes, self.cards
        node: Node
        if self.inside.kind == "bus":
            node = Bus(self.inside, self.nics, shape, register, self.sockets)
        else:
            kind = Switched if self.inside.kind == "switch" else Mesh
            node = kind(self.inside, self.nics, shape, register)
        ends = Ends(self.nodes, self.ports, self.cables, self.nics)
        fabric = wiring(self.fabric, ends, register)
        if register.count > LINKS_LIMIT:
            raise RoundelayError(f"{register.count:,} links; expected at most {LINKS_LIMIT:,}")
        latencies = Latencies(self.inside.latency, self.nics.latency, self.fabric.hop_latency)
        ways = Ways(node, fabric, (*shape, self.ports), self.fabric.planes, latencies)
        return ways, tuple(register.classes)

    @property
    def network_rate(self) -> float:
        """A card's part of the network cards of its node, bytes a second one way."""
        return self.nics.count * self.nics.rate / self.cards

    def bisection(self) -> float:
        """Bytes a second one way from one half of the cluster to the other.

        The halves are those that its parts make: nodes, or the cards of a single node.
        """
        node, fabric = self._wired[0].node, self._wired[0].fabric
        if self.nodes == 1:
            return node.bisection()
        return min(self.nodes // 2 * self.cards * self.network_rate, fabric.bisection())

    @property
    def links(self) -> tuple[Links, ...]:
        """The classes of links; ids count on from class to class in this order."""
        return self._wired[1]

    @property
    def levels(self) -> Sequence[Level]:
        """The levels of the fabric's switches, from the leaves up."""
        return self._wired[0].fabric.levels

    @cached_property
    def rates(self) -> Floats:
        """[link] bytes a second one way."""
        return np.repeat([c.rate for c in self.links], [c.count for c in self.links])

    @cached_property
    def media(self) -> npt.NDArray[np.int8]:
        """[link] index into `MEDIA`."""
        each = np.array([MEDIA.index(c.medium) for c in self.links], np.int8)
        return np.repeat(each, [c.count for c in self.links])

    def link_name(self, id: int) -> str:
        """The name of a link, such as "NIC 3 of node 12, out"."""
        for links in self.links:
            if 0 <= id - links.first < links.count:
                return links.describe(id)
        raise RoundelayError(f"link {id}; expected 0 to {len(self.rates) - 1}")

    def path(self, src: npt.ArrayLike, dst: npt.ArrayLike) -> Path:
        """The ways from positions to positions.

        Between two cards (a card's way to itself has no links), a card and a switch above it, or
        two switches of the fabric of which one stands above the other. Where planes differ, a
        message first goes to the card of its own node that has the other's index.

        Args:
            src: positions from, of one length with `dst`, or one for all.
            dst: positions to.

        Raises:
            RoundelayError: no such position, or no such way.
        """
        return self._wired[0].path(src, dst)

    def above(self, cards: npt.ArrayLike) -> int:
        """The position of the lowest switch that stands above all these cards.

        Raises:
            RoundelayError: there is none.
        """
        return self._wired[0].above(cards)

    def position_name(self, position: int) -> str:
        """What stands at a position, such as "card 3 of node 12"."""
        return self._wired[0].name(position)
