"""A short race of algorithms on this machine: a few calls of each, every result checked."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from importlib.util import find_spec
from typing import Final

from ..errors import NotBuilt, RoundelayError
from . import ours
from .cells import Point, Request, check_memory, count_of
from .contest import Contestant
from .controller import short_folder
from .figures import Figure
from .job import Job

LEAST_CALLS: Final = 3
MOST_CALLS: Final = 50


def race(
    collective: str, algorithms: Sequence[str], ranks: int, sizes: Sequence[int], seconds: float
) -> Generator[tuple[Point, Figure], None, None]:
    """Time algorithms in their usual form, on float32, between processes of this machine.

    Args:
        collective: its name.
        algorithms: their names.
        ranks: how many processes.
        sizes: bytes.
        seconds: for the calls of one algorithm at one size, if three calls fit.

    Raises:
        NotBuilt: the native core is not there.
        RoundelayError: memory is too small.
        SideLost: a process failed.
    """
    if find_spec("roundelay._native") is None:
        raise NotBuilt("nothing can be run between processes")
    request = Request([collective], [ranks], sizes, warmup=2, seconds=seconds)
    check_memory(request, 1)
    with short_folder() as folder:
        address = folder / "race.sock"
        job = Job("roundelay", ranks, ours.command(ranks, address), folder, address)
        with contextlib.closing(job):
            job.wait()
            for nbytes in sizes:
                count = count_of(collective, nbytes, ranks, request.dtype)
                for name in algorithms:
                    point = Point(collective, name, ranks, count, request.dtype, request.op, 0)
                    yield point, _figure(job, point, request)


def _figure(job: Job, point: Point, request: Request) -> Figure:
    runner = Contestant(job, in_place=point.usually_in_place, ours=True)
    refused = runner.prepare(point, request, check=True)
    if refused:
        raise RoundelayError(f"{point.collective}/{point.algorithm}: {refused}")
    calls = int(request.seconds / max(runner.call_seconds, 1e-6))
    runner.run(min(max(calls, LEAST_CALLS), MOST_CALLS), 1)
    figure = runner.figure()
    assert figure is not None
    return figure
