"""The native recurrence over a schedule's phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..errors import NotBuilt
from .phases import Phase, Phases
from .recurrence import Costs, Times
from .waits import RoundWait


class Machine:
    """A schedule's phases, made ready for the native core."""

    def __init__(self, phases: Phases) -> None:
        """For one schedule, and any costs.

        Raises:
            NotBuilt: the native core is not there.
        """
        try:
            from .._native import Recurrence
        except ImportError:
            raise NotBuilt("nothing can be timed") from None
        self._participants = phases.participants
        self._native = Recurrence(phases.participants, phases.rounds)
        self._order = []
        offset = 0
        for phase in phases.phases:
            order = np.lexsort((phase.start, phase.round))
            self._add(phase, order)
            self._order.append(offset + order)
            offset += len(phase)
        self._sorted = np.concatenate(self._order) if self._order else np.empty(0, np.int64)

    def _add(self, phase: Phase, order: Times) -> None:
        bounds = np.searchsorted(phase.round[order], np.arange(len(phase.times) + 1))
        self._native.add(
            phase.first,
            phase.times,
            bounds.astype(np.int64),
            np.ascontiguousarray(phase.src[order]),
            np.ascontiguousarray(phase.dst[order]),
            np.ascontiguousarray(phase.start[order]),
            _flat(phase.waits),
            _flat(phase.before),
        )

    def _columns(self, costs: Costs) -> tuple[Times, ...]:
        return tuple(np.ascontiguousarray(c[self._sorted], np.int64) for c in costs)

    def run(self, costs: Costs, *, steady: bool = True) -> Times:
        """[participant] when its last message has ended, in ps.

        Args:
            costs: of each message.
            steady: multiply where repetitions go on alike; the result is equal, and comes sooner.
        """
        ends = np.zeros(self._participants, np.int64)
        self._native.run(self._columns(costs), ends, steady)
        return ends

    def sample(
        self,
        costs: Costs,
        samples: int,
        step: npt.NDArray[np.float32],
        card: npt.NDArray[np.float32],
        link: npt.NDArray[np.float32],
        links: Times,
        seed: int,
        threads: int,
    ) -> Times:
        """[sample] when it is over, with factors drawn from tables; see `disturb`."""
        found = np.zeros(samples, np.int64)
        ordered = np.ascontiguousarray(links[self._sorted]) if len(links) else links
        self._native.sample(self._columns(costs), step, card, link, ordered, seed, threads, found)
        return found


def _flat(waits: Sequence[RoundWait]) -> Times:
    return np.array([tuple(w) for w in waits], np.int64).reshape(-1)
