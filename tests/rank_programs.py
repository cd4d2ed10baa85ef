"""What ranks do in the tests of the engine: each function runs in every rank of a job."""

import zlib

import numpy as np

import roundelay as rl
from roundelay.communicator import init

SIZES = (0, 1, 3, 17, 1000, 70_001)


def main(name, arguments):
    comm = init(timeout=30)
    globals()[name](comm, *arguments)
    comm.close()


def numbers(rank, size, dtype=np.int64, salt=0):
    """What a rank brings: whole numbers, different for every rank and place."""
    seed = zlib.crc32(f"{rank},{salt}".encode())
    return (np.arange(size, dtype=np.int64) * 7 + seed % 1013).astype(dtype) % 127


def everybody(ranks, size, dtype=np.int64, salt=0):
    return np.stack([numbers(r, size, dtype, salt) for r in range(ranks)])


def check(comm, collective, size, algorithm, root=0, in_place=False, op="sum", dtype=np.int64,
          salt=0):  # fmt: skip
    """One collective with pieces of `size`, compared with NumPy."""
    n, me = comm.ranks, comm.rank
    pieces = n if collective in ("reduce_scatter", "all_to_all", "scatter") else 1
    every = everybody(n, size * pieces, dtype, salt)
    reduced = {"sum": np.sum, "min": np.min, "max": np.max}[op](every, axis=0).astype(dtype)
    mine = slice(me * size, (me + 1) * size)
    x = every[me].copy()
    given = {"algorithm": algorithm}
    if collective in ("broadcast", "reduce", "gather", "scatter"):
        given["root"] = root
    if collective in ("all_reduce", "reduce", "reduce_scatter"):
        given["op"] = op
    call = getattr(comm, collective)
    expected = {
        "all_reduce": reduced,
        "reduce": reduced if me == root else None,
        "broadcast": every[root],
        "all_gather": every.reshape(-1),
        "reduce_scatter": reduced[mine],
        "gather": every.reshape(-1) if me == root else None,
        "scatter": every[root][mine],
        "all_to_all": every.reshape(n, n, size)[:, me].reshape(-1) if pieces == n else None,
    }[collective]
    if collective in ("all_reduce", "reduce", "broadcast"):
        out = x if in_place else np.full_like(x, 99)
        call(x, None if in_place else out, **given)
    elif collective == "all_gather":
        out = np.full(n * size, 99, dtype)
        if in_place:
            out[mine] = x
            x = out[mine]
        call(x, out, **given)
    elif collective == "reduce_scatter":
        out = x[mine] if in_place else np.full(size, 99, dtype)
        call(x, out, **given)
    elif collective == "gather":
        out = call(x, np.full(n * size, 99, dtype) if me == root else None, **given)
    elif collective == "scatter":
        out = call(x if me == root else None, np.full(size, 99, dtype), **given)
    else:
        out = x if in_place else np.full_like(x, 99)
        call(x, out, **given)
    if expected is not None:
        wrong = np.flatnonzero(out != expected)
        assert wrong.size == 0, (
            collective, getattr(algorithm, "name", algorithm), n, size, root, in_place, me,
            f"{wrong.size} wrong, first at {wrong[0]}: {out[wrong[0]]} for {expected[wrong[0]]}",
        )  # fmt: skip


def every_algorithm(comm, sizes=SIZES, helpers=True):
    """Every algorithm and its parameters, at every size, in place and out of place."""
    n = comm.ranks
    for a in rl.algorithms():
        if a.collective in ("barrier", "send_recv"):
            continue
        for parameters in a.variants(n):
            root = n // 2 if a.kind.rooted else 0
            schedule = a(n, root, **dict(parameters))
            if schedule.helpers and not helpers:
                continue
            for size in sizes:
                for in_place in (False, True):
                    check(comm, a.collective, size, schedule, root, in_place, salt=size)
    comm.barrier()
