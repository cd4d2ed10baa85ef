"""The states a schedule goes through: who holds what before, and after every step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, NamedTuple

import numpy as np

from ..collectives import Bools
from ..errors import RoundelayError
from ..i18n import Message, message
from ..schedule import REDUCE, Schedule, Step, apply, occupy
from .sentences import what_happens, what_it_brings
from .words import Counts, contributors

MOVES_LIMIT: Final = 200_000
"""Chunk moves up to which a schedule is shown."""
STEPS_LIMIT: Final = 10_000
"""Steps up to which a schedule is shown."""
CELLS_LIMIT: Final = 5 * 10**7
"""Places times contributors times states, up to which a schedule is shown."""


class Move(NamedTuple):
    """What one rank (or helper) sends another in a step, to be added or to be copied."""

    src: int
    dst: int
    chunks: list[int]
    add: bool


@dataclass(frozen=True, eq=False)
class Frame:
    """One state of a schedule, and the moves that led to it.

    Attributes:
        step: 0 before anything moved, then the number of the step just done, from 1.
        moves: that step's moves, those between the same two places of one kind as one.
        counts: how often a rank's contribution is in what a place holds, where 2 stands for
            more than once; uint8, shape (participants, chunks, ranks).
        complete: whether a place holds every wanted contribution exactly once, shape
            (participants, chunks).
        changed: whether this step changed the place, same shape.
        action, progress: what happened and what it brought; `progress` is None where there is
            nothing to say.
    """

    step: int
    moves: tuple[Move, ...]
    counts: Counts
    complete: Bools
    changed: Bools
    action: Message
    progress: Message | None

    @property
    def holds(self) -> Bools:
        """Whether a rank contributed to what a place holds: (participants, chunks, ranks)."""
        return self.counts > 0

    @property
    def twice(self) -> Bools:
        """Whether a place holds some contribution more than once: (participants, chunks)."""
        repeated: Bools = np.any(self.counts > 1, axis=-1)
        return repeated

    @property
    def sentence(self) -> Message:
        """What happened and what it brought, for a reader who is new to it."""
        if self.progress is None:
            return self.action
        return message("{first} {second}", first=self.action, second=self.progress)


def frames(schedule: Schedule) -> list[Frame]:
    """The state before the schedule, and the one after each of its steps.

    Raises:
        RoundelayError: the schedule is too large to show, or is a part, for rows of ranks.
        ScheduleError: a step reads or adds to a place that holds nothing, or copies into one
            that it has already written.
    """
    _refuse_what_cannot_be_shown(schedule.whole())
    places = _places(schedule) * (schedule.steps + 1)
    _refuse(schedule, "contributions to follow", places, CELLS_LIMIT)
    return [
        replace(f, counts=f.counts.copy(), complete=f.complete.copy(), changed=f.changed.copy())
        for f in walk(schedule)
    ]


def walk(schedule: Schedule) -> Iterator[Frame]:
    """The same, one state at a time, in arrays that change from one to the next.

    Takes memory for one state only, so a schedule may be larger than for `frames`.

    Raises:
        RoundelayError: as `frames`.
        ScheduleError: as `frames`.
    """
    _refuse_what_cannot_be_shown(schedule.whole())
    n, wanted = schedule.ranks, contributors(schedule)
    counts = np.zeros((n + schedule.helpers, schedule.chunks, n), np.uint8)
    counts[np.arange(n), :, np.arange(n)] = wanted.T
    complete = (counts == wanted).all(axis=-1)
    changed = np.zeros_like(complete)
    yield Frame(0, (), counts, complete, changed, message("The start."), None)
    ordered = sorted(schedule.moves(), key=attrgetter("at"))
    steps = {at: list(group) for at, group in groupby(ordered, attrgetter("at"))}
    held: Bools = np.any(counts, axis=-1)
    for at in range(schedule.steps):
        now = steps.get(at, [])
        before = complete.copy()
        touched = np.unique(np.concatenate([np.empty(0, np.int64), *(s.target for s in now)]))
        place = np.divmod(touched, schedule.chunks)
        old = counts[place]
        for step in now:
            occupy(step, held)
            apply(step, counts, _add)
        new, of = counts[place], wanted[place[1]]
        changed[:] = False
        changed[place] = (new != old).any(axis=-1)
        complete[place] = (new == of).all(axis=-1)
        grown = (new > 0).sum(axis=-1)[changed[place] & ~complete[place]]
        moves = _merged(now)
        action = what_happens(schedule, moves, before)
        progress = what_it_brings(schedule, before, complete, grown)
        yield Frame(at + 1, moves, counts, complete, changed, action, progress)


def _merged(steps: Iterable[Step]) -> tuple[Move, ...]:
    """The moves of some steps in listed order, one for each source, destination and kind."""
    found: dict[tuple[int, int, bool], list[int]] = {}
    for step in steps:
        add = np.broadcast_to(np.equal(step.op, REDUCE), step.src.shape)
        rows = (step.src.tolist(), step.dst.tolist(), add.tolist(), step.col.tolist())
        for src, dst, adds, chunk in zip(*rows, strict=True):
            found.setdefault((src, dst, adds), []).append(chunk)
    return tuple(Move(src, dst, sorted(c), add) for (src, dst, add), c in found.items())


def _add(a: Any, b: Any) -> Any:
    return np.minimum(a + b, 2)


def _places(schedule: Schedule) -> int:
    return (schedule.ranks + schedule.helpers) * schedule.chunks * schedule.ranks


def _refuse_what_cannot_be_shown(schedule: Schedule) -> None:
    """Raises where there is too much; what takes long to count comes last."""
    _refuse(schedule, "contributions to follow", _places(schedule), CELLS_LIMIT)
    _refuse(schedule, "moves", schedule.expanded(), MOVES_LIMIT)
    _refuse(schedule, "steps", schedule.steps, STEPS_LIMIT)


def _refuse(schedule: Schedule, what: str, found: int, limit: int) -> None:
    if found > limit:
        raise RoundelayError(
            f"{schedule.collective}/{schedule.name or '?'} over {schedule.ranks:,} ranks has "
            f"{found:,} {what}; at most {limit:,} can be shown: try a smaller n, such as -n 8"
        )
