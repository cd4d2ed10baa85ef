"""What ranks do in the tests of connections: each function runs in every rank of a job."""

import sys
import time

import numpy as np
from rank_programs import everybody, numbers

import roundelay as rl
from roundelay.communicator import init


def main(name, arguments):
    """An error of start-up is printed like one of an exchange."""
    try:
        comm = init(timeout=20)
    except rl.RoundelayError as error:
        told(error)
        return
    globals()[name](comm, *arguments)
    comm.close()


def told(error):
    rank = getattr(error, "rank", -1)
    print(f"{type(error).__name__} {rank} {time.time():.3f} {error}", flush=True)


def sums(comm, size, calls, late=0.0):
    """All-reduces whose results are looked at; before the second the last rank is late."""
    every = [everybody(comm.ranks, size, salt=salt) for salt in range(3)]
    expected = [np.sum(each, axis=0) for each in every]
    try:
        for k in range(calls):
            if k == 1 and comm.rank == comm.ranks - 1:
                time.sleep(late)
            x = numbers(comm.rank, size, salt=k % 3)
            comm.all_reduce(x)
            if (x != expected[k % 3]).any():
                sys.exit(f"a wrong sum in call {k}")
    except rl.RoundelayError as error:
        told(error)
    else:
        print("right", flush=True)


def pause_between_sums(comm):
    """Says when it goes on after a pause."""
    comm.all_reduce(np.ones(1000))
    print("ready", flush=True)
    time.sleep(1)
    print(time.time(), flush=True)
    sums(comm, 1000, 1_000_000)
