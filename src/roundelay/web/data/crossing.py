"""Which moves of a schedule cross a link of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from ...errors import RoundelayError
from ...rounds import REDUCE, Round
from ...simulate import Clock
from ..clusters import NO_FILES, Clusters
from .cluster import CLUSTER, SIZE, index_of
from .clusters import clock_of
from .grouped import MOST
from .machines import named
from .parameters import Reader, of_schedule, whole

Ints = npt.NDArray[np.int64]
Move = tuple[int, int, int, int, int, float, bool]

LISTED: Final = 200
"""Moves that are listed."""
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    of_schedule(MOST) | {"cluster": str, "link": whole("link", 0, 2**27)}
)


class Crossing(msgspec.Struct):
    """The moves over a link, the first 200 of them.

    Attributes:
        kind, index: as of `Load`.
        ranks: a place of as many or more is a switch.
        moves: (step, source, destination, first piece, pieces, bytes, whether they are added);
            steps count from 1.
        count, bytes: of all.
        pairs: how many different sources and destinations there are.
        steps: steps of the schedule in which something crosses, (first, last).
    """

    kind: str
    index: list[int]
    ranks: int
    moves: list[Move]
    count: int
    bytes: float
    pairs: int
    steps: tuple[int, int]


def crossing(
    collective: str = "all_reduce",
    algorithm: str = "ring",
    n: int | None = None,
    params: Mapping[str, Any] = MappingProxyType({}),
    root: int = 0,
    size: int = SIZE,
    cluster: str = CLUSTER,
    link: int = 0,
    clusters: Clusters = NO_FILES,
) -> Crossing:
    """The moves that cross a link.

    Args:
        collective: its name.
        algorithm: its name.
        n: cards that take part; None: all.
        params: of the algorithm; a group is a node unless it is said.
        root: of a rooted collective.
        size: bytes, as in nccl-tests' size column.
        cluster: a known one, such as "dgx-h100:16".
        link: its number.
        clusters: of files.

    Raises:
        RoundelayError: as `cluster`, or no such link.
    """
    _, clock = clock_of(collective, algorithm, n, params, root, named(cluster, clusters))
    where, schedule = clock.cluster, clock.schedule
    if link >= len(where.rates):
        raise RoundelayError(f"link {link:,}; expected 0 to {len(where.rates) - 1:,}")
    links = next(x for x in where.links if x.first <= link < x.first + x.count)
    clock.choose(size)  # refuses what the cluster has no switches for
    keys = _pairs(clock, link)
    base, each = schedule.ranks + schedule.helpers, clock.chunk(size)
    rows: list[Move] = []
    count, total, steps = 0, 0.0, []
    for r in schedule:
        some = np.flatnonzero(np.isin(r.src * base + r.dst, keys))
        if not some.size:
            continue
        start, pieces = (
            np.broadcast_to(np.asarray(v, np.int64), r.src.shape)[some] for v in (r.start, r.count)
        )
        count += len(some) * r.times
        total += float(pieces.sum()) * r.unit * r.times * each
        steps += [r.at + int(start.min()) + 1, r.at + int(start.max()) + r.times]
        rows += _listed(r, some, start, pieces, schedule.chunks, each)
    rows.sort(key=lambda row: row[:4])
    return Crossing(links.name, index_of(links, link - links.first), schedule.ranks, rows[:LISTED],
                    count, total, len(keys), (min(steps, default=0), max(steps, default=0))
                    )  # fmt: skip


def _pairs(clock: Clock, link: int) -> Ints:
    """Source and destination, as one number, of all messages over a link."""
    roads = clock.usual.roads
    over = np.asarray((roads.paths.links == link).any(axis=0))
    src, dst = (roads.phases.column(side)[over] for side in ("src", "dst"))
    return np.unique(src * (clock.schedule.ranks + clock.schedule.helpers) + dst)


def _listed(
    r: Round, some: Ints, start: Ints, pieces: Ints, chunks: int, each: float
) -> Iterator[Move]:
    """The earliest moves of a round, as many as are listed."""
    early = np.argsort(start, kind="stable")[:LISTED]
    times = min(r.times, LISTED)
    repetition = np.tile(np.arange(times), len(early))
    early = np.repeat(early, times)
    step = r.at + start[early] + repetition + 1
    first = np.argsort(step, kind="stable")[:LISTED]
    early, repetition, step = early[first], repetition[first], step[first]
    move = some[early]
    piece = r.ids(chunks, move, repetition, 0) * r.unit
    held = pieces[early] * r.unit
    added = np.broadcast_to(np.asarray(r.op, np.int64), r.src.shape)[move] == REDUCE
    columns = (step, r.src[move], r.dst[move], piece, held, held * each, added)
    return zip(*(column.tolist() for column in columns), strict=True)
