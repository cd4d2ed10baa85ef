"""Count contributions exactly, to say what is wrong: who is missing where, or counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..collectives import Ints
from ..i18n import Message, message
from ..schedule import Schedule, apply


@dataclass(frozen=True)
class Counterexample:
    """A place that does not hold its total.

    Attributes:
        rank, chunk: the place.
        missing: ranks whose contribution it lacks.
        doubled: ranks whose contribution it holds more than once.
        round: where that went wrong: the first round in which a contribution was counted
            twice, or the last that brought the missing one anywhere; None: it never moved.
        ranks: n.
    """

    rank: int
    chunk: int
    missing: list[int]
    doubled: list[int]
    round: int | None
    ranks: int


def counts(schedule: Schedule, columns: Ints) -> Iterator[tuple[int | None, Ints]]:
    """How often each place holds each rank's contribution, at the start and after every step.

    Yields:
        The round (None: the start) and the counts [participant, column, rank]: one array, which
        changes from step to step.
    """
    shape = (schedule.ranks + schedule.helpers, len(columns), schedule.ranks)
    rank = np.arange(schedule.ranks)
    values = np.zeros(shape, np.int64)
    values[rank, :, rank] = schedule.before(columns)[: schedule.ranks]
    yield None, values
    for step in schedule.moves(columns):
        apply(step, values, _add)
        yield step.round, values


def explain(schedule: Schedule, rank: int, chunk: int) -> tuple[Counterexample, Message]:
    """What is wrong at a place, and a sentence about it."""
    columns = np.array([chunk])
    wanted = schedule.before(columns)[: schedule.ranks, 0]
    for _, values in counts(schedule, columns):
        held = values[rank, 0]
    missing = np.flatnonzero(held < wanted).tolist()
    doubled = np.flatnonzero(held > wanted).tolist()
    where, reached = _where(schedule, columns, missing, doubled)
    found = Counterexample(rank, chunk, missing, doubled, where, schedule.ranks)
    if doubled:
        text = "rank {rank}, chunk {chunk} counts what ranks {ranks} gave more than once"
    elif reached:
        text = (
            "rank {rank}, chunk {chunk} lacks what ranks {ranks} gave, "
            "which got no farther than ranks {reached}"
        )
    else:
        text = "rank {rank}, chunk {chunk} lacks what ranks {ranks} gave"
    why = message(
        text, rank=rank, chunk=chunk, ranks=_few(doubled or missing), reached=_few(reached)
    )
    if where is not None:
        why = message("{why} (round {where})", why=why, where=where)
    return found, why


def _where(
    schedule: Schedule, columns: Ints, missing: list[int], doubled: list[int]
) -> tuple[int | None, list[int]]:
    watched = (doubled or missing)[0]
    last, spread = None, None
    for number, values in counts(schedule, columns):
        holds = values[:, 0, watched]
        if doubled and (holds > 1).any():
            return number, []
        if np.count_nonzero(holds) != spread:
            spread, last = np.count_nonzero(holds), number
    return last, np.flatnonzero(holds).tolist()


def _add(a: Ints, b: Ints) -> Ints:
    total: Ints = np.minimum(a + b, 2**61)  # enough to be told from 1, and never past 64 bits
    return total


def _few(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown}, ... ({len(ranks)} in all)" if len(ranks) > 8 else shown
