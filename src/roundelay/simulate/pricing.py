"""What messages cost on a cluster: their links, shared with those under way beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..schedule import Schedule
from ..topology import MEDIA, Cluster, Path
from .phases import Phases
from .protocols import Protocol
from .recurrence import Costs
from .sharing import fair_rates, together

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PS: Final = 1e12
"""Picoseconds of a second."""
IN_FLIGHT: Final = 8
"""Messages between the same two that may be under way at once: the slots of NCCL's FIFOs
(NCCL_STEPS), so a message may begin an eighth of its protocol's step after the one before it."""
LONGEST: Final = 1e6
"""Seconds of one message, at most, so that sums stay within 64 bits of picoseconds."""


class Rates(NamedTuple):
    """Bytes a second, [message].

    Attributes:
        alone: that its links would give a message alone.
        shared: that they give it beside the others of its step.
    """

    alone: Floats
    shared: Floats


@dataclass(frozen=True, eq=False)
class Roads:
    """The ways of a schedule's messages through a cluster.

    Attributes:
        phases: the schedule's.
        cluster: the cluster.
        cards: [rank], the card it drives.
        slower: link to how many times slower it is than it should be.
    """

    phases: Phases
    cluster: Cluster
    cards: Ints
    slower: Mapping[int, float]

    @cached_property
    def positions(self) -> Ints:
        """[participant], where it is in the cluster: ranks on cards, helpers on switches."""
        below = helpers_below(self.phases.schedule)
        switches = [self.cluster.above(np.sort(self.cards[ranks])) for ranks in below]
        return np.concatenate([self.cards, np.array(switches, np.int64)]).astype(np.int64)

    @cached_property
    def paths(self) -> Path:
        """The ways of all messages, those of one phase after those of another."""
        ends = (self.positions[self.phases.column(side)] for side in ("src", "dst"))
        return self.cluster.path(*ends)

    @cached_property
    def lines(self) -> Floats:
        """[link] line rate, bytes a second one way, less what it is too slow."""
        rates = self.cluster.rates.copy()
        for link, factor in self.slower.items():
            rates[link] /= factor
        return rates

    @cached_property
    def medium(self) -> Ints:
        """[message] index into `MEDIA` of all its links; -1 where they are of several, or none."""
        links = self.paths.links
        media = np.where(links >= 0, self.cluster.media[links], -1)
        most = media.max(axis=0, initial=-1)
        same = ((media == most) | (media < 0)).all(axis=0)
        return np.where(same, most, -1)

    @property
    def narrowest(self) -> Ints:
        """[message] the link with the lowest line rate, -1 for none."""
        links = self.paths.links
        if not len(links):
            return np.full(links.shape[1], -1)
        hop = np.append(self.lines, np.inf)[links].argmin(axis=0)
        return np.asarray(links[hop, np.arange(links.shape[1])])

    @cached_property
    def fan(self) -> Ints:
        """[message] how many others a card at one of its ends, a switch apart, has in its step."""
        n, count = self.phases.participants, self.phases.schedule.ranks
        numbers, last = [], 0
        for phase in self.phases.phases:
            numbers.append(together(phase) + last)
            last = int(numbers[-1].max(initial=last)) + 1
        sets = np.concatenate(numbers) if numbers else np.empty(0, np.int64)
        most = np.ones(len(sets), np.int64)
        for side in ("src", "dst"):
            at = self.phases.column(side)
            key = sets * n + at
            if last * n > 8 * len(key):
                key = np.unique(key, return_inverse=True)[1]
            often = np.bincount(key, minlength=1)
            most = np.maximum(most, np.where(at < count, often[key], 1))
        return most - 1

    @cached_property
    def helped(self) -> npt.NDArray[np.bool_]:
        """[message] whether it goes to or from a switch in a node that adds."""
        return np.asarray(self._to_helpers & ~self.paths.between)

    @property
    def helped_between(self) -> bool:
        """Whether some go to or from a switch between the nodes."""
        return bool((self._to_helpers & self.paths.between).any())

    @property
    def _to_helpers(self) -> npt.NDArray[np.bool_]:
        ends = np.maximum(self.phases.column("src"), self.phases.column("dst"))
        return np.asarray(ends >= self.phases.schedule.ranks)

    @cached_property
    def line_rates(self) -> Rates:
        """By line rates."""
        return self._solved(self.lines)

    def rates(self, protocol: Protocol) -> Rates:
        """Under a protocol.

        Raises:
            RoundelayError: the protocol says nothing about the medium of a link.
        """
        share = np.array([protocol.efficiency.get(medium, np.nan) for medium in MEDIA])
        links = self.paths.links
        used = np.unique(self.cluster.media[links[links >= 0]])
        if np.isnan(share[used]).any():
            lacking = MEDIA[used[np.isnan(share[used])][0]]
            raise RoundelayError(f"protocol {protocol.name} has no figure for {lacking}")
        if (self.medium >= 0).all():  # messages over one medium share no link with others
            line, factor = self.line_rates, share[self.medium]
            found = Rates(line.alone * factor, line.shared * factor)
        else:
            found = self._solved(self.lines * share[self.cluster.media])
        if not self.helped.any():
            return found
        factor = self._by_switch(protocol)
        return Rates(found.alone * factor, found.shared * factor)

    def _solved(self, capacity: Floats) -> Rates:
        links = self.paths.links
        room = np.append(capacity, np.inf)  # of link -1
        alone = room[links].min(axis=0, initial=np.inf)
        shared = np.empty_like(alone)
        at = 0
        for phase in self.phases.phases:
            here = np.arange(at, at + len(phase))
            sets = together(phase)
            for number in range(int(sets.max(initial=0)) + 1):
                some = here[sets == number]
                shared[some] = fair_rates(links[:, some], capacity)
            at += len(phase)
        return Rates(alone, shared)

    def busiest(self, protocol: Protocol) -> tuple[int, float]:
        """The link that is busiest, -1 for none, and its seconds for each byte of a chunk."""
        seconds = self.seconds(protocol)
        most = int(np.argmax(seconds))
        return (most, float(seconds[most])) if seconds[most] else (-1, 0.0)

    def seconds(self, protocol: Protocol) -> Floats:
        """[link], for each byte of a chunk, how long it is busy."""
        share = np.array([protocol.efficiency.get(medium, np.nan) for medium in MEDIA])
        carried = self.carried
        if self.helped.any():
            carried = self._load(self.phases.column("chunks") * self.phases.column("repeated")
                                 / self._by_switch(protocol))  # fmt: skip
        found: Floats = np.divide(carried, self.lines * share[self.cluster.media],
                                  out=np.zeros(len(carried)), where=carried > 0)  # fmt: skip
        return found

    @cached_property
    def carried(self) -> Floats:
        """[link] chunks that go over it."""
        return self._load(
            (self.phases.column("chunks") * self.phases.column("repeated")).astype(float)
        )

    def _load(self, carried: Floats) -> Floats:
        links = np.asarray(self.paths.links)
        load = np.zeros(len(self.lines) + 1)
        for hop in links:
            load += np.bincount(hop + 1, carried, len(load))
        return load[1:]

    def _by_switch(self, protocol: Protocol) -> Floats:
        """[message] factor on its rate where a switch adds."""
        inside = protocol.efficiency[self.cluster.inside.medium]
        return np.where(self.helped, protocol.switch / inside, 1.0)


