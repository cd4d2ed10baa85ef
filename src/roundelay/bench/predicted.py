"""What the clock says of a point that is measured: the same call on a cluster of CPUs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..algorithms import find
from ..errors import RoundelayError
from ..selection import Table, Topology
from ..simulate import Clock
from ..topology import Cluster
from .cells import Point


class Predictor:
    """Predicted times on a cluster, for the algorithm that the engine takes there."""

    def __init__(self, cluster: Cluster, nodes: Sequence[int] = ()) -> None:
        """For calls on a cluster.

        Args:
            cluster: of CPUs, as `roundelay probe` writes it.
            nodes: ranks of each node; without it all ranks are on one.

        Raises:
            RoundelayError: it is a cluster of cards, on which nothing is measured here.
        """
        if cluster.generation != "cpu":
            raise RoundelayError(
                f"{cluster.name} is a cluster of {cluster.generation} cards; expected one of CPUs, "
                "whose figures `roundelay probe` measures: --cluster here, or the file it wrote"
            )
        self._cluster, self._nodes = cluster, tuple(nodes)
        self._table = Table.load(os.environ.get("ROUNDELAY_TABLE"))
        self._clock = cache(self._made)

    def __call__(self, point: Point) -> float | None:
        """Microseconds of a call; None where the cluster has no place for its ranks."""
        nodes = self._nodes or (point.ranks,)
        whole = all(ranks == self._cluster.cards for ranks in nodes)
        if len(nodes) > self._cluster.nodes or not (whole or nodes[1:] == ()):
            return None
        if max(nodes) > self._cluster.cards:
            return None
        topology = Topology(point.ranks, nodes)
        name, parameters = point.algorithm, {}
        if name == "auto":
            name, chosen = self._table.choose(point.collective, topology, point.nbytes)
            parameters = dict(chosen)
        elif "group" in find(f"{point.collective}/{name}").parameters:
            parameters = {"group": nodes[0]}
        items = tuple(sorted(parameters.items()))
        clock = self._clock(point.collective, name, point.ranks, point.root, items)
        return clock.time(point.nbytes).time * 1e6

    def _made(
        self, collective: str, name: str, n: int, root: int, parameters: tuple[tuple[str, Any], ...]
    ) -> Clock:
        algorithm = find(f"{collective}/{name}")
        root = root if algorithm.kind.rooted else 0
        return Clock(algorithm(n, root, **dict(parameters)), self._cluster)
