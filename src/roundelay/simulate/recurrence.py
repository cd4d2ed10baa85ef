"""When every message begins and ends, spelt out: the meaning that the native core computes fast.

A repetition of a message begins when

- the one before it between the same two has left (``begin + busy``),
- what it waits for at its source and at its destination has ended, see `waits`,
- and the links of both are free of earlier phases.

It ends ``whole`` later. Times are whole picoseconds, so that adding up is exact and whatever way
leads to a time gives the same one. All messages of a step look before any of them is noted, as
reads stand before writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .phases import Phase, Phases
from .waits import LATEST, End

Times = npt.NDArray[np.int64]


class Costs(NamedTuple):
    """What messages cost, [message] over all phases, in picoseconds.

    Attributes:
        whole: from a repetition's begin to its end.
        busy: from its begin to the earliest begin of the next between the same two.
    """

    whole: Times
    busy: Times


class Event(NamedTuple):
    """A repetition of a message: its phase, number there, repetition, begin and end."""

    phase: Phase
    message: int
    repetition: int
    begin: int
    end: int


def events(phases: Phases, costs: Costs) -> Iterator[Event]:
    """Every repetition of every message, in the schedule's order."""
    state = _State(phases)
    offset = 0
    for phase in phases.phases:
        yield from state.go(phase, offset, costs)
        offset += len(phase)


class _State:
    def __init__(self, phases: Phases) -> None:
        n = phases.participants
        self.free_out, self.free_in = [0] * n, [0] * n
        # (round, side), then participant, to the ends of repetitions.
        self.latest: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        self.kept: dict[tuple[int, int], dict[tuple[int, int], int]] = defaultdict(dict)

    def go(self, phase: Phase, offset: int, costs: Costs) -> Iterator[Event]:
        base = [self.base(phase, m) for m in range(len(phase))]
        free = [0] * len(phase)
        by_step: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for m, (start, times) in enumerate(zip(phase.start, phase.repeated, strict=True)):
            for k in range(int(times)):
                by_step[int(start) + k].append((m, k))
        for step in sorted(by_step):
            done = []
            for m, k in by_step[step]:
                begin = max(free[m], base[m], self.waited(phase, m, k))
                free[m] = begin + int(costs.busy[offset + m])
                done.append(Event(phase, m, k, begin, begin + int(costs.whole[offset + m])))
            for event in done:
                self.note(event)
            yield from done
        for m, time in enumerate(free):
            src, dst = int(phase.src[m]), int(phase.dst[m])
            self.free_out[src] = max(self.free_out[src], time)
            self.free_in[dst] = max(self.free_in[dst], time)

    def base(self, phase: Phase, m: int) -> int:
        """What stands before the phase."""
        src, dst = int(phase.src[m]), int(phase.dst[m])
        found = max(self.free_out[src], self.free_in[dst])
        for w in phase.before:
            if w.round == phase.round[m]:
                rank = src if w.end == End.SOURCE else dst
                found = max(found, self.latest[w.other, w.side].get(rank, 0))
        return found

    def waited(self, phase: Phase, m: int, k: int) -> int:
        """What repetition k waits for in its phase."""
        found = 0
        for w in phase.waits:
            if w.round != phase.round[m]:
                continue
            rank = int(phase.src[m] if w.end == End.SOURCE else phase.dst[m])
            key, times = (phase.first + w.other, w.side), int(phase.times[w.other])
            if w.lag == LATEST or w.lag >= times:
                found = max(found, self.latest[key].get(rank, 0))
            elif (needed := min(times, k + w.lag)) > 0:
                found = max(found, self.kept[key].get((needed - 1, rank), 0))
        return found

    def note(self, event: Event) -> None:
        phase, m = event.phase, event.message
        for side, rank in ((End.SOURCE, int(phase.src[m])), (End.DESTINATION, int(phase.dst[m]))):
            key = (phase.first + int(phase.round[m]), side)
            self.latest[key][rank] = max(self.latest[key].get(rank, 0), event.end)
            place = (event.repetition, rank)
            self.kept[key][place] = max(self.kept[key].get(place, 0), event.end)