def helpers_below(schedule: Schedule) -> list[Ints]:
    """[helper], the ranks below it: those it exchanges with, or those below the helpers it does."""
    n = schedule.ranks
    if not schedule.helpers:
        return []
    pairs: set[tuple[int, int]] = set()
    for r in schedule:
        some = (r.src >= n) | (r.dst >= n)
        pairs |= set(zip(r.src[some].tolist(), r.dst[some].tolist(), strict=True))
    below: list[set[int]] = [set() for _ in range(schedule.helpers)]
    for a, b in pairs:
        for helper, rank in ((a, b), (b, a)):
            if helper >= n > rank:
                below[helper - n].add(rank)
    while True:
        empty = [i for i, ranks in enumerate(below) if not ranks]
        if not empty:
            return [np.array(sorted(ranks), np.int64) for ranks in below]
        grown = {i: set[int]() for i in empty}
        for a, b in pairs:
            for helper, other in ((a, b), (b, a)):
                if helper - n in grown and other >= n:
                    grown[helper - n] |= below[other - n]
        if not any(grown.values()):
            raise RoundelayError("a helper of the schedule exchanges with no rank at all")
        for i, ranks in grown.items():
            below[i] |= ranks


class Loads(NamedTuple):
    """What messages of all kinds carry and cost beside their bytes, [kind of message].

    Attributes:
        chunks, added: chunks of a repetition, and those that are added to what is there.
        between: whether it leaves its node.
        latency: seconds on the way.
        fan: see `Roads`.
        slower: factor on all its times.
    """

    chunks: Floats
    added: Floats
    between: npt.NDArray[np.bool_]
    latency: Floats
    fan: Ints
    slower: Floats


def costs(
    loads: Loads, rate: Floats, protocol: Protocol, chunk: float, *, adding: bool = True
) -> Costs:
    """What messages cost.

    Args:
        loads: what they carry.
        rate: [kind of message], bytes a second.
        protocol: what a step costs beyond its bytes.
        chunk: bytes of a chunk.
        adding: count what adding takes.

    Raises:
        RoundelayError: a message would take longer than can be counted.
    """
    own = np.where(loads.between, protocol.between, protocol.inside)
    step = own + np.where(loads.between, loads.latency, 0.0) + loads.fan * protocol.peer
    add = loads.added * (chunk * protocol.reduce if adding else 0.0)
    columns = [c * loads.slower for c in (step, loads.chunks * chunk / rate, add, own / IN_FLIGHT)]
    if any(c.size and not c.max() < LONGEST for c in columns):
        raise RoundelayError(f"a message would take more than {LONGEST:g} s; expected sizes and "
                             "rates of which one is not far beyond the other")  # fmt: skip
    latency, wire, added, gap = (np.rint(c * PS).astype(np.int64) for c in columns)
    return Costs(latency + wire + added, np.maximum(wire, gap))


def slowed(roads: Roads, ranks: Sequence[tuple[int, float]]) -> Floats:
    """[message], the factor of the slower of its two ends."""
    factor = np.ones(roads.phases.participants)
    for rank, times in ranks:
        factor[rank] = times
    return np.maximum(factor[roads.phases.column("src")], factor[roads.phases.column("dst")])
