"""What ranks do in the tests of shrink, grow, watchdog and status; see `rank_programs`."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from rank_programs import check

import roundelay as rl
from roundelay import communicator

COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather",
               "scatter", "all_to_all", "barrier")  # fmt: skip
SIZES = (1, 7, 1000, 30_001, 300_000)


def main(name, arguments):
    comm = rl.init(timeout=float(os.environ.get("PATIENCE", "30")))
    globals()[name](comm, *arguments).close()


def some_calls(comm, seed, count):
    """Random collectives, the same on all ranks, each compared with NumPy."""
    draw = random.Random(f"{seed} {comm.ranks}")
    for salt in range(count):
        collective, size = draw.choice(COLLECTIVES), draw.choice(SIZES)
        root = draw.randrange(comm.ranks)
        if collective == "barrier":
            comm.barrier()
        else:
            check(comm, collective, size, "auto", root, salt=salt)


def until_it_fails(comm, seed="x"):
    """The error that ends it, and when it was raised."""
    try:
        for turn in range(10_000):
            some_calls(comm, f"{seed} {turn}", 20)
    except rl.ExchangeError as error:
        return error, time.time()
    raise AssertionError("nobody has gone")


def go_on(comm, dying, how="kill"):
    """Some ranks die; the others go on, with splits of their own, and again when another dies."""
    comm.all_reduce(np.ones(9))
    sub = comm.split(comm.rank % 2)
    print("ready", flush=True)
    if comm.rank in dying:
        for turn in range(2):
            some_calls(sub if how == "sub" else comm, f"x {turn}", 20)
        os.kill(os.getpid(), signal.SIGKILL)
    error, when = until_it_fails(comm)
    with pytest.raises(rl.ExchangeError):
        comm.all_reduce(np.ones(5), async_op=True).wait(10)
    if how == "again" and comm.rank == max(set(range(comm.ranks)) - set(dying)):
        os._exit(0)  # in the middle of the shrink of the others
    old, comm = comm, comm.shrink(10)
    print(f"{type(error).__name__} {error.rank} {when} {comm.rank} of {comm.ranks}", flush=True)
    with pytest.raises(rl.RoundelayError, match="closed"):
        old.barrier()
    some_calls(comm, "after", 30)
    part = comm.split(comm.rank % 2)
    some_calls(part, "parts", 10)
    return comm


def after_a_mistake(comm):
    """Nobody has gone, and all go on after calls that differed."""
    with pytest.raises(rl.CallsDiffer):
        comm.all_reduce(np.ones(3 + (comm.rank == 0)))
    comm = comm.shrink(10)
    print(f"{comm.rank} of {comm.ranks}", flush=True)
    some_calls(comm, "after", 10)
    return comm


def one_by_one(comm):
    """The last rank dies, then again, until rank 0 is alone."""
    while comm.ranks > 1:
        if comm.rank == comm.ranks - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        until_it_fails(comm)
        comm = comm.shrink(10)
    some_calls(comm, "alone", 10)
    print(f"{comm.rank} of {comm.ranks}", flush=True)
    return comm


def dying_newcomers(comm):
    """One dies while it waits, another as soon as it is in."""
    if comm.rank == 0:
        waits = newcomer(comm, "waits_and_dies")
        enters = newcomer(comm, "enters_and_dies")
        waits.wait(20)
    while comm.newcomers() != 1:
        time.sleep(0.01)
    grown = comm.grow()
    assert grown.ranks == comm.ranks + 1
    until_it_fails(grown)
    comm = grown.shrink(10)
    some_calls(comm, "after", 10)
    if comm.rank == 0:
        enters.wait(20)
    return comm


def half_a_newcomer(comm):
    """A newcomer dies between the table and the first exchange; the others go on without it."""
    if comm.rank == 0:
        child = newcomer(comm, "dies_inside")
    ranks, comm = comm.ranks, comm.grow(1, timeout=20)
    assert comm.ranks == ranks
    some_calls(comm, "after", 10)
    if comm.rank == 0:
        assert child.wait(20) == 0
    return comm


def dies_inside():
    """See `half_a_newcomer`."""
    communicator.Group = lambda *_: os._exit(0)
    rl.init(timeout=30)


def failing(comm):
    """Rank 0 fails with a call under way that rank 1 does not make."""
    comm.barrier()
    if comm.rank == 0:
        comm.all_reduce(np.ones(3), async_op=True)
        raise ValueError("a mistake")
    time.sleep(60)


def waits_and_dies():
    """See `dying_newcomers`."""
    threading.Timer(0.5, os._exit, (0,)).start()
    rl.init(timeout=30)


def enters_and_dies():
    """See `dying_newcomers`."""
    rl.init(timeout=30)
    os._exit(0)


def stopped(comm, ranks, patience):
    """Some ranks are stopped, as if by a debugger; the others leave them out, or may not."""
    comm.all_reduce(np.ones(9))
    if comm.rank in ranks:
        print(os.getpid(), flush=True)
        time.sleep(0.3)  # stopped meanwhile
    try:
        while True:
            comm.all_reduce(np.ones(3))
    except rl.ExchangeError:
        pass
    try:
        comm = comm.shrink(patience)
        print(f"{comm.rank} of {comm.ranks}", flush=True)
        some_calls(comm, "after", 5)
        time.sleep(3 * patience)  # so that a rank that was left out meets somebody
    except rl.RoundelayError as error:
        print(error, flush=True)
    return comm


def growing(comm, count):
    """Newcomers join, one after another; then an old rank goes."""
    assert comm.grow() is comm
    old = comm.ranks
    new = []
    if comm.rank == 0:
        with pytest.raises(rl.RoundelayError, match="count = 0"):
            comm.grow(0)
        for _ in range(count):
            new.append(newcomer(comm))
    for turn in range(count):
        comm = comm.grow(1)
        assert comm.ranks == old + turn + 1
        some_calls(comm, turn, 10)
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    until_it_fails(comm, "grown")
    comm = comm.shrink(10)
    some_calls(comm, "shrunk", 10)
    print(f"{comm.rank} of {comm.ranks}", flush=True)
    comm.barrier()
    comm.close()
    assert [child.wait(20) for child in new] == [0] * len(new)
    return comm


def newcomer(comm, code="joined"):
    line = f"import elastic_programs; elastic_programs.{code}()"
    told = {**os.environ, "ROUNDELAY_INVITATION": comm.invitation}
    return subprocess.Popen([sys.executable, "-W", "error", "-c", line], env=told)


def joined():
    """A newcomer of `growing`."""
    comm = rl.init(timeout=30)
    turn = comm.ranks - 3
    some_calls(comm, turn, 10)
    for later in range(turn + 1, 2):
        comm = comm.grow(1)
        some_calls(comm, later, 10)
    until_it_fails(comm, "grown")
    comm = comm.shrink(10)
    some_calls(comm, "shrunk", 10)
    comm.barrier()
    comm.close()


def nobody_joins(comm):
    """A communicator that could not grow works as before."""
    begun = time.monotonic()
    with pytest.raises(rl.RoundelayError, match=r"0 of 1 newcomers have come within 0\.5 s"):
        comm.grow(1, timeout=0.5)
    assert time.monotonic() - begun < 10
    some_calls(comm, "after", 10)
    return comm


def refusals(comm):
    """What cannot shrink or grow says why."""
    part = comm.split(0)
    for call in (part.shrink, part.grow, part.newcomers, lambda: part.invitation):
        with pytest.raises(rl.RoundelayError, match="communicator of some ranks"):
            call()
    return comm


def kept_waiting(comm, seconds):
    """Rank 2 comes late to a group's call, so that rank 0 comes late to that of all."""
    group = comm.split(comm.rank % 2)
    if group is not None:
        group.name = f"dp{comm.rank % 2}"
    x = np.ones(1 << 20, np.float32)
    comm.all_reduce(x)
    print("ready", flush=True)
    if comm.rank == 2:
        time.sleep(seconds)
    group.all_reduce(x)
    comm.all_reduce(x)
    return comm


def outlived(comm):
    """Rank 0 is killed, and a child that it has forked lives on."""
    comm.barrier()
    if comm.rank == 0:
        if os.fork() == 0:
            os.close(1)  # what the test reads
            os.close(2)
            time.sleep(8)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    print("ready", flush=True)
    time.sleep(5)
    return comm


def aborted(comm):
    """Another thread ends a call that would wait for ever."""
    comm.all_reduce(np.ones(3))
    if comm.rank == 0:
        threading.Timer(0.3, comm.abort).start()
        begun = time.monotonic()
        with pytest.raises(rl.Interrupted):
            comm.all_reduce(np.ones(3))
        assert time.monotonic() - begun < 2
    else:
        time.sleep(1)
        with pytest.raises(rl.ExchangeError) as raised:
            comm.all_reduce(np.ones(3))
        assert raised.value.rank == 0
    return comm
