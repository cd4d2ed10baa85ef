"""The nodes of a cluster at one moment: free cards, who has the others, what is out or slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...topology import Cluster
from ..job import Ints
from .rates import Failure
from .run import Run


class Nodes:
    """Cards by node; a job holds all of its cards or none."""

    def __init__(self, cluster: Cluster) -> None:
        """All are free."""
        self.cluster = cluster
        self.free: Ints = np.full(cluster.nodes, cluster.cards, np.int64)
        self.out: Ints = np.zeros(cluster.nodes, np.int64)
        self.held: list[dict[Run, int]] = [{} for _ in range(cluster.nodes)]
        self.slow: dict[int, float] = {}
        """Until when a node is slow."""
        leaf = cluster.levels[0].nodes if cluster.levels else cluster.nodes
        self._leaves = np.arange(0, cluster.nodes, leaf)
        self._whole = np.add.reduceat(self.free, self._leaves)
        self._rooms: dict[int, tuple[Ints, int]] = {}

    def room(self, block: int) -> tuple[Ints, int]:
        """[node] how many blocks of so many cards fit, and their sum."""
        if block not in self._rooms:
            room = self._room(self.free, block)
            self._rooms[block] = room, int(room.sum())
        return self._rooms[block]

    def room_without(self, runs: Sequence[Run], block: int) -> int:
        """Blocks of so many cards that fit where these jobs have gone."""
        free = self.free.copy()
        for run in runs:
            if run.nodes is not None:
                np.add.at(free, run.nodes, run.kind.block)
        return int(self._room(free, block).sum())

    def _room(self, free: Ints, block: int) -> Ints:
        found: Ints = np.where(self.out > 0, 0, free // block)
        return found

    def fits(self, run: Run) -> bool:
        """Whether there is room for all of a job."""
        return self.room(run.kind.block)[1] >= run.kind.blocks

    def take(self, run: Run, nodes: Ints) -> None:
        """A job's cards are no longer free."""
        np.subtract.at(self.free, nodes, run.kind.block)
        for node, blocks in zip(*np.unique(nodes, return_counts=True), strict=True):
            self.held[int(node)][run] = int(blocks) * run.kind.block
        self._rooms.clear()

    def give_back(self, run: Run, nodes: Ints) -> None:
        """They are free again."""
        np.add.at(self.free, nodes, run.kind.block)
        for node in np.unique(nodes).tolist():
            del self.held[node][run]
        self._rooms.clear()

    def turn(self, nodes: Sequence[int] | range, by: int) -> None:
        """Nodes are out (1), or back (-1); one that failed twice has to come back twice."""
        self.out[np.asarray(nodes)] += by
        self._rooms.clear()

    def met(self, failure: Failure) -> list[Run]:
        """The jobs that have one of the cards; those of a node have its first ones in turn."""
        found: dict[Run, None] = {}
        for node in range(failure.node, failure.node + failure.nodes):
            first = 0
            for run, cards in self.held[node].items():
                if first < failure.card + failure.cards and failure.card < first + cards:
                    found[run] = None
                first += cards
        return list(found)

    def slow_ones(self, run: Run) -> Iterator[int]:
        """Nodes of a job that are slow."""
        if self.slow and run.nodes is not None:
            yield from self.slow.keys() & {*run.nodes.tolist()}

    def fragmentation(self) -> float:
        """Part of the free cards that lie under leaves of which others are taken."""
        free = np.add.reduceat(self.free, self._leaves)
        total = int(free.sum())
        return int(free[free < self._whole].sum()) / total if total else 0.0
