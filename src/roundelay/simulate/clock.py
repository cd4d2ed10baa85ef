"""The time of a schedule on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..schedule import Schedule
from ..topology import Cluster
from .phases import Phases, phases
from .pricing import PS, Roads
from .protocols import Protocol, protocols
from .way import Way

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Table = npt.NDArray[np.float32]

SLICES: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""Into how many slices a collective may be cut, to go through its levels one behind the other."""
SLICE: Final = 128 << 10
"""Bytes of a slice, at least: NCCL's chunk between nodes (NVLS, and point to point)."""
OWN: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
"""Collectives in which a card also copies a piece of its own."""
WORTH: Final = 0.02
"""Part of the time that slices could save, at least, for them to be tried."""
SLOWEST: Final = 1e6
"""How many times slower a rank or a link may be."""


@dataclass(frozen=True)
class Timing:
    """The time of one collective, in seconds. The parts add up to `time`.

    Attributes:
        time: from the first rank's begin to the last rank's end.
        size: bytes, as in nccl-tests' size column.
        protocol: by which messages go.
        slices: parts of the data that follow one another through the schedule.
        latency: starting, and steps beyond their bytes, on the way that ends last.
        wire: bytes on that way, as if no other message shared its links; what slices add.
        reduce: adding, and copying a card's own piece.
        wait: for links that others share, for pipelines to fill and for what is late.
        host: what the host's launching takes beyond the above.
        binding_link: the link that is busiest.
        link_time: how long it is.
    """

    time: float
    size: int
    protocol: str
    slices: int
    latency: float
    wire: float
    reduce: float
    wait: float
    host: float
    binding_link: str
    link_time: float


