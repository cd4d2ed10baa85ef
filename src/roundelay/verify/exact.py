"""Count contributions exactly, to say what is wrong: who is missing where, or counted twice."""

from __future__ import annotations

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


def counts(schedule: Schedule, columns: Ints) -> tuple[Ints, Ints]:
    """How often each place holds each rank's contribution, and how often it should.

    Returns:
        Two arrays: [participant, column, rank], and [column, rank] for places with the total.
    """
    shape = (schedule.ranks + schedule.helpers, len(columns), schedule.ranks)
    rank = np.arange(schedule.ranks)
    gives = schedule.before(rank[:, None], columns[None, :])
    values = np.zeros(shape, np.int64)
    values[rank, :, rank] = gives
    for step in schedule.moves(columns):
        apply(step, values, np.add)
    return values, gives.T.astype(np.int64)


def explain(schedule: Schedule, rank: int, chunk: int) -> tuple[Counterexample, Message]:
    """What is wrong at a place, and a sentence about it."""
    columns = np.array([chunk])
    values, wanted = counts(schedule, columns)
    missing = np.flatnonzero(values[rank, 0] < wanted[0]).tolist()
    doubled = np.flatnonzero(values[rank, 0] > wanted[0]).tolist()
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
    shape = (schedule.ranks + schedule.helpers, 1, schedule.ranks)
    rank = np.arange(schedule.ranks)
    values = np.zeros(shape, np.int64)
    values[rank, :, rank] = schedule.before(rank[:, None], columns[None, :])
    watched = (doubled or missing)[0]
    last, spread = None, int(np.count_nonzero(values[..., watched]))
    for step in schedule.moves(columns):
        apply(step, values, np.add)
        if doubled and (values[..., watched] > 1).any():
            return step.round, []
        if np.count_nonzero(values[..., watched]) != spread:
            spread, last = int(np.count_nonzero(values[..., watched])), step.round
    return last, np.flatnonzero(values[:, 0, watched]).tolist()


def _few(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown}, ... ({len(ranks)} in all)" if len(ranks) > 8 else shown
