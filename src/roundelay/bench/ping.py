"""How long a word takes from one core to another: the least that any exchange can take."""

from __future__ import annotations

import os
import statistics
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .job import Command, Job
from .ours import environment
from .worker.link import Link

ROUNDS: Final = 500
_TIMES: Final = 5


def available() -> bool:
    """Whether the native module can do it."""
    try:
        return hasattr(import_module("roundelay._native"), "ping")
    except ImportError:
        return False


def command(address: Path) -> Command:
    """How to start the two processes."""
    line = [sys.executable, "-m", __spec__.name, str(address)]
    return Command([[*line, "0"], [*line, "1"]], [environment()] * 2)


def ping(job: Job) -> float:
    """Nanoseconds one way, over the job of `command`: the median of several series."""
    found: list[float] = []
    for _ in range(_TIMES):
        job.page[:] = bytes(len(job.page))
        found += [reply["ns"] for reply in job.ask(10.0, "ping", rounds=ROUNDS)]
    return statistics.median(found)


def main(address: str, role: str) -> None:
    """One of the two processes, on a core of its own if there are two."""
    cores = sorted(os.sched_getaffinity(0))
    link = Link(address)
    os.sched_setaffinity(0, {cores[int(role) % len(cores)]})
    native: Any = import_module("roundelay._native")
    link.ready(int(role), "ping")

    def answer(rounds: int) -> dict[str, Any]:
        return {"ns": native.ping(link.page, int(role), rounds)}

    link.serve({"ping": answer})


if __name__ == "__main__":
    main(*sys.argv[1:])
