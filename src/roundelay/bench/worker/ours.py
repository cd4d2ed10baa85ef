"""A worker of our own side: a rank of a Roundelay job that the environment describes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ... import __version__
from ...communicator import Communicator, init
from .calls import Calls, Cell, shared_gate
from .link import Link
from .pattern import Array


class Ours:
    """A communicator, as the measuring loop wants it."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.rank, self.ranks = comm.rank, comm.ranks
        self.version = f"roundelay {__version__}"

    def call(self, cell: Cell, x: Array, out: Array) -> Callable[[], Any]:
        """The call."""
        options: dict[str, Any] = {}
        if x.dtype.name != cell.dtype:  # NumPy has no such type
            options["dtype"] = cell.dtype
        if cell.algorithm != "auto":
            options["algorithm"] = cell.algorithm
        if cell.collective in ("all_reduce", "reduce", "reduce_scatter"):
            options["op"] = cell.op
        if cell.collective in ("broadcast", "reduce", "gather", "scatter"):
            options["root"] = cell.root
        method = getattr(self._comm, cell.collective)
        if cell.in_place and x.size == out.size:
            return partial(method, x, **options)
        return partial(method, x, out, **options)

    def empty(self, nbytes: int) -> Array:
        """Memory that all ranks of the node see."""
        memory: Array = self._comm.empty(nbytes, np.uint8)
        return memory

    def close(self) -> None:
        """Leave the job."""
        self._comm.close()


def main(address: str) -> None:
    """Connect, join the job, obey."""
    link = Link(address)
    rank, ranks = (int(os.environ[name]) for name in ("ROUNDELAY_RANK", "ROUNDELAY_RANKS"))
    free = sorted(os.sched_getaffinity(0))
    if ranks <= len(free):  # a core each, as MPI's launchers bind
        os.sched_setaffinity(0, {free[rank]})
    library = Ours(init())
    link.ready(library.rank, library.version)
    link.serve(Calls(library, shared_gate(link, library)).handlers)
    library.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