class Clock:
    """A schedule on a cluster, for any size."""

    def __init__(
        self,
        schedule: Schedule,
        cluster: Cluster,
        cards: Sequence[int] | Ints | None = None,
        slow_ranks: Sequence[tuple[int, float]] = (),
        slow_links: Mapping[int, float] | None = None,
        *,
        shortcuts: bool = True,
    ) -> None:
        """Rank r drives card r, unless `cards` says otherwise.

        Args:
            schedule: a whole one.
            cluster: with a card for every rank.
            cards: [rank], its card.
            slow_ranks: ranks, and how many times longer their messages take.
            slow_links: numbers of links (see `Cluster.link_name`), and how many times slower.
            shortcuts: time one rank of each kind, and multiply where repetitions go on alike. The
                result is equal without.

        Raises:
            RoundelayError: more ranks than cards, a card twice, or no such rank or link.
        """
        self.schedule, self.cluster = schedule, cluster
        self.cards = _cards(schedule, cluster, cards)
        self.protocols = protocols(cluster)
        self._slow_ranks = [_slow("rank", r, f, schedule.ranks) for r, f in slow_ranks]
        links = len(cluster.rates)
        self._slow_links = dict(_slow("link", k, f, links) for k, f in (slow_links or {}).items())
        self._shortcuts = shortcuts
        self._busiest: dict[tuple[str, bool], tuple[str, float]] = {}
        self._idles: dict[str, float] = {}

    @cached_property
    def phases(self) -> Phases:
        """Its messages, and what they wait for."""
        return phases(self.schedule)

    @cached_property
    def usual(self) -> Way:
        """As it should be."""
        roads = Roads(self.phases, self.cluster, self.cards, {})
        return Way(roads, shortcuts=self._shortcuts)

    @cached_property
    def way(self) -> Way:
        """With what is slow."""
        if not self._slow_ranks and not self._slow_links:
            return self.usual
        roads = self.usual.roads
        if self._slow_links:
            roads = Roads(self.phases, self.cluster, self.cards, self._slow_links)
        return Way(roads, self._slow_ranks, shortcuts=self._shortcuts)

    def chunk(self, size: int) -> float:
        """Bytes of a chunk."""
        n = self.schedule.ranks
        return self.schedule.kind.total_bytes(size, n) / self.schedule.chunks

    def time(self, size: int, protocol: str | None = None) -> Timing:
        """The time of one collective.

        Where a rank or a link is slow, protocol and slices are those that are best without.

        Args:
            size: bytes, as in nccl-tests' size column.
            protocol: by which messages go; without it, the quickest.

        Raises:
            RoundelayError: no such protocol, or a size that is none.
        """
        found, slices, device = self.choose(size, protocol)
        if self.way is not self.usual:
            device = self._device(self.way, found, size, slices)
        chunk, usual = self.chunk(size) / slices, self.usual
        # What there is without bytes; what they add on links of their own; what adding does.
        idle = self._idle(found)
        moved = usual.end(found, chunk, alone=True, adding=False)
        added = usual.end(found, chunk, alone=True) if found.reduce else moved
        latency = found.base + idle
        wire = moved - idle + self._following(usual, found, size, slices)
        reduce = added - moved + self._own(found, size)
        wait = device - latency - wire - reduce
        wait = wait if wait * PS >= 1 else 0.0
        host = max(0.0, self.cluster.launch - device)
        name, of_a_byte = self._link(self.way, found)
        return Timing(latency + wire + reduce + wait + host, size, found.name, slices, latency,
                      wire, reduce, wait, host, name, of_a_byte * self.chunk(size))  # fmt: skip

    def choose(self, size: int, protocol: str | None = None) -> tuple[Protocol, int, float]:
        """The quickest protocol and number of slices, and the seconds that the cards take."""
        if not isinstance(size, int) or not 0 <= size < 2**63:
            raise RoundelayError(f"size = {size!r}; expected a whole number of bytes from 0 up")
        usable = self._usable(size, protocol)
        best: tuple[Protocol, int, float] | None = None
        for p in sorted(usable, key=lambda p: self._least(p, size)):
            if best is None or self._least(p, size) < best[2]:
                found = self._cut(p, size)
                best = found if best is None or found[2] < best[2] else best
        assert best is not None
        return best

    def _usable(self, size: int, protocol: str | None) -> list[Protocol]:
        """The protocols that may be chosen."""
        names = [p.name for p in self.protocols]
        if protocol is not None and protocol not in names:
            raise RoundelayError(f"no protocol {protocol!r} on {self.cluster.name}; expected "
                                 f"one of {', '.join(names)}")  # fmt: skip
        roads = self.usual.roads
        found = [
            p
            for p in self.protocols
            if protocol == p.name or (protocol is None and (p.most is None or size <= p.most))
            if p.switch or not roads.helped.any()
        ]
        if found and (self.cluster.fabric.adds or not roads.helped_between):
            return found
        where = "between the nodes" if found else "in the nodes"
        by = f" that do by {protocol}" if protocol and not found else ""
        raise RoundelayError(f"{self.schedule!r} needs switches {where} that add; "
                             f"{self.cluster.name} has none{by}. Choose another algorithm"
                             )  # fmt: skip

    def _cut(self, protocol: Protocol, size: int) -> tuple[Protocol, int, float]:
        """The best number of slices."""
        whole = self._device(self.usual, protocol, size, 1)
        best = protocol, 1, whole
        idle, carried = self._parts(protocol, size)
        if whole - (idle + carried + self.once(protocol, size)) > WORTH * whole:
            for slices in self._slices(size):
                device = self._device(self.usual, protocol, size, slices)
                best = min(best, (protocol, slices, device), key=lambda found: found[2])
        return best

    def _idle(self, protocol: Protocol) -> float:
        """Seconds that messages without bytes take."""
        if protocol.name not in self._idles:
            self._idles[protocol.name] = self.usual.end(protocol, 0.0)
        return self._idles[protocol.name]

    def _least(self, protocol: Protocol, size: int) -> float:
        """Seconds that it takes at least; the busiest link may carry while others' steps pass."""
        return max(self._parts(protocol, size)) + self.once(protocol, size)

    def _parts(self, protocol: Protocol, size: int) -> tuple[float, float]:
        """Seconds of the steps without bytes, and of the bytes of the busiest link."""
        _, of_a_byte = self._link(self.usual, protocol)
        return self._idle(protocol), of_a_byte * self.chunk(size)

    def once(self, protocol: Protocol, size: int) -> float:
        """Seconds that do not depend on the way."""
        moved = size if self.schedule.kind.volume else 0
        filled = protocol.filled(moved, self.schedule.ranks)
        return protocol.base + self._own(protocol, size) + filled

    def samples(
        self,
        size: int,
        tables: tuple[Table, Table, Table],
        count: int,
        protocol: str | None = None,
        *,
        seed: int = 1,
        threads: int = 1,
    ) -> Floats:
        """[sample] seconds, where messages differ from time to time.

        Args:
            size: bytes, as in nccl-tests' size column.
            tables: equally likely factors of the time of every message, of each card and of each
                link; those of a card or link are drawn once a sample.
            count: of samples.
            protocol: by which messages go; without it, the quickest where nothing differs.
            seed: the same gives the same samples.
            threads: that work at it; they don't change the result.
        """
        found, slices, _ = self.choose(size, protocol)
        way = Way(self.way.roads, self._slow_ranks, shortcuts=False)
        price = way.price(found, self.chunk(size) / slices)
        ends = way.machine.sample(price, count, *tables, way.roads.narrowest, seed, threads)
        device = ends / PS + self._following(self.way, found, size, slices)
        return np.maximum(device + self.once(found, size), self.cluster.launch)

    def _slices(self, size: int) -> list[int]:
        """How the data might be cut."""
        if self.schedule.steps < 2:
            return [1]
        return [s for s in SLICES if s == 1 or size >= s * SLICE]

    def _device(self, way: Way, protocol: Protocol, size: int, slices: int) -> float:
        """Seconds on the cards; a link never carries more than it can."""
        end = way.end(protocol, self.chunk(size) / slices)
        end += self._following(way, protocol, size, slices)
        _, of_a_byte = self._link(way, protocol)
        return max(end, of_a_byte * self.chunk(size)) + self.once(protocol, size)

    def _following(self, way: Way, protocol: Protocol, size: int, slices: int) -> float:
        """Seconds that the slices after the first take more.

        Each takes as long as the busiest link or port needs for it.
        """
        if slices == 1:
            return 0.0
        _, of_a_byte = self._link(way, protocol)
        chunk = self.chunk(size) / slices
        return (slices - 1) * max(of_a_byte * chunk, way.port(protocol, chunk))

    def _link(self, way: Way, protocol: Protocol) -> tuple[str, float]:
        """The busiest link, and its seconds for each byte of a chunk."""
        key = protocol.name, way is self.usual
        if key not in self._busiest:
            link, seconds = way.roads.busiest(protocol)
            self._busiest[key] = self.cluster.link_name(link) if link >= 0 else "", seconds
        return self._busiest[key]

    def _own(self, protocol: Protocol, size: int) -> float:
        """Seconds for a card's copy of its own piece."""
        n, inside = self.schedule.ranks, self.cluster.inside
        if self.schedule.collective not in OWN or n == 1:
            return 0.0
        return protocol.own * size / n / (inside.rate * protocol.efficiency[inside.medium])


def _cards(schedule: Schedule, cluster: Cluster, cards: Sequence[int] | Ints | None) -> Ints:
    n = schedule.ranks
    if n > cluster.size:
        raise RoundelayError(
            f"{n:,} ranks, and {cluster.name} has {cluster.size:,} cards; expected as many ranks "
            f"at most. More nodes are {cluster.name}:N"
        )
    found = np.arange(n) if cards is None else np.asarray(cards, np.int64)
    good = found.shape == (n,) and len(np.unique(found)) == n
    if not good or found.min() < 0 or found.max() >= cluster.size:
        raise RoundelayError(f"cards: expected {n} different numbers of cards, 0 to "
                             f"{cluster.size - 1}, one a rank")  # fmt: skip
    return found


def _slow(what: str, number: int, factor: float, limit: int) -> tuple[int, float]:
    if not 0 <= number < limit:
        raise RoundelayError(f"{what} {number}; expected 0 to {limit - 1}")
    if not 1 <= factor <= SLOWEST:
        raise RoundelayError(f"{what} {number}: {factor:g} times slower; expected 1 to "
                             f"{SLOWEST:g}, such as 1.10 for 10 %")  # fmt: skip
    return int(number), float(factor)
