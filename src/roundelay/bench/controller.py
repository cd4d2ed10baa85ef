"""Run a benchmark: start the sides, measure the grid, and leave nothing behind."""

from __future__ import annotations

import contextlib
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..algorithms import algorithms, find
from ..errors import RoundelayError
from . import ours, ping
from .cells import Point, Request, check_memory, count_of
from .contest import Contest
from .figures import Line, as_json
from .job import Command, Job, SideLost
from .machine import machine
from .rivals import RIVALS

Tell = Callable[[str], None]
Predict = Callable[[Point], float | None]
"""What a point is predicted to take, in microseconds; None where nothing is known."""
_SOCKET_ROOM = 70  # a Unix socket's path ends at 108 characters


class Bench:
    """One run of the benchmark.

    Attributes:
        request: what to measure.
        rivals: those that are installed, of the ones asked for.
        missing: the others.
        lines: what has been measured.
    """

    def __init__(self, request: Request, tell: Tell, predict: Predict | None = None) -> None:
        """Find the rivals.

        Args:
            request: what to measure.
            tell: takes what to say about missing and failing rivals.
            predict: says what each point is predicted to take; None for nothing.

        Raises:
            RoundelayError: none of the rivals asked for is here, or memory is too small.
        """
        self.request, self._tell, self._predict = request, tell, predict
        self.rivals = [name for name in request.against if RIVALS[name].python() is not None]
        self.missing = [name for name in request.against if name not in self.rivals]
        if request.against and not self.rivals:
            raise RoundelayError("; ".join(map(_how_to_get, self.missing)))
        for name in self.missing:
            tell(_how_to_get(name))
        check_memory(request, 1 + len(self.rivals))
        self._points = {n: list(points(request, n)) for n in request.ranks}
        self.lines: list[Line] = []
        self._versions: dict[str, str | None] = dict.fromkeys(self.missing)
        self._our_command = ours.command

    def run(self, show: Callable[[Line], None]) -> None:
        """Measure; each line is shown as soon as it is there.

        Raises:
            RoundelayError: our own side failed.
        """
        with short_folder() as folder:
            for n in self.request.ranks:
                self._measure(n, folder / str(n), show)

    def _measure(self, n: int, folder: Path, show: Callable[[Line], None]) -> None:
        folder.mkdir()
        with contextlib.ExitStack() as stack:
            prober = self._prober(folder, stack)
            our = self._start("roundelay", n, self._our_command, folder, stack)
            theirs = self._start_rivals(n, folder, stack)
            contest = Contest(our, theirs, self.request, self._tell)
            for point in self._points[n]:
                ping_ns = ping.ping(prober) if prober else None
                figures, rivals = contest.measure(point)
                rivals = {name: rivals.get(name) for name in self.request.against}
                predicted = self._predict(point) if self._predict else None
                line = Line(point, figures, rivals, ping_ns, predicted)
                self.lines.append(line)
                show(line)

    def _start(self, name: str, n: int, command: Callable[[int, Path], Command], folder: Path,
               stack: contextlib.ExitStack) -> Job:  # fmt: skip
        address = folder / f"{name}.sock"
        job = Job(name, n, command(n, address), folder, address)
        stack.callback(job.close)
        job.wait()
        self._versions[name] = job.version
        return job

    def _start_rivals(self, n: int, folder: Path, stack: contextlib.ExitStack) -> dict[str, Job]:
        started = {}
        for name in self.rivals:
            rival = RIVALS[name]
            try:
                job = self._start(name, n, rival.command, folder, stack)
                if rival.says not in job.version:
                    raise SideLost(f"{name}: found {job.version!r}, expected {rival.says}")
                started[name] = job
            except SideLost as lost:
                self._tell(f"going on without {lost}")
        return started

    def _prober(self, folder: Path, stack: contextlib.ExitStack) -> Job | None:
        if not ping.available():
            return None
        return self._start("ping", 2, lambda _, address: ping.command(address), folder, stack)

    def as_json(self) -> dict[str, Any]:
        """The value of `--json`."""
        pings = [line.ping_ns for line in self.lines if line.ping_ns is not None]
        versions = {name: v for name, v in self._versions.items() if name != "ping"}
        middle = statistics.median(pings) if pings else None
        return as_json(self.lines, machine(), versions, middle)


def points(request: Request, n: int) -> Iterator[Point]:
    """The points of the grid over n ranks.

    Raises:
        RoundelayError: there is no algorithm of that name, or it needs another n.
    """
    for collective in request.collectives:
        names = list(_algorithms(collective, request.algorithm, n))
        for nbytes in request.sizes:
            count = count_of(collective, nbytes, n, request.dtype)
            for name in names:
                yield Point(collective, name, n, count, request.dtype, request.op, request.root,
                            request.shared)  # fmt: skip


def _algorithms(collective: str, asked: str, n: int) -> Iterator[str]:
    if asked == "all":
        yield from (a.name for a in algorithms(collective) if a.fits(n))
    elif asked == "auto":
        yield asked
    else:
        algorithm = find(collective, asked)
        algorithm.resolve(n, {})  # or it says what it needs
        yield algorithm.name


def _how_to_get(name: str) -> str:
    rival = RIVALS[name]
    return (
        f"{name} is not installed here: pip install {rival.package}"
        f"{'' if rival.package == 'torch' else ' mpi4py'}, or name a Python that has it in "
        f"{rival.variable}"
    )


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A folder that only we can enter; Unix sockets need a short path."""
    where = tempfile.gettempdir()
    made = tempfile.mkdtemp("", "roundelay-bench-", where if len(where) < _SOCKET_ROOM else "/tmp")
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
