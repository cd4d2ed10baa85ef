"""Measure one point: all sides in turn, block by block, in one run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ..errors import RoundelayError
from .cells import Point, Request
from .figures import Figure, durations
from .job import Job, SideLost

BLOCKS: Final = 6
FEW_BLOCKS: Final = 3
_SLOW: Final = 0.02  # seconds a call: blocks of such calls need no long lead
_MIN_CALLS: Final = 5
_MAX_CALLS: Final = 600
_PREPARE_SECONDS: Final = 120.0
_SPARE_SECONDS: Final = 30.0
_LARGE_CHECK: Final = 1 << 20


class Side(Protocol):
    """What answers commands with a reply of every rank."""

    @property
    def name(self) -> str:
        """Of the library."""

    def ask(self, seconds: float, do: str, **command: Any) -> list[dict[str, Any]]:
        """See `Job.ask`."""


@dataclass
class Contestant:
    """A side in one form at one point, and what it has shown so far.

    Attributes:
        job: the side.
        in_place: the form.
        ours: whether it is Roundelay.
        nanoseconds: of each timed call.
        wrong: elements; None if nothing was checked.
        call_seconds: of one call with all that goes with it.
    """

    job: Side
    in_place: bool
    ours: bool
    nanoseconds: list[int] = field(default_factory=list)
    wrong: int | None = None
    call_seconds: float = 0.0

    @property
    def form(self) -> str:
        """What the worker knows it by."""
        return "in place" if self.in_place else "out of place"

    def prepare(self, point: Point, request: Request, check: bool) -> str | None:
        """Get ready, check results, and time a few calls; why not, if the side has no such call.

        Raises:
            SideLost: the side failed.
        """
        cell = point.cell(self.in_place)._asdict()
        if not self.ours:
            cell["shared"] = False
        replies = self.job.ask(
            _PREPARE_SECONDS, "prepare", form=self.form, cell=cell, warmup=max(1, request.warmup)
        )
        for reply in replies:
            if "unsupported" in reply:
                return str(reply["unsupported"])
        for _ in range(request.checks if check else 0):
            self.check()
        timed = self.job.ask(_PREPARE_SECONDS, "run", form=self.form, calls=2, lead=1)
        self.call_seconds = max(reply["wall"] for reply in timed) / 3
        return None

    def check(self) -> None:
        """Make a call on known data and count wrong elements, over all ranks."""
        replies = self.job.ask(_PREPARE_SECONDS, "check", form=self.form)
        self.wrong = (self.wrong or 0) + sum(reply["wrong"] for reply in replies)

    def run(self, calls: int, lead: int) -> None:
        """One block of calls."""
        limit = _SPARE_SECONDS + 20 * self.call_seconds * (calls + lead)
        replies = self.job.ask(limit, "run", form=self.form, calls=calls, lead=lead)
        self.nanoseconds += durations([reply["spans"] for reply in replies])

    def figure(self) -> Figure | None:
        """The median, if there were calls."""
        if not self.nanoseconds:
            return None
        return Figure(statistics.median(self.nanoseconds) / 1e3, len(self.nanoseconds), self.wrong)


class Contest:
    """Ours and the rivals over n ranks; rivals that fail drop out.

    Attributes:
        ours: our job.
        rivals: the others by name; who drops out is removed.
    """

    def __init__(
        self, ours: Side, rivals: dict[str, Job], request: Request, tell: Callable[[str], None]
    ) -> None:
        self.ours, self.rivals = ours, rivals
        self._request, self._tell = request, tell

    def measure(self, point: Point) -> tuple[dict[bool, Figure], dict[str, float | None]]:
        """Our figures by form, and the rivals' microseconds in the usual form.

        Raises:
            SideLost: our own side failed.
            RoundelayError: our side does not have the call.
        """
        usual, *others = point.forms
        sides = [Contestant(self.ours, usual, True)]
        sides += [Contestant(job, usual, False) for job in self.rivals.values()]
        sides += [Contestant(self.ours, form, True) for form in others]
        able = [side for side in sides if self._attempt(side, lambda s: self._prepare(s, point))]
        for turn in range(blocks := _blocks(able)):
            for side in able[turn % len(able) :] + able[: turn % len(able)]:
                self._attempt(side, lambda s: self._block(s, blocks))
        for side in able if self._request.checks else []:
            if side.ours:  # once more, after all these calls
                side.check()
        found = {s.job.name: s for s in able if not s.ours and s.job.name in self.rivals}
        ours = {s.in_place: figure for s in able if s.ours and (figure := s.figure())}
        theirs = {name: _microseconds(found.get(name)) for name in self.rivals}
        return ours, theirs

    def _prepare(self, side: Contestant, point: Point) -> bool:
        check = side.ours or point.nbytes <= _LARGE_CHECK
        why = side.prepare(point, self._request, check)
        if why is not None and side.ours and side.in_place == point.usually_in_place:
            raise RoundelayError(f"{point.collective}, {side.form}: {why}")
        if side.wrong and not side.ours:
            self._tell(f"{side.job.name}: {side.wrong} wrong elements in {point.collective}")
        return why is None

    def _block(self, side: Contestant, blocks: int) -> bool:
        if not side.ours and side.job.name not in self.rivals:
            return False
        calls = math.ceil(_calls(side, self._request) / blocks)
        side.run(calls, 1 if side.call_seconds > _SLOW else max(1, self._request.warmup))
        return True

    def _attempt(self, side: Contestant, work: Callable[[Contestant], bool]) -> bool:
        try:
            return work(side)
        except SideLost as lost:
            if side.ours:
                raise
            self._tell(f"going on without {lost}")
            self.rivals.pop(side.job.name).close()
            return False


def _blocks(sides: Sequence[Contestant]) -> int:
    return FEW_BLOCKS if any(side.call_seconds > _SLOW for side in sides) else BLOCKS


def _calls(side: Contestant, request: Request) -> int:
    if request.iters is not None:
        return request.iters
    return min(max(int(request.seconds / max(side.call_seconds, 1e-9)), _MIN_CALLS), _MAX_CALLS)


def _microseconds(side: Contestant | None) -> float | None:
    figure = side.figure() if side else None
    return figure.time_us if figure else None
