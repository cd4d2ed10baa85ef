"""The states a schedule goes through: who holds what before, and after every step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..collectives import Bools
from ..errors import RoundelayError
from ..i18n import Message, message
from ..schedule import Schedule, apply, occupy
from .moves import Move, merged
from .sentences import what_happens, what_it_brings

Counts = npt.NDArray[np.uint8]

MOVES_LIMIT: Final = 200_000
"""Chunk moves up to which a schedule is shown."""
STEPS_LIMIT: Final = 10_000
"""Steps up to which a schedule is shown."""
CELLS_LIMIT: Final = 5 * 10**7
"""Places times contributors times states, up to which a schedule is shown."""


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
        RoundelayError: the schedule is too large to show, or is one for `groups` of ranks.
        ScheduleError: a step reads or adds to a place that holds nothing, or copies into one
            that it has already written.
    """
    _refuse_what_cannot_be_shown(schedule)
    wanted, counts = contributors(schedule), _start(schedule)
    complete = (counts == wanted).all(axis=-1)
    unchanged = np.zeros_like(complete)
    seen = [Frame(0, (), counts.copy(), complete, unchanged, message("The start."), None)]
    ordered = sorted(schedule.moves(), key=attrgetter("at"))
    steps = {at: list(group) for at, group in groupby(ordered, attrgetter("at"))}
    held: Bools = np.any(counts, axis=-1)
    for at in range(schedule.steps):
        for step in steps.get(at, ()):
            occupy(step, held)
            apply(step, counts, _add)
        seen.append(_after(schedule, seen[-1], merged(steps.get(at, ())), counts, wanted))
    return seen


def _after(
    schedule: Schedule, before: Frame, moves: tuple[Move, ...], counts: Counts, wanted: Bools
) -> Frame:
    complete = (counts == wanted).all(axis=-1)
    changed = (counts != before.counts).any(axis=-1)
    grown = (counts > 0).sum(axis=-1)[changed & ~complete]
    return Frame(
        before.step + 1,
        moves,
        counts.copy(),
        complete,
        changed,
        what_happens(schedule, moves, before.complete),
        what_it_brings(schedule, before.complete, complete, grown),
    )


def contributors(schedule: Schedule) -> Bools:
    """Whose contributions the total of a chunk is made of: shape (chunks, ranks)."""
    return schedule.before()[: schedule.ranks].T


def _start(schedule: Schedule) -> Counts:
    rank = np.arange(schedule.ranks)
    shape = (schedule.ranks + schedule.helpers, schedule.chunks, schedule.ranks)
    counts = np.zeros(shape, np.uint8)
    counts[rank, :, rank] = contributors(schedule).T
    return counts


def _add(a: Any, b: Any) -> Any:
    return np.minimum(a + b, 2)


def _refuse_what_cannot_be_shown(schedule: Schedule) -> None:
    if schedule.groups is not None:
        raise RoundelayError(
            f"a schedule for {len(schedule.groups)} groups of ranks; expected one over all "
            "ranks: make it a part of one with `then`"
        )
    places = (schedule.ranks + schedule.helpers) * schedule.chunks * schedule.ranks
    _refuse_above(schedule, places, CELLS_LIMIT, "contributions to follow")
    _refuse_above(schedule, schedule.expanded(), MOVES_LIMIT, "moves")
    _refuse_above(schedule, schedule.steps, STEPS_LIMIT, "steps")
    states = schedule.steps + 1
    _refuse_above(schedule, places * states, CELLS_LIMIT, "contributions to follow")


def _refuse_above(schedule: Schedule, found: int, limit: int, what: str) -> None:
    if found > limit:
        raise RoundelayError(
            f"{schedule.collective}/{schedule.name or '?'} over {schedule.ranks:,} ranks has "
            f"{found:,} {what}; at most {limit:,} can be shown: try a smaller n, such as -n 8"
        )
