"""What ranks do in the tests of connections: each function runs in every rank of a job."""

import gc
import json
import logging
import os
import sys
import time
from pathlib import Path

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


def besieged(comm, folder):
    """Exchanges, new groups and new connections until a file is there; what it takes is printed.

    In turn each rank is late, so that the others answer at their doors meanwhile.
    """
    logging.getLogger("roundelay").setLevel(logging.ERROR)  # each stranger is a warning
    session, turn = comm._session, 0
    stop = np.zeros(1, np.int64)
    while not stop[0]:
        if turn == 8:
            before = taken()
            doors = [(m.host, m.port) for m in session.members]
            print(json.dumps([doors, session.nonce.hex()]), flush=True)
        late(comm, turn % comm.ranks, 0.1)
        right(comm, turn)
        if turn % 4 == 0:
            part = comm.split(0)
            right(part, turn)
            part.close()
        stop[0] = comm.rank == 0 and Path(folder, "stop").exists()
        comm.all_reduce(stop, op="max")
        turn += 1
    for rank in (0, 1):  # longer than a stranger may say nothing
        late(comm, rank, 2.5)
    del part
    gc.collect()
    print(json.dumps([before, taken(), turn]), flush=True)


def late(comm, rank, seconds):
    """An exchange to which a rank comes late."""
    if rank == comm.rank:
        time.sleep(seconds)
    comm._session.exchange(b"")


def right(comm, salt):
    x = numbers(comm.rank, 5000, salt=salt)
    comm.all_reduce(x)
    if (x != np.sum(everybody(comm.ranks, 5000, salt=salt), axis=0)).any():
        sys.exit(f"a wrong sum in turn {salt}")


def taken():
    """Open descriptors and bytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return len(os.listdir("/proc/self/fd")), pages * os.sysconf("SC_PAGE_SIZE")


def stands(comm, folder):
    """Has exchanged data with others, and waits until a file is there."""
    comm.split(0)
    comm.empty(1000)
    comm.all_reduce(np.ones(300_000))
    print("ready", flush=True)
    while not Path(folder, "stop").exists():
        time.sleep(0.02)
