"""A side for tests of the benchmark: ranks that copy through a file, or do it wrong, or die.

python bench_stand_in.py ADDRESS RANK RANKS FILE HOW
"""

import mmap
import os
import sys
import time
from functools import partial

import numpy as np

from roundelay.bench.worker.calls import Calls, shared_gate
from roundelay.bench.worker.link import Link

ROOM = 1 << 20


class StandIn:
    version = "stand-in 1"

    def __init__(self, rank, ranks, file, how, gate):
        self.rank, self.ranks, self.how, self.gate = rank, ranks, how, gate
        with open(file, "r+b") as opened:
            self.memory = np.frombuffer(mmap.mmap(opened.fileno(), ranks * ROOM), np.uint8)

    def call(self, cell, x, out):
        if cell.collective == "broadcast" and not cell.in_place:
            return None
        return partial(self.exchange, cell, x, out)

    def exchange(self, cell, x, out):
        if self.how == "dies" and self.rank == 1:
            os._exit(3)
        if self.how == "hangs" and self.rank == 1:
            time.sleep(1000)
        if self.how == "fails" and self.rank == 1:
            raise ValueError("nothing works")
        given = np.frombuffer(self.memory, x.dtype).reshape(self.ranks, -1)[:, : x.size]
        given[self.rank] = x
        self.gate()
        piece = cell.elements // self.ranks
        own = slice(self.rank * piece, (self.rank + 1) * piece)
        match cell.collective:
            case "all_reduce":
                out[:] = given.sum(axis=0, dtype=x.dtype)
            case "reduce_scatter":
                out[:] = given[:, own].sum(axis=0, dtype=x.dtype)
            case "all_gather":
                out[:] = given.reshape(-1)
            case "all_to_all":
                out[:] = given[:, own].reshape(-1)
            case _:
                out[:] = given[cell.root]
        if self.how == "wrong" and self.rank == 0:
            out[-1] += 1
        self.gate()

    def empty(self, nbytes):
        return np.empty(nbytes, np.uint8)

    def close(self):
        pass


def main(address, rank, ranks, file, how):
    link = Link(address)
    if how == "late":
        time.sleep(1000)
    side = StandIn(int(rank), int(ranks), file, how, lambda: gate())
    gate = shared_gate(link, side)
    link.ready(side.rank, side.version)
    link.serve(Calls(side, gate).handlers)


if __name__ == "__main__":
    main(*sys.argv[1:])
