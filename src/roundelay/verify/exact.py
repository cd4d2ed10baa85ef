"""Count contributions exactly, to say what is wrong: who is missing where, or counted twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..collectives import Ints
from ..i18n import Message, message
from ..schedule import Schedule, Step, apply
from .numbers import AddAndMix, random_prime, words

CELLS: Final = 2**22
"""Counts held in memory at a time: 32 MB."""


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


def counts(
    schedule: Schedule, columns: Ints, givers: Ints | None = None
) -> Iterator[tuple[Step | None, Ints]]:
    """How often each place holds each giver's contribution, at the start and after every step.

    Args:
        schedule: any schedule.
        columns: the chunks to look at, rising.
        givers: the ranks whose contributions are followed; None: all.

    Yields:
        The step (None: the start) and the counts [participant, column, giver]: one array, which
        changes from step to step.
    """
    givers = np.arange(schedule.ranks) if givers is None else givers
    values = np.zeros((schedule.ranks + schedule.helpers, len(columns), len(givers)), np.int64)
    values[givers, :, np.arange(len(givers))] = schedule.before(columns)[givers]
    yield None, values
    for step in schedule.moves(columns):
        apply(step, values, _add)
        yield step, values


def explain(schedule: Schedule, rank: int, chunk: int) -> tuple[Counterexample, Message]:
    """What is wrong at a place, and a sentence about it.

    Where there are too many contributions to follow each of them, the ranks named are some of
    those that are missing or doubled.
    """
    columns = np.array([chunk])
    givers = _suspects(schedule, columns, rank)
    wanted = schedule.before(columns)[givers, 0]
    for _, values in counts(schedule, columns, givers):
        held = values[rank, 0]
    missing = givers[held < wanted].tolist()
    doubled = givers[held > wanted].tolist()
    where, reached = _where(schedule, columns, (doubled or missing)[0], bool(doubled))
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


def _suspects(schedule: Schedule, columns: Ints, rank: int) -> Ints:
    """Ranks to follow one by one: all who give, or few enough, of whom one is not counted right.

    Groups of ranks are followed together, on random numbers, until the first group that is wrong
    is small: as many groups as fit into `CELLS`.
    """
    participants = schedule.ranks + schedule.helpers
    at_once = max(2, CELLS // participants)
    givers = np.arange(schedule.ranks)
    if schedule.ranks > at_once:
        givers = np.flatnonzero(schedule.before(columns)[: schedule.ranks, 0])
        others = np.setdiff1d(np.arange(schedule.ranks), givers)[:1]  # who has nothing to give
        givers = givers if len(givers) else others
    rng, add = np.random.default_rng(), AddAndMix(random_prime())
    while len(givers) > at_once:
        groups = np.array_split(givers, min(at_once, len(givers)))
        values = np.zeros((participants, len(columns), len(groups), 2), np.uint64)
        for g, members in enumerate(groups):
            values[members, :, g, 0] = words(rng, (len(members), 1))
        wanted = [sum(values[m, 0, g, 0].tolist()) % int(add.prime) for g, m in enumerate(groups)]
        for step in schedule.moves(columns):
            apply(step, values, add)
        wrong = [int(v) != w for v, w in zip(values[rank, 0, :, 0], wanted, strict=True)]
        givers = groups[wrong.index(True) if any(wrong) else 0]
    return givers


def _where(
    schedule: Schedule, columns: Ints, giver: int, doubled: bool
) -> tuple[int | None, list[int]]:
    """The round where a contribution went wrong, and the places it got to."""
    last = None
    holders = schedule.before(columns)[:, 0] & (
        np.arange(schedule.ranks + schedule.helpers) == giver
    )
    for step, values in counts(schedule, columns, np.array([giver])):
        if step is None:
            continue
        now = values[step.dst, 0, 0]
        if doubled and (now > 1).any():
            return step.round, []
        if ((now > 0) != holders[step.dst]).any():
            holders[step.dst] = now > 0
            last = step.round
    return last, np.flatnonzero(holders).tolist()


def _add(a: Ints, b: Ints) -> Ints:
    total: Ints = np.minimum(a + b, 2**61)  # enough to be told from 1, and never past 64 bits
    return total


def _few(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{shown}, ... ({len(ranks)} in all)" if len(ranks) > 8 else shown
