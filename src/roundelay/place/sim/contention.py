"""Jobs that share links: how much longer their exchanges take.

Jobs don't know of one another, so their exchanges meet by chance, as often as they are under way.
Those that meet on a link share it fairly (max-min): a job has an equal part of it, or what the
others leave where that is more. Times are means over steps, in which a job that takes longer is
met more often, so they are found by going round until they no longer change: the approximation of
Bard and Schweitzer (Bard 1979, Some Extensions to Multiclass Queueing Network Analysis) for a link
as a server that its jobs share. It is exact where jobs do nothing but exchange or rarely meet, and
up to 15 % above the exact mean between.

Where switches have as much above as below, nobody slows anybody: what others leave of a link is
what a job's own network cards can fill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from ..job import Ints
from ..objective import Crossing
from ..traffic import Floats
from .run import Run

ROUNDS: Final = 100
NEAR: Final = 1e-4
"""Part of an exchange's time that a round may still change."""


class Crowd(NamedTuple):
    """A job that runs.

    Attributes:
        crossing: what it puts on links between switches.
        step: seconds of one, alone; infinite for a job whose exchange takes no part of it.
        exchange: seconds of one, alone.
    """

    crossing: Crossing
    step: float
    exchange: float


def longer(jobs: Sequence[tuple[Crossing, float]]) -> Floats:
    """[job] seconds that a step takes more, as others are on its links.

    Args:
        jobs: what each puts on links, and seconds of its step alone.
    """
    alone = np.concatenate([c.wire for c, _ in jobs])
    steps = np.array([step for _, step in jobs])
    whose = np.repeat(np.arange(len(jobs)), [len(c.wire) for c, _ in jobs])
    first = np.cumsum([0, *(len(c.wire) for c, _ in jobs)])
    part = np.concatenate([c.part + at for (c, _), at in zip(jobs, first, strict=False)])
    seconds = np.concatenate([c.seconds for c, _ in jobs])
    link = np.unique(np.concatenate([c.link for c, _ in jobs]), return_inverse=True)[1]
    own = np.unique(link * len(jobs) + whose[part], return_inverse=True)[1]
    wire = alone.copy()
    for _ in range(ROUNDS):
        step = (steps + np.bincount(whose, wire - alone, len(jobs)))[whose[part]]
        there = _others(wire[part] / step, link, own)
        used = _others(seconds / step, link, own)
        share = np.maximum(1 / (1 + there), 1 - used)
        met = alone.copy()
        np.maximum.at(met, part, seconds / share)
        if (np.abs(met - wire) <= NEAR * met).all():
            break
        wire = (wire + met) / 2
    return np.bincount(whose, met - alone, len(jobs)).astype(np.float64)


def _others(value: Floats, link: Ints, own: Ints) -> Floats:
    """[entry] the sum over the others' entries of its link."""
    every, mine = (np.bincount(at, value).astype(np.float64)[at] for at in (link, own))
    return np.maximum(every - mine, 0.0)


class Contention:
    """Jobs that run, by the links that they cross."""

    def __init__(self) -> None:
        """Nobody runs."""
        self._jobs: dict[Run, Crowd] = {}
        self._on: dict[int, dict[Run, None]] = {}
        self._touched: dict[Run, None] = {}

    def add(self, run: Run, crowd: Crowd) -> None:
        """A job starts."""
        if len(crowd.crossing.link) and crowd.step < np.inf:
            self._jobs[run] = crowd
            for link in crowd.crossing.link.tolist():
                self._on.setdefault(link, {})[run] = None
            self._touched[run] = None

    def drop(self, run: Run) -> None:
        """It has its cards no longer."""
        crowd = self._jobs.pop(run, None)
        self._touched.pop(run, None)
        if crowd:
            for link in {*crowd.crossing.link.tolist()}:
                del self._on[link][run]
                self._touched |= self._on[link]

    def changed(self) -> Iterator[tuple[Run, float, float]]:
        """Jobs that others have come to or left since, and how many times longer they take.

        Yields:
            A job, a step of it over one alone, and an exchange of it likewise.
        """
        near = self._touched
        for run in (known := list(near)):
            for link in self._jobs[run].crossing.link.tolist():
                for other in self._on[link]:
                    if other not in near:
                        near[other] = None
                        known.append(other)
        self._touched = {}
        if not near:
            return
        more = longer([(self._jobs[run].crossing, self._jobs[run].step) for run in near])
        for run, seconds in zip(near, more.tolist(), strict=True):
            crowd = self._jobs[run]
            yield run, 1 + seconds / crowd.step, 1 + seconds / crowd.exchange
