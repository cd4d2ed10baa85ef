"""A schedule as phases: messages that may be under way at one time, and what they wait for.

All moves of a round between the same two ranks in the same step are one message. Rounds are in one
phase where their steps overlap, or where one hands on piece by piece what the other brings (a tree
that broadcasts while another still reduces).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..rounds import REDUCE, Round
from ..schedule import Schedule
from .waits import LATEST, RoundWait, waits

Numbers = npt.NDArray[np.int64]

KEPT: Final = 1 << 25
"""Repetitions x participants of a round whose every end is kept for those who wait piece by piece;
above that they wait for all of the round."""
MOST_MESSAGES: Final = 1 << 26
"""Messages of a schedule, repetitions counted once, at most."""


@dataclass(frozen=True, eq=False)
class Phase:
    """Messages of rounds that overlap.

    Attributes:
        first: number of its round 0 among all rounds, in the order in which they begin.
        times: [round], repetitions.
        src, dst: [message], participants.
        round: [message], counted in the phase.
        start: [message], first step, counted from the phase's begin.
        chunks: [message], chunks of each repetition.
        added: [message], how many of these are added to what is there.
        waits: for rounds of this phase, both counted in it.
        before: for rounds of earlier phases; `round` counted in the phase, `other` among all.
    """

    first: int
    times: Numbers
    src: Numbers
    dst: Numbers
    round: Numbers
    start: Numbers
    chunks: Numbers
    added: Numbers
    waits: tuple[RoundWait, ...]
    before: tuple[RoundWait, ...]

    def __len__(self) -> int:
        return len(self.src)

    @cached_property
    def repeated(self) -> Numbers:
        """[message], its repetitions."""
        return self.times[self.round]

    @property
    def number(self) -> Numbers:
        """[message], its round among all."""
        return self.first + self.round

    @property
    def by_piece(self) -> bool:
        """Whether a round hands on piece by piece what another of the phase brings."""
        return any(_by_piece(w, int(self.times[w.other])) for w in self.waits)


@dataclass(frozen=True, eq=False)
class Phases:
    """All phases of a schedule, in order.

    Attributes:
        schedule: the schedule.
        rounds: how many rounds it has.
        phases: theirs.
        participants: how many `src` and `dst` count: ranks and helpers, or kinds of them.
    """

    schedule: Schedule
    rounds: int
    phases: tuple[Phase, ...]
    participants: int

    def column(self, name: str) -> Numbers:
        """[message], what `Phase` calls so, of one phase after the other."""
        if name not in self._columns:
            self._columns[name] = np.concatenate(
                [np.empty(0, np.int64), *(getattr(p, name) for p in self.phases)]
            )
        return self._columns[name]

    @cached_property
    def _columns(self) -> dict[str, Numbers]:
        return {}


def phases(schedule: Schedule) -> Phases:
    """The phases of a schedule.

    Raises:
        RoundelayError: it has too many messages to time one by one.
    """
    rounds = [_messages(r) for r in _counted(schedule.whole())]
    times = [m.times for m in rounds]
    participants = schedule.ranks + schedule.helpers
    found = [_coarser(w, times, participants) for w in waits(schedule, len(rounds), times)]
    # Parts that stand side by side are listed one after the other.
    order = sorted(range(len(rounds)), key=lambda i: rounds[i].at)
    rounds = [rounds[i] for i in order]
    place = {i: k for k, i in enumerate(order)}
    found = [w._replace(round=place[w.round], other=place[w.other]) for w in found]
    made = []
    for first, last in _spans(rounds, found):
        made.append(_phase(rounds, first, last, found))
    return Phases(schedule, len(rounds), tuple(made), participants)


def _counted(schedule: Schedule) -> list[Round]:
    kept, count = [], 0
    for r in schedule:
        count += len(r.src)
        if count > MOST_MESSAGES:
            raise RoundelayError(
                f"{schedule!r} has more than {MOST_MESSAGES:,} messages; choose an algorithm in "
                "which each rank has few peers, or fewer ranks"
            )
        kept.append(r)
    return kept


@dataclass(frozen=True, eq=False)
class _Messages:
    """Those of one round."""

    at: int
    end: int
    times: int
    src: Numbers
    dst: Numbers
    start: Numbers
    chunks: Numbers
    added: Numbers


def _messages(r: Round) -> _Messages:
    def column(value: Any) -> Numbers:
        return np.broadcast_to(np.asarray(value, np.int64), r.src.shape)

    away = np.flatnonzero(r.src != r.dst)
    src, dst, start = (column(v)[away] for v in (r.src, r.dst, r.start))
    chunks = column(r.count)[away] * r.unit
    added = np.where(column(r.op)[away] == REDUCE, chunks, 0)
    rank = int(max(src.max(initial=0), dst.max(initial=0))) + 1
    if rank**2 * (1 + int(start.max(initial=0))) < 2**62:
        key = (start * rank + src) * rank + dst
        if len(key) > 1 and not (key[1:] > key[:-1]).all():
            unique, first, which = np.unique(key, return_index=True, return_inverse=True)
            if len(unique) < len(key):
                chunks = np.bincount(which, chunks).astype(np.int64)
                added = np.bincount(which, added).astype(np.int64)
                src, dst, start = src[first], dst[first], start[first]
    return _Messages(r.at, r.end, r.times, src, dst, start, chunks, added)


def _coarser(wait: RoundWait, times: list[int], participants: int) -> RoundWait:
    if wait.lag == LATEST or times[wait.other] * participants <= KEPT:
        return wait
    return wait._replace(lag=times[wait.other])


def _by_piece(wait: RoundWait, times: int) -> bool:
    return wait.lag != LATEST and wait.lag < times


def _spans(rounds: list[_Messages], found: list[RoundWait]) -> list[tuple[int, int]]:
    """First round, and the one after the last, of each phase."""
    reach = list(range(1, len(rounds) + 1))
    for w in found:
        if _by_piece(w, rounds[w.other].times):
            reach[w.other] = max(reach[w.other], w.round + 1)
    spans: list[tuple[int, int]] = []
    first, until, end = 0, 0, 0
    for i, r in enumerate(rounds):
        if i and i >= until and r.at >= end:
            spans.append((first, i))
            first = i
        until, end = max(until, reach[i]), max(end, r.end)
    return [*spans, (first, len(rounds))] if rounds else []


def _phase(rounds: list[_Messages], first: int, last: int, found: list[RoundWait]) -> Phase:
    inside = rounds[first:last]
    begin = np.array([r.at - inside[0].at for r in inside], np.int64)

    def joined(name: str) -> Numbers:
        return np.concatenate([getattr(r, name) for r in inside])

    number = np.repeat(np.arange(len(inside)), [len(r.src) for r in inside])
    here = [w._replace(round=w.round - first) for w in found if first <= w.round < last]
    return Phase(
        first,
        np.array([r.times for r in inside], np.int64),
        joined("src"),
        joined("dst"),
        number,
        joined("start") + begin[number],
        joined("chunks"),
        joined("added"),
        tuple(w._replace(other=w.other - first) for w in here if w.other >= first),
        tuple(w for w in here if w.other < first),
    )
