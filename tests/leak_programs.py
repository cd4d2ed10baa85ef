"""What ranks do in the test for leaks: calls of all sorts on groups that come and go."""

import json
import os
import time
from pathlib import Path

import numpy as np

from roundelay.communicator import init

SMALL = (1, 2, 60, 256)  # float32
KINDS = 8
LARGE = (1 << 18, 300_001, 1 << 20)
PER_GROUP = 250  # small calls on a group before it is closed, and as many on all ranks
SAMPLES = 40


def main(name, arguments):
    comm = init(timeout=60)
    globals()[name](comm, *arguments)
    comm.close()


def used():
    """What this process has: bytes of memory, descriptors, threads and mappings."""
    time.sleep(0.05)  # for a moment the kernel counts threads that have been joined
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    memory = sum(int(status[name].split()[0]) for name in ("RssAnon", "RssShmem"))
    maps = len(Path("/proc/self/maps").read_text().splitlines())
    return {
        "memory": memory * 1024,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": int(status["Threads"]),
        "mappings": maps,
    }


def drawn(comm, rng, sizes):
    """One call that all ranks of the group draw alike."""
    size, root = sizes[rng.integers(len(sizes))], int(rng.integers(comm.ranks))
    call(comm, int(rng.integers(KINDS)), size, root, bool(rng.random() < 0.1))


def call(comm, kind, size, root, later):
    n, x = comm.ranks, np.ones(size, np.float32)
    made = [
        lambda: comm.all_reduce(x, async_op=later),
        lambda: comm.reduce(x, root=root, async_op=later),
        lambda: comm.broadcast(x, root=root, async_op=later),
        lambda: comm.all_gather(x, async_op=later),
        lambda: comm.reduce_scatter(np.ones(n * size, np.float32), async_op=later),
        lambda: comm.all_to_all(np.ones(n * size, np.float32), np.empty(n * size, np.float32)),
        lambda: comm.all_reduce(x, np.empty_like(x), op="max", async_op=later),
        lambda: comm.barrier(async_op=later),
    ][kind]()
    if later and kind != 5:
        made = made.wait()
    if kind in (0, 4):
        assert (made == n).all()


def calls(comm, rng, small, large):
    for _ in range(small):
        drawn(comm, rng, SMALL)
    for _ in range(large):
        if rng.random() < 0.2:  # in memory that all see
            seen(comm, LARGE[rng.integers(len(LARGE))])
        else:
            drawn(comm, rng, LARGE)


def seen(comm, size):
    x = comm.empty(size)
    x.fill(1)
    comm.all_reduce(x)


def everything(comm):
    """What is kept for each sort of call is there after this."""
    for size in (*SMALL, *LARGE):
        seen(comm, size)
        for kind in range(KINDS):
            for root in range(comm.ranks):
                call(comm, kind, size, root, False)
    call(comm, 0, 1, 0, True)


def round_of_groups(comm, number, small, large):
    """Calls on all ranks, then on random groups of them, and on groups of these."""
    rng = np.random.default_rng(number)
    calls(comm, rng, small // 2, large // 2)
    color = int(rng.integers(-1, 3, comm.ranks)[comm.rank])
    with_own = comm.split(color, int(rng.permutation(comm.ranks)[comm.rank]))
    if with_own is None:
        return
    rng = np.random.default_rng([number, color])
    calls(with_own, rng, small - small // 2, large - large // 2)
    inner = with_own.split(int(rng.integers(2, size=with_own.ranks)[with_own.rank]))
    inner.barrier()
    inner.stragglers()
    if rng.random() < 0.5:
        inner.close()
        with_own.close()
    else:
        with_own.close()
        inner.close()


def grow(comm, small, large, folder):
    """So many calls; what the process has used in between goes into a file."""
    everything(comm)
    rounds = max(SAMPLES, small // (2 * PER_GROUP))
    samples = []
    for k in range(rounds):
        each = [part * (k + 1) // rounds - part * k // rounds for part in (small, large)]
        round_of_groups(comm, k, *each)
        if k * SAMPLES // rounds != (k + 1) * SAMPLES // rounds:
            samples.append(used())
    Path(folder, f"{comm.rank}.json").write_text(json.dumps(samples))
