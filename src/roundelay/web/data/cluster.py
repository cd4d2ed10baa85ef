"""What the cluster shows: how long each link is busy with a collective, and which one longest."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from ...errors import RoundelayError
from ...show import words
from ...simulate import Clock
from ...simulate.nccl import bus_factor, predict
from ...simulate.protocols import Protocol
from ...topology import Cluster, Links
from ..clusters import NO_FILES, Clusters
from .clusters import clock_of
from .grouped import MOST
from .machines import named
from .parameters import Reader, of_schedule, whole
from .wire_rows import Column, Gap, Span
from .wires import picture

Floats = npt.NDArray[np.float64]

SAME: Final = 1e-9
"""Times that differ by no more than this part are one."""
CLUSTER: Final = "dgx-h100:4"
SIZE: Final = 1 << 28
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    of_schedule(MOST)
    | {
        "cluster": str,
        "first": whole("first", 0, MOST - 1),
        "last": whole("last", 0, MOST - 1),
    }
)


class Load(msgspec.Struct):
    """The busiest link of some.

    Attributes:
        kind: its class, such as "NIC out"; `link` its number, `index` its place in the class.
        count: links of the bundle; `used` those that carry anything, `alike` those that are busy
            as long as the busiest.
        bytes: that it carries in the whole collective; `line` what it could in a second, one way,
            and `rate` what the protocol makes of that.
        time: seconds that it is busy.
        total: bytes of the bundle.
    """

    kind: str
    link: int
    index: list[int]
    count: int
    used: int
    alike: int
    bytes: float
    line: float
    rate: float
    time: float
    total: float


class Edge(msgspec.Struct):
    """Links between two boxes, drawn over some rows; out is away from cards."""

    rows: Span
    out: Load
    into: Load


class Nccl(msgspec.Struct):
    """What NCCL would choose for the same, and the seconds that it takes by our prediction."""

    algorithm: str
    protocol: str
    channels: int
    time: float


class Shown(msgspec.Struct):
    """A range of cards of a cluster, and its links.

    Attributes:
        name: of the schedule; `title` of the cluster.
        nodes, cards, ranks, size: of the cluster, of a node, that take part, in bytes.
        first, last: the cards that are shown.
        rows: how many; `middle` the column in which they stand.
        columns, gaps: from left to right, a gap after each column but the last.
        kinds: classes of links, the busiest first; those that carry nothing come last.
        busiest: the first of these, None where nothing is sent; `at` cards to look at it.
        time, protocol, slices: of the whole; `bus` the factor from algbw to busbw.
        nccl: what NCCL would take, None where that is not known.
    """

    name: str
    title: str
    nodes: int
    cards: int
    ranks: int
    size: int
    first: int
    last: int
    rows: int
    middle: int
    columns: list[Column]
    gaps: list[list[Edge]]
    kinds: list[Load]
    busiest: Load | None
    at: Span
    time: float
    protocol: str
    slices: int
    bus: float
    nccl: Nccl | None


def cluster(
    collective: str = "all_reduce",
    algorithm: str = "ring",
    n: int | None = None,
    params: Mapping[str, Any] = MappingProxyType({}),
    root: int = 0,
    size: int = SIZE,
    cluster: str = CLUSTER,
    first: int = 0,
    last: int | None = None,
    clusters: Clusters = NO_FILES,
) -> Shown:
    """The links of a range of cards, and what a collective makes of them.

    Args:
        collective: its name.
        algorithm: its name.
        n: cards that take part; None: all.
        params: of the algorithm; a group is a node unless it is said.
        root: of a rooted collective.
        size: bytes, as in nccl-tests' size column.
        cluster: a known one, such as "dgx-h100:16".
        first: card to show; the first of its node where there are several nodes.
        last: card to show; the last of its node likewise. None: that of the cluster.
        clusters: of files.

    Raises:
        RoundelayError: nothing of that name, no such cards, or too many moves.
    """
    _, clock = clock_of(collective, algorithm, n, params, root, named(cluster, clusters))
    where = clock.cluster
    last = where.size - 1 if last is None else last
    if not first <= last < where.size:
        raise RoundelayError(
            f"cards {first} to {last}; expected two of 0 to {where.size - 1:,}, the first not "
            "after the last"
        )
    if first // where.cards != last // where.cards:
        first -= first % where.cards
        last += where.cards - 1 - last % where.cards
    timing = clock.time(size)
    loads = Loads(clock, size)
    seen = picture(where, first, last)
    kinds = sorted((loads.of(links) for links in where.links), key=lambda k: -k.time)
    busiest = kinds[0] if kinds and kinds[0].time else None
    rows = 1 + max(box.rows[1] for column in seen.columns for box in column.boxes)
    return Shown(
        words.name(clock.schedule), where.title, where.nodes, where.cards, clock.schedule.ranks,
        size, first, last, rows, seen.middle, seen.columns, [_edges(loads, g) for g in seen.gaps],
        kinds, busiest, _where(clock, busiest), timing.time, timing.protocol, timing.slices,
        bus_factor(collective, clock.schedule.ranks),
        _nccl(where, collective, size, clock.schedule.ranks),
    )  # fmt: skip


def _nccl(where: Cluster, collective: str, size: int, n: int) -> Nccl | None:
    try:
        found = predict(where, collective, size, n)
    except RoundelayError:
        return None
    return Nccl(found.algorithm, found.protocol, found.channels, found.time_s)


class Loads:
    """What every link carries, and how long it is busy, for one size."""

    def __init__(self, clock: Clock, size: int) -> None:
        self.clock = clock
        protocol, _, _ = clock.choose(size)
        roads, chunk = clock.usual.roads, clock.chunk(size)
        self.bytes: Floats = roads.carried * chunk
        self.time: Floats = roads.seconds(protocol) * chunk
        self._protocol: Protocol = protocol

    def of(self, links: Links, mask: npt.NDArray[np.bool_] | None = None) -> Load:
        """The busiest of a class, or of those of it that a mask has."""
        here = slice(links.first, links.first + links.count)
        ids = np.arange(links.count) if mask is None else np.flatnonzero(mask)
        time, carried = self.time[here][ids], self.bytes[here][ids]
        share = self._protocol.efficiency.get(links.medium, 1.0)
        if not len(ids):
            return Load(links.name, -1, [], 0, 0, 0, 0.0, links.rate, links.rate * share, 0.0, 0.0)
        most = int(np.argmax(time))
        alike = int((time >= time[most] * (1 - SAME)).sum()) if time[most] else 0
        seconds, sent = float(time[most]), float(carried[most])
        rate = sent / seconds if seconds else links.rate * share
        return Load(links.name, links.first + int(ids[most]), index_of(links, int(ids[most])),
                    len(ids), int((carried > 0).sum()), alike, sent, links.rate, rate, seconds,
                    float(carried.sum()))  # fmt: skip


def index_of(links: Links, which: int) -> list[int]:
    """The place of a link in its class, as its name has it."""
    index = [int(i) for i in np.unravel_index(which, links.shape)]
    if links.pairs:
        index[-1] += index[-1] >= index[-2]
    return index


def _edges(loads: Loads, gap: Gap) -> list[Edge]:
    return [
        Edge(rows, loads.of(gap.out, gap.out_of == k), loads.of(gap.into, gap.into_of == k))
        for k, rows in enumerate(gap.bundles)
    ]


def _where(clock: Clock, load: Load | None) -> Span:
    """Cards to look at, to see a link: those of its node, or those below its switch."""
    where = clock.cluster
    if load is None:
        return 0, where.size - 1
    level = next((x for x in where.levels if load.kind in (f"{x.name} up", f"{x.name} down")), None)
    if load.kind == "group to group":
        return 0, where.size - 1
    width = level.nodes if level else 1
    first = load.index[0] * width
    return first * where.cards, min(first + width, where.nodes) * where.cards - 1
