"""A rank that is started to measure, and obeys: see `bench.job`."""

from __future__ import annotations

import os
import sys

from ..bench.worker.link import Link
from ..communicator import init
from .measures import Measures


def main(address: str) -> None:
    """Connect, join the job, measure what is asked."""
    link = Link(address)
    rank, ranks = (int(os.environ[name]) for name in ("ROUNDELAY_RANK", "ROUNDELAY_RANKS"))
    free = sorted(os.sched_getaffinity(0))
    if ranks <= len(free):
        os.sched_setaffinity(0, {free[rank]})
    with init() as comm:
        link.ready(comm.rank, "probe")
        link.serve(Measures(comm).handlers)


if __name__ == "__main__":
    main(*sys.argv[1:])
