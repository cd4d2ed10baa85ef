"""Ranks that are alike have equal times, so one of each kind is enough.

Two ranks are of one kind where they have messages of the same kinds, and two messages where their
round, step, bytes, latency and rates are the same, and their ends are of one kind each. Then all
that a moment is the maximum of is equal, too, in every step. Kinds are found by starting with one
and parting what differs, until nothing does (colour refinement).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .phases import Phases

Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

REFINEMENTS: Final = 24
"""After so many the ranks are taken to be all different, or to be alike at some distance."""


class Kinds(NamedTuple):
    """Which ranks and messages are alike.

    Attributes:
        phases: over kinds of participants, with a message of each kind.
        messages: [kind of message], one that is of it.
        of: [message], its kind.
        participants: [participant], its kind.
    """

    phases: Phases
    messages: Ints
    of: Ints
    participants: Ints

    @classmethod
    def all_different(cls, phases: Phases) -> Kinds:
        """Every message and every participant is one of its own."""
        each = np.arange(sum(len(p) for p in phases.phases))
        return cls(phases, each, each, np.arange(phases.participants))


def kinds(phases: Phases, columns: Iterable[npt.NDArray[Any]], distances: Iterable[int]) -> Kinds:
    """The kinds of a schedule's ranks and messages.

    Args:
        phases: the schedule's.
        columns: each [message]; messages with different values are different.
        distances: how far apart alike ranks may be, such as a node's number of cards; tried where
            starting with one kind takes too long.
    """
    graph = _Graph(phases, columns)
    found = graph.refined(np.zeros(phases.participants, np.uint64), REFINEMENTS)
    for distance in distances:
        if found is not None:
            break
        start = np.arange(phases.participants) % distance
        start[phases.schedule.ranks :] = phases.participants + np.arange(phases.schedule.helpers)
        found = graph.refined(_mixed(start.astype(np.uint64)), 2)
    if found is None:
        return Kinds.all_different(phases)
    return _quotient(phases, *graph.numbered(found))


def _mixed(x: Hashes) -> Hashes:
    """Numbers spread over 64 bits (the finalizer of SplitMix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class _Graph:
    """Participants and messages, with a hash for what each kind is."""

    def __init__(self, phases: Phases, columns: Iterable[npt.NDArray[Any]]) -> None:
        self.participants = phases.participants
        self.src, self.dst = phases.column("src"), phases.column("dst")
        names = ("number", "start", "chunks", "added")
        own = np.zeros(len(self.src), np.uint64)
        for column in (*map(phases.column, names), *columns):
            if len(column) and (column == column[0]).all():
                continue  # parts nothing
            own = _mixed(own ^ np.ascontiguousarray(column, np.float64).view(np.uint64))
        self.own = own
        self.order = [np.argsort(ends, kind="stable") for ends in (self.src, self.dst)]

    def refined(self, kind: Hashes, most: int) -> Hashes | None:
        """[participant], a hash that is equal for those of one kind; None when not done."""
        count = len(np.unique(kind))
        for _ in range(most):
            message = self.messages(kind)
            kind = _mixed(kind)
            sides = zip((self.src, self.dst), self.order, strict=True)
            for side, (ends, order) in enumerate(sides):
                kind = kind + _sums(_mixed(message + np.uint64(side)), ends, order, len(kind))
            found = len(np.unique(kind))
            if found == count:
                return kind
            count = found
        return None

    def messages(self, kind: Hashes) -> Hashes:
        """[message], the same for messages."""
        return _mixed(_mixed(self.own ^ kind[self.src]) ^ kind[self.dst])

    def numbered(self, kind: Hashes) -> tuple[Ints, Ints, Ints]:
        """[participant] its kind; a message of each kind, in order; and [message] its kind."""
        _, participants = np.unique(kind, return_inverse=True)
        _, first, of = np.unique(self.messages(kind), return_index=True, return_inverse=True)
        place = np.empty(len(first), np.int64)
        place[np.argsort(first)] = np.arange(len(first))
        return participants.astype(np.int64), np.sort(first).astype(np.int64), place[of]


def _sums(values: Hashes, ends: Ints, order: Ints, count: int) -> Hashes:
    """[participant], the sum of the values at it, modulo 2**64."""
    total = np.zeros(count, np.uint64)
    if len(values):
        at = ends[order]
        first = np.flatnonzero(np.diff(at, prepend=-1))
        total[at[first]] = np.add.reduceat(values[order], first)
    return total


def _quotient(phases: Phases, participants: Ints, messages: Ints, of: Ints) -> Kinds:
    made = []
    at = 0
    for phase in phases.phases:
        some = messages[(messages >= at) & (messages < at + len(phase))] - at
        at += len(phase)
        made.append(
            replace(
                phase,
                src=participants[phase.src[some]],
                dst=participants[phase.dst[some]],
                round=phase.round[some],
                start=phase.start[some],
                chunks=phase.chunks[some],
                added=phase.added[some],
            )
        )
    count = int(participants.max()) + 1
    smaller = Phases(phases.schedule, phases.rounds, tuple(made), count)
    return Kinds(smaller, messages, of, participants)
