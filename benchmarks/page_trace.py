"""Record a long run, for the figures of the page: four ranks all-reduce again and again.

    python benchmarks/page_trace.py FILE [EVENTS]

FILE gets the timeline of all ranks, as `roundelay serve --trace FILE` takes it, with a million
events unless it is said otherwise.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from roundelay.formats.timeline import write_timeline
from roundelay.run.launch import rank_environments

RANKS = 4
EVENTS = 1_000_000
ELEMENTS = 1024
PATIENCE = 600  # seconds


def record(file: Path, events: int) -> None:
    """One of the ranks; rank 0 writes the file."""
    from roundelay.communicator import init

    with init() as comm:
        x = np.zeros(ELEMENTS, np.float32)
        with comm.trace() as trace:
            comm.all_reduce(x, algorithm="ring")
        each = len(trace.timeline.of(comm.rank))
        calls = -(-events // (each * comm.ranks))
        with comm.trace(events=each * calls) as trace:
            for _ in range(calls):
                comm.all_reduce(x, algorithm="ring")
        if comm.rank == 0:
            assert not trace.timeline.lost
            assert len(trace.timeline) >= events
            file.write_bytes(write_timeline(trace.timeline))


def recorded(file: Path, events: int = EVENTS) -> Path:
    """A file with the timeline of a real run of at least so many events."""
    command = [sys.executable, __file__, str(file), str(events), "--rank"]
    processes = [
        subprocess.Popen(command, env=environment)
        for environment in rank_environments(os.environ, RANKS)
    ]
    try:
        if sum([p.wait(PATIENCE) for p in processes]):
            raise SystemExit("a rank failed")
    finally:
        for p in processes:
            p.kill()
    return file


if __name__ == "__main__":
    path, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else EVENTS
    (record if "--rank" in sys.argv else recorded)(path, count)
