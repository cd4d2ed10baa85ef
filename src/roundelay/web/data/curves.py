"""What the curves show: the parts of each algorithm's time, by size, on so many nodes.

The browser adds the parts up, with latencies and bandwidths as its sliders say, and takes the
quickest protocol and parameters of each algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Final

import msgspec

from ...collectives import COLLECTIVES, UnknownName
from ...errors import RoundelayError
from ...schedule import ScheduleError
from ...simulate import Clock
from ...simulate.candidates import Candidate, candidates
from ...simulate.nccl import bus_factor
from ...topology import Cluster
from ..clusters import NO_FILES, Clusters
from .machines import named
from .parameters import Reader, whole

CARDS: Final = 256
"""Cards, at most."""
DENSE: Final = 16
"""Cards of an algorithm in which each card has to do with each other."""
NODES: Final = (1, 2, 4, 8, 16, 32)
"""Numbers of nodes that are offered."""
SIZES: Final = tuple(8 << 2 * k for k in range(16))
"""Bytes, from 8 B to 8 GiB."""
_ONE: Final = Lock()
"""So that two who ask the same at one time don't both work it out."""
READERS: Final[Mapping[str, Reader]] = {
    "collective": str,
    "cluster": str,
    "nodes": whole("nodes", 1, NODES[-1]),
}

Part = tuple[float, float, float]
"""Microseconds: of steps, which latency changes; of links, which bandwidth does; of the rest."""


class Way(msgspec.Struct):
    """An algorithm by one protocol.

    Attributes:
        name: of the parameters that differ from the defaults, empty for none.
        protocol: its name.
        parts: [size]; None where the protocol is not used for it.
    """

    name: str
    protocol: str
    parts: list[Part | None]


class Curve(msgspec.Struct):
    """An algorithm, by every way."""

    algorithm: str
    ways: list[Way]


class Curves(msgspec.Struct):
    """Times of a collective's algorithms.

    Attributes:
        collective: its name.
        title: of the cluster.
        nodes: how many; `offered` those that can be asked for.
        ranks: cards in all.
        sizes: bytes, as in nccl-tests' size column.
        launch: microseconds that every collective takes, at least.
        bus: factor from algbw to busbw.
        curves: of every algorithm.
    """

    collective: str
    title: str
    nodes: int
    offered: list[int]
    ranks: int
    sizes: list[int]
    launch: float
    bus: float
    curves: list[Curve]


def curves(
    collective: str = "all_reduce",
    cluster: str = "dgx-h100",
    nodes: int | None = None,
    clusters: Clusters = NO_FILES,
) -> Curves:
    """The parts of the time of every algorithm of a collective.

    Args:
        collective: its name.
        cluster: a known one, without a number of nodes.
        nodes: how many; None: 4, or as many as it has.
        clusters: of files.

    Raises:
        UnknownName: no such collective or cluster.
        RoundelayError: a cluster that has not so many nodes.
    """
    if collective not in COLLECTIVES:
        raise UnknownName("collective", collective, COLLECTIVES)
    if ":" in cluster:
        raise RoundelayError(f"cluster = {cluster!r:.40}; expected a name without nodes")
    one = named(cluster, clusters)
    offered = [k for k in NODES if k * one.cards <= CARDS and _scales(one, k)]
    if not offered:
        raise RoundelayError(f"{cluster} has nodes of {one.cards} cards; expected at most {CARDS}")
    chosen = min(4, offered[-1]) if nodes is None else nodes
    if chosen not in offered:
        raise RoundelayError(
            f"nodes = {chosen}; expected one of {', '.join(map(str, offered))} on {cluster}"
        )
    with _ONE:
        return _curves(collective, one.scaled(chosen), tuple(offered))


@lru_cache(maxsize=64)
def _curves(collective: str, where: Cluster, offered: tuple[int, ...]) -> Curves:
    found: dict[str, list[Way]] = {}
    if where.size > 1:
        for candidate in candidates(collective, where, where.size):
            if where.size <= DENSE or not candidate.algorithm.dense:
                found.setdefault(candidate.algorithm.name, []).extend(_ways(candidate, where))
    return Curves(
        collective, where.title, where.nodes, list(offered), where.size, list(SIZES),
        where.launch * 1e6, bus_factor(collective, where.size),
        [Curve(name, ways) for name, ways in found.items() if ways],
    )  # fmt: skip


def _scales(one: Cluster, nodes: int) -> bool:
    try:
        one.scaled(nodes)
    except RoundelayError:
        return False
    return True


def _ways(candidate: Candidate, where: Cluster) -> Iterator[Way]:
    """By every protocol, where the schedule suits the cluster."""
    name = candidate.name.partition(", ")[2]
    try:
        clock = Clock(candidate.schedule(where.size), where)
    except ScheduleError:
        return
    for protocol in clock.protocols:
        parts: list[Part | None] = []
        for size in SIZES:
            if protocol.most is not None and size > protocol.most:
                parts.append(None)
                continue
            try:
                t = clock.time(size, protocol.name)
            except RoundelayError:  # a protocol by which no switch adds
                break
            parts.append((_us(t.latency), _us(t.wire + t.wait), _us(t.reduce)))
        if len(parts) == len(SIZES):
            yield Way(name, protocol.name, parts)


def _us(seconds: float) -> float:
    """Microseconds, six digits."""
    return float(f"{seconds * 1e6:.6g}")
