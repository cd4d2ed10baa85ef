"""Who starts next: by priority and arrival, with backfill and preemption."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from math import inf
from typing import Final

from .nodes import Nodes
from .run import Run, Saving

BACKFILL: Final = 100
"""Jobs behind the first that are looked at."""


class Queue:
    """Jobs that wait, and those that run."""

    def __init__(self, nodes: Nodes, saving: Saving, *, backfill: bool) -> None:
        """Nobody waits.

        Args:
            nodes: where they run.
            saving: how long they take.
            backfill: whether jobs may pass the first, as long as it isn't delayed for all that is
                known (EASY; Lifka 1995, The ANL/IBM SP Scheduling System).
        """
        self.nodes, self.saving, self.backfill = nodes, saving, backfill
        self.waiting: list[Run] = []
        self.running: set[Run] = set()

    def add(self, run: Run) -> None:
        """A job waits; one that ran before has its old place."""
        bisect.insort(self.waiting, run, key=lambda r: (-r.arrival.priority, r.number))

    def serve(self, now: float, start: Callable[[Run], None], stop: Callable[[Run], None]) -> None:
        """Start what fits, and stop what has to make room."""
        while self.waiting:
            run = self.waiting[0]
            if not self.nodes.fits(run) and not self._make_room(run, stop):
                break
            self.waiting.remove(run)  # those that made room wait, too
            start(run)
        if self.backfill and len(self.waiting) > 1:
            self._pass(now, start)

    def _make_room(self, run: Run, stop: Callable[[Run], None]) -> bool:
        """Stop jobs of lower priority, the last started first, where that is enough."""
        priority, kind = run.arrival.priority, run.kind
        lower = [r for r in self.running if r.arrival.priority < priority]
        if not lower or self.nodes.room_without(lower, kind.block) < kind.blocks:
            return False
        for other in sorted(lower, key=lambda r: (-r.started, r.number)):
            stop(other)
            if self.nodes.fits(run):
                return True
        raise AssertionError("there is room without them")

    def _pass(self, now: float, start: Callable[[Run], None]) -> None:
        begins, extra = inf, 0
        known = False
        for run in self.waiting[1 : BACKFILL + 1]:
            if not self.nodes.fits(run):
                continue
            if not known:
                begins, extra = self._begins(self.waiting[0])
                known = True
            late = now + run.whole(self.saving) > begins
            if late and run.arrival.cards > extra:
                continue
            extra -= run.arrival.cards if late else 0
            self.waiting.remove(run)
            start(run)

    def _begins(self, first: Run) -> tuple[float, int]:
        """When enough will be free for the first job, and how many cards more than it takes."""
        kind = first.kind
        ends = sorted(self.running, key=lambda r: (r.planned, r.number))
        low, high = 1, len(ends) + 1
        while low < high:  # the fewest that have to end
            middle = (low + high) // 2
            if self.nodes.room_without(ends[:middle], kind.block) >= kind.blocks:
                high = middle
            else:
                low = middle + 1
        if low > len(ends):
            return inf, 0
        room = self.nodes.room_without(ends[:low], kind.block)
        return ends[low - 1].planned, (room - kind.blocks) * kind.block
