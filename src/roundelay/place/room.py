"""What is free in a cluster: whole cards by node, and slots of so many cards.

A file of free nodes has a line for some nodes: their numbers, the cards that are free (all where
none are named), and those that are sliced::

    0-15
    16    0-3
    20,22 0-7 sliced 4-7
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..topology import Cluster
from .job import Ints

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Room:
    """Free cards.

    Attributes:
        cluster: whose.
        free: [node, card] whether a whole card is free.
        sliced: [node, card] whether it is free, but only a part of one (MIG, time slices).
    """

    cluster: Cluster
    free: Bools
    sliced: Bools

    @classmethod
    def all_of(cls, cluster: Cluster) -> Room:
        """Everything is free."""
        shape = cluster.nodes, cluster.cards
        return cls(cluster, np.ones(shape, bool), np.zeros(shape, bool))

    @classmethod
    def of_nodes(cls, cluster: Cluster, nodes: Ints) -> Room:
        """Some whole nodes are free.

        Raises:
            RoundelayError: no such node.
        """
        room = cls.all_of(cluster)
        wrong = nodes[(nodes < 0) | (nodes >= cluster.nodes)]
        if wrong.size:
            raise RoundelayError(f"node {wrong[0]}; expected 0 to {cluster.nodes - 1} of "
                                 f"{cluster.name}")  # fmt: skip
        room.free[:] = False
        room.free[nodes] = True
        return room

    def usable(self, sliced: bool) -> Bools:
        """[node, card] free for a job that takes sliced cards, or not."""
        return self.free | self.sliced if sliced else self.free


class Slots(NamedTuple):
    """Places for blocks of ranks, by node.

    Attributes:
        node: [slot] in ascending order.
        cards: [slot, rank of a block] numbers of cards in the cluster.
    """

    node: Ints
    cards: Ints

    def room(self, nodes: int) -> Ints:
        """[node] how many slots."""
        return np.bincount(self.node, minlength=nodes)


def slots(free: Bools, block: int) -> Slots:
    """The slots of so many free cards of one node, the lowest cards first."""
    cards = free.shape[1]
    order = np.argsort(~free, axis=1, kind="stable")
    count = free.sum(axis=1) // block
    first = order[:, : cards // block * block].reshape(len(free), -1, block)
    node, slot = np.nonzero(np.arange(first.shape[1]) < count[:, None])
    return Slots(node, node[:, None] * cards + first[node, slot])


def read_room(text: str, cluster: Cluster, name: str) -> Room:
    """The room that a file of free nodes describes.

    Raises:
        RoundelayError: a line that is none, with its number, or a node or card that isn't there.
    """
    shape = cluster.nodes, cluster.cards
    room = Room(cluster, np.zeros(shape, bool), np.zeros(shape, bool))
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        try:
            _take(room, words)
        except RoundelayError as error:
            raise RoundelayError(f"{name}, line {number}: {error}") from None
    return room


def _take(room: Room, words: list[str]) -> None:
    if not words:
        return
    nodes = numbers(words[0], room.free.shape[0], "nodes")
    rest = words[1:]
    cards = np.arange(room.free.shape[1])
    if rest and rest[0] != "sliced":
        cards, rest = numbers(rest[0], len(cards), "cards"), rest[1:]
    parts = np.zeros(0, np.int64)
    if rest:
        if len(rest) != 2 or rest[0] != "sliced":
            raise RoundelayError(f"{' '.join(words)!r:.80}; expected NODES [CARDS] [sliced CARDS], "
                                 "such as 0-15 0-7 sliced 4-7")  # fmt: skip
        parts = numbers(rest[1], room.free.shape[1], "cards")
    room.free[np.ix_(nodes, np.setdiff1d(cards, parts))] = True
    room.sliced[np.ix_(nodes, np.intersect1d(cards, parts))] = True


def numbers(text: str, limit: int, what: str) -> Ints:
    """Numbers such as 0-3,7, below the limit.

    Raises:
        RoundelayError: they are none, or one is too large.
    """
    found = np.zeros(limit, bool)
    for part in text.split(","):
        first, dash, last = part.partition("-")
        ends = (first, last if dash else first)
        if not all(e.isascii() and e.isdigit() and len(e) < 10 for e in ends):
            raise RoundelayError(f"{what} {text!r:.80}; expected numbers such as 0-3,7")
        low, high = map(int, ends)
        if not low <= high < limit:
            raise RoundelayError(f"{what} {part}; expected numbers from 0 to {limit - 1}, the "
                                 "lower first")  # fmt: skip
        found[low : high + 1] = True
    return np.flatnonzero(found)
