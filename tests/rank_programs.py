"""What ranks do in the tests of the engine: each function runs in every rank of a job."""

import gc
import os
import time
import weakref
import zlib
from pathlib import Path

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


def every_type(comm):
    """All types and operations that are defined, against NumPy where it has them."""
    n, me = comm.ranks, comm.rank
    for name in ("float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8",
                 "uint16", "uint32", "uint64", "complex64", "complex128", "bool"):  # fmt: skip
        every = np.stack([(np.arange(999) * 3 + r) % 5 for r in range(n)]).astype(name)
        ops = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
        if np.dtype(name).kind in "iub":
            ops |= {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}
        if np.dtype(name).kind == "c":
            del ops["min"], ops["max"]
        for op, function in ops.items():
            x = every[me].copy()
            comm.all_reduce(x, op=op)
            expected = function.reduce(every, axis=0, dtype=name)
            assert (x == expected).all(), (name, op, x[:9], expected[:9])
        if name == "bool":
            continue
        x = (every[me] * n).astype(name)
        comm.all_reduce(x, op="avg")
        total = (every * n).astype(name).sum(axis=0, dtype=name)
        kind = np.dtype(name).kind
        wanted = total / n if kind in "fc" else np.trunc(total / n)
        assert np.allclose(x, wanted.astype(name)), (name, "avg", x[:5], wanted[:5])
        out = np.empty_like(every[me])
        comm.all_reduce(every[me], out, op="premul_sum", scale=2)
        assert (out == (every * 2).astype(name).sum(axis=0, dtype=name)).all(), (name, "premul")


def narrow_floats(comm):
    """bfloat16 and float8 in arrays that carry their bits: whole numbers small enough are exact."""
    n, me = comm.ranks, comm.rank
    one = {"bfloat16": 0x3F80, "float8_e4m3fn": 0x38, "float8_e5m2": 0x3C}
    two = {"bfloat16": 0x4000, "float8_e4m3fn": 0x40, "float8_e5m2": 0x40}
    for name, bits in one.items():
        carrier = np.uint16 if name == "bfloat16" else np.uint8
        for size in (1, 33, 5000, 300_000):
            x = np.full(size, bits if me < 2 else 0, carrier)
            comm.all_reduce(x, dtype=name)
            assert (x == (two[name] if n > 1 else bits)).all(), (name, size)


def kept_shapes(comm):
    """What the arrays may look like: strided, many-dimensional, read-only, other libraries'."""
    n, me = comm.ranks, comm.rank
    total = n * (n - 1) // 2
    grid = np.arange(48, dtype=np.float32).reshape(6, 8)
    x = (grid + me)[:, ::2]
    assert comm.all_reduce(x) is x
    assert (x == grid[:, ::2] * n + total).all()
    x = np.asfortranarray(grid + me)
    comm.all_reduce(x)
    assert (x == grid * n + total).all()
    x = grid + me
    x.flags.writeable = False
    out = np.empty((6, 8), np.float32)
    comm.all_reduce(x, out[:, ::-1])
    assert (out[:, ::-1] == grid * n + total).all()
    import array

    x = array.array("d", [me, 1.5])
    comm.all_reduce(x)
    assert list(x) == [total, 1.5 * n]
    assert (comm.all_gather(np.full(2, me)) == np.repeat(np.arange(n), 2)).all()
    assert comm.reduce_scatter(np.arange(n) * 1.0).tolist() == [me * n]
    assert (comm.all_to_all(np.arange(n) + 10 * me) == np.arange(n) * 10 + me).all()
    counts = [r % 3 for r in range(n)]
    got = comm.all_gather(np.full(counts[me], me), counts=counts)
    assert got.tolist() == [r for r in range(n) for _ in range(counts[r])]
    got = comm.reduce_scatter(np.arange(sum(counts)), counts=counts)
    before = sum(counts[:me])
    assert got.tolist() == [n * (before + i) for i in range(counts[me])]
    send = [(me + r) % 4 for r in range(n)]
    got = comm.all_to_all(np.repeat(np.arange(n), send) + 100 * me, send_counts=send,
                          receive_counts=send)  # fmt: skip
    assert got.tolist() == [100 * r + me for r in range(n) for _ in range(send[r])]


def shared_buffers(comm):
    """Arrays that all ranks of a node read in place, next to one another and again and again."""
    n, me = comm.ranks, comm.rank
    for size in (1, 1000, 300_000):
        for _ in range(3):
            x, out = comm.empty(size, np.int32), comm.empty((size,), np.int32)
            every = everybody(n, size, np.int32)
            x[:] = every[me]
            comm.all_reduce(x, out)
            assert (out == every.sum(0)).all()
            comm.all_reduce(x)
            assert (x == every.sum(0)).all()
            x[:] = every[me]
            comm.broadcast(x, root=n - 1)
            assert (x == every[n - 1]).all()
            x[:] = every[me]
            whole = comm.empty(n * size, np.int32)
            comm.all_gather(x, whole)
            assert (whole == every.reshape(-1)).all()
            del x, out, whole
    blocks = len(comm._pool._blocks)
    for _ in range(50):
        comm.all_reduce(comm.empty(1_000_000, np.int32))
    assert len(comm._pool._blocks) <= blocks + 1


def overlapping(comm):
    """Operations under way while others are asked for; their order is that of the calls."""
    n, me = comm.ranks, comm.rank
    arrays = [np.full(1 << k, me + k, np.int64) for k in range(17)]
    handles = [comm.all_reduce(a, async_op=True) for a in arrays]
    small = np.array([me])
    comm.all_reduce(small)
    assert small[0] == n * (n - 1) // 2
    for k, (handle, a) in enumerate(zip(handles, arrays, strict=True)):
        assert handle.wait(20) is a
        assert handle.done()
        assert (a == n * (n - 1) // 2 + n * k).all()


def switch_in_the_background(comm):
    """A schedule with helpers, planned by the thread of an operation under way."""
    x = np.ones(5)
    handle = comm.all_reduce(x, algorithm="switch", async_op=True)
    handle.wait(20)
    assert (x == comm.ranks).all()
    comm.barrier()
    comm.all_reduce(x)
    assert comm._call.__name__ == "call"  # the short way is open again


def groups(comm):
    """Communicators of some ranks, and of those again."""
    n, me = comm.ranks, comm.rank
    half = comm.split(me % 2, -me)
    mates = [r for r in range(n) if r % 2 == me % 2][::-1]
    assert (half.rank, half.ranks) == (mates.index(me), len(mates))
    got = half.all_gather(np.array([me]))
    assert got.tolist() == mates
    x = np.full(100_000, me)
    half.all_reduce(x)
    comm.all_reduce(x, op="max")
    assert (x == max(sum(range(k, n, 2)) for k in (0, 1) if k < n)).all()
    alone = comm.split(0 if me == n - 1 else -1)
    assert (alone is None) == (me != n - 1)
    quarter = half.split(0)
    assert quarter.all_gather(np.array([me])).tolist() == mates
    for c in (half, quarter):
        c.close()


def random_operations(comm, count, seed):
    """Random collectives, algorithms, types, sizes, roots and groups, against NumPy."""
    rng = np.random.default_rng(seed)
    halves = comm.split(comm.rank % 2)
    kinds = ["all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather",
             "scatter", "all_to_all"]  # fmt: skip
    known = {c: [a.name for a in rl.algorithms(c)] for c in kinds}
    for k in range(count):
        collective = kinds[rng.integers(len(kinds))]
        sizes = (rng.integers(0, 40), rng.integers(0, 3000), rng.integers(0, 90_000))
        size = int(sizes[rng.choice(3, p=[0.5, 0.4, 0.1])])
        in_group, in_place = rng.random() < 0.3, rng.random() < 0.5
        op = ("sum", "min", "max")[rng.integers(3)]
        dtype = (np.int64, np.int32, np.uint8, np.float32, np.float64)[rng.integers(5)]
        pick = rng.random()
        group = halves if in_group else comm
        # Both halves draw the same numbers, and each may have another number of ranks.
        names = ["auto", *(a for a in known[collective] if fits(group, collective, a))]
        algorithm = names[int(pick * len(names))]
        root = int(rng.integers(1 << 30)) % group.ranks
        check(group, collective, size, algorithm, root, in_place, op, dtype, salt=k % 7)
    halves.close()


def fits(comm, collective, name):
    algorithm = rl.find(f"{collective}/{name}")
    largest = max(map(len, comm.nodes))
    group = {"group": largest} if "group" in algorithm.parameters else {}
    try:
        algorithm(comm.ranks, **group)
    except rl.RoundelayError:
        return False
    return True


def until_an_error(comm, collective, size):
    """Calls without end; prints the error that ends them, and when it came."""
    x = np.ones(size, np.float32)
    out = np.empty(size * comm.ranks, np.float32)
    calls = {
        "all_reduce": lambda: comm.all_reduce(x),
        "broadcast": lambda: comm.broadcast(x, root=comm.ranks - 1),
        "all_gather": lambda: comm.all_gather(x, out),
        "all_to_all": lambda: comm.all_to_all(out.copy(), out),
        "barrier": comm.barrier,
    }
    print("ready", flush=True)
    try:
        while True:
            calls[collective]()
    except rl.RoundelayError as error:
        print(f"{type(error).__name__} {error.rank} {time.time():.3f} {error}", flush=True)
        again(comm, x)


def again(comm, x):
    """After an error every further call says the same, at once."""
    begun = time.perf_counter()
    try:
        comm.all_reduce(x)
    except rl.RoundelayError:
        assert time.perf_counter() - begun < 0.5
    else:
        raise AssertionError("a broken communicator went on")


def differ(comm, how):
    """One rank asks for something else; all must be told."""
    last = comm.rank == comm.ranks - 1
    dtype = np.float64 if how == "type" and last else np.float32
    x = np.ones(1000 + (how == "size" and last), dtype)
    comm.all_reduce(np.ones(3))
    try:
        if how == "collective" and last:
            comm.all_to_all(np.ones(comm.ranks), np.ones(comm.ranks))
        elif how == "root":
            comm.reduce(x, root=int(last))
        elif how == "algorithm":
            comm.all_reduce(x, algorithm="ring" if last else "two_shot")
        else:
            comm.all_reduce(x, op="max" if how == "op" and last else "sum")
        comm.barrier()
    except rl.RoundelayError as error:
        print(f"{type(error).__name__} {time.time():.3f} {error}")
    else:
        raise AssertionError("nobody noticed")


def interrupted(comm, handles):
    """Ctrl-C in the middle of a wait; the last rank does not come."""
    print("ready", flush=True)
    try:
        if comm.rank == comm.ranks - 1:
            time.sleep(1.0)
        for _ in range(2):
            done = comm.all_reduce(np.ones(9), async_op=handles)
            if handles:
                done.wait()
    except KeyboardInterrupt:
        print(f"KeyboardInterrupt -1 {time.time()} here")
    except rl.RoundelayError as error:
        print(f"{type(error).__name__} {error.rank} {time.time()} {error}")


def crowded(comm):
    """More ranks than processors: they move, and may go on to where they might before."""
    allowed = os.sched_getaffinity(0)
    assert comm._group.crowded
    for _ in range(300):
        comm.all_reduce(np.ones(9))
    assert os.sched_getaffinity(0) == allowed


def closed_is_freed(comm):
    """The memory of a closed communicator goes at once, not at the next collection of cycles."""
    gc.collect()
    gc.disable()
    part = comm.split(0)
    part.all_reduce(np.ones(9), algorithm="switch")
    part.all_reduce(np.ones(9), async_op=True).wait()
    group = weakref.ref(part._group)
    part.close()
    del part
    assert group() is None
    assert Path("/proc/self/maps").read_text().count("memfd:roundelay ") == 1
    gc.enable()


def shared_is_freed(comm):
    """Blocks of shared memory go with their communicator, but not while an array looks at them."""
    part = comm.split(0)
    kept = part.empty(500_000)
    for _ in range(2):
        part.empty(5 << 20, np.uint8).fill(1)
        kept.fill(comm.rank)
        part.all_reduce(kept)
        blocks = Path("/proc/self/maps").read_text().count("roundelay-buffer")
        assert blocks >= comm.ranks
    part.close()
    del part
    assert (kept == sum(range(comm.ranks))).all()
    del kept
    assert "roundelay-buffer" not in Path("/proc/self/maps").read_text()


def grown(comm):
    """Shared arrays that grow find room in what earlier ones had."""
    for mib in range(1, 200, 3):
        comm.empty(mib << 20, np.uint8)[-1] = 1
    assert len(comm._pool._blocks) < 20


def one_stays_away(comm):
    """Rank 1 comes later than the others are willing to wait."""
    comm._endpoint.patience(0.5)
    try:
        if comm.rank == 1:
            time.sleep(2)
        comm.all_reduce(np.ones(9))
        print("TooLate 1 0 came after the others had given up")
    except rl.RoundelayError as error:
        print(f"{type(error).__name__} {error.rank} {time.time()} {error}")


def leaves(comm, size):
    """A rank that closes its communicator while others still wait for it."""
    comm.all_reduce(np.ones(9))
    if comm.rank == 1:
        comm.close()
        return
    begun = time.perf_counter()
    try:
        while True:
            comm.broadcast(np.ones(size)) if size > 9 else comm.all_reduce(np.ones(size))
    except rl.PeerLost as error:
        assert error.rank == 1
    assert time.perf_counter() - begun < 1


def forked(comm):
    """A child of fork may neither use nor close its parent's communicator."""
    import os

    x = np.ones(3)
    comm.all_reduce(x)
    child = os.fork()
    if child == 0:
        try:
            comm.all_reduce(x)
        except rl.RoundelayError as error:
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    comm.all_reduce(x)
    assert (x == comm.ranks**2).all()


def refused(comm):
    """Errors on this rank alone; the communicator goes on."""
    n = comm.ranks
    x = np.ones(n * 4, np.float32)
    bad = {
        "expected one of sum": lambda: comm.all_reduce(x, op="plus"),
        "not defined for": lambda: comm.all_reduce(x, op="bxor"),
        "expected 8": lambda: comm.all_reduce(x, np.ones(3, np.float32)),
        "float64": lambda: comm.all_reduce(x, np.ones(8)),
        "root = '0'": lambda: comm.broadcast(x, root="0"),
        "root = 0.0": lambda: comm.broadcast(x, root=0.0),
        "bytes left": lambda: comm.empty(2**60),
        "shape = -1": lambda: comm.empty(-1),
        "not objects": lambda: comm.empty(3, object),
        "one a rank": lambda: comm.all_to_all(x, receive_counts=[4, 4]),
        "root = 9": lambda: comm.broadcast(x, root=9),
        "multiple of 2": lambda: comm.all_to_all(np.ones(3), np.ones(3)),
        "read-only": lambda: comm.all_reduce(b"abc"),
        "no memory": lambda: comm.all_reduce([1.0, 2.0]),
        "object": lambda: comm.all_reduce(np.array([None, 1])),
        "did you mean": lambda: comm.all_reduce(x, algorithm="rign"),
        "array of uint16": lambda: comm.all_reduce(x, dtype="bfloat16"),
        "a name": lambda: comm.all_reduce(x, dtype=[]),
        "op = None": lambda: comm.all_reduce(x, op=None),
        "op = 3": lambda: comm.all_reduce(x, op=3),
        "output is read-only": lambda: comm.all_reduce(x, np.broadcast_to(x[:1], x.shape)),
        "color = 1.5": lambda: comm.split(1.5),
        "key = 'a'": lambda: comm.split(0, "a"),
        "scale": lambda: comm.all_reduce(x, scale=2),
        "no scale": lambda: comm.all_reduce(x, op="premul_sum"),
        "over 2 ranks": lambda: comm.all_reduce(x, algorithm=rl.build("all_reduce/ring", 3)),
        "whole numbers": lambda: comm.all_gather(x, counts=[1, -1]),
        "elements; expected 3": lambda: comm.all_gather(x, counts=[3, 3]),
    }
    for text, call in bad.items():
        try:
            call()
        except rl.RoundelayError as error:
            assert text in str(error), (text, str(error))
        else:
            raise AssertionError(f"not refused: {text}")
    comm.all_reduce(x)
    assert (x == n).all()


def closed(comm):
    """A closed communicator makes no calls, not even those made before."""
    x = np.ones(4)
    for _ in range(2):
        comm.all_reduce(x)
    comm.close()
    for call in (lambda: comm.all_reduce(x), comm.barrier, lambda: comm.split(0)):
        try:
            call()
        except rl.RoundelayError as error:
            assert "is closed" in str(error), error
        else:
            raise AssertionError("a closed communicator went on")


def own_after_named(comm):
    """A schedule by name stands in the order of nodes, a user's own in that of ranks.

    So their peers differ, and each must be connected with its own.
    """
    for name in ("ring", "bine", "recursive_doubling"):
        for algorithm in (name, rl.build(f"all_reduce/{name}", comm.ranks)):
            check(comm, "all_reduce", 1000, algorithm)


def fixed_order(comm):
    """The same bits for every algorithm, size and placement; others are refused."""
    ordered = comm.split(0, fixed_order=True)
    n, me = comm.ranks, comm.rank
    every = np.stack([np.random.default_rng(r).normal(size=50_000) for r in range(n)])
    every = every.astype(np.float32) * 10.0 ** np.arange(n, dtype=np.float32)[:, None]
    expected = every[0].copy()
    for r in range(1, n):
        expected += every[r]
    for algorithm in ("auto", "one_shot"):
        for size in (1, 7, 50_000):
            x = every[me, :size].copy()
            ordered.all_reduce(x, algorithm=algorithm)
            assert x.tobytes() == expected[:size].tobytes(), (algorithm, size)
            x = every[me, :size].copy()
            ordered.reduce(x, root=n - 1)
            assert me < n - 1 or x.tobytes() == expected[:size].tobytes(), size
    x = every[me].copy()
    if n > 2:
        try:
            ordered.all_reduce(x, algorithm="ring")
        except rl.RoundelayError as error:
            assert "rank order" in str(error), error
        else:
            raise AssertionError("ring sums in another order")
    ordered.close()


def huge(comm):
    """More elements than fit into 31 bits."""
    size = 2**31 + 12_345
    x = np.full(size, comm.rank + 1, np.uint8)
    comm.all_reduce(x)
    total = comm.ranks * (comm.ranks + 1) // 2
    assert x[0] == x[-1] == x[size // 2] == total
    assert int(x.min()) == int(x.max()) == total
    comm.broadcast(x, root=comm.ranks - 1)
    assert int(x.min()) == total


def a_late_rank(comm, seconds):
    """One rank does something else, while the others send it more than connections hold."""
    n = comm.ranks
    outs = [np.empty(n * 500_000, np.int64) for _ in range(3)]
    x = np.full(n * 500_000, comm.rank)
    comm.all_to_all(x, outs[0])
    print("ready", flush=True)
    if comm.rank == n - 1:
        time.sleep(seconds)
    for out in outs:
        comm.all_to_all(x, out)
        assert (out == np.repeat(np.arange(n), 500_000)).all()


def torch_tensors(comm):
    """torch's tensors of all its types, strided ones too; results are tensors."""
    import torch

    n, me = comm.ranks, comm.rank
    total = n * (n - 1) // 2
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64,
                  torch.uint8, torch.complex64):  # fmt: skip
        x = torch.full((3, 5), me + 1).to(dtype)
        assert comm.all_reduce(x) is x
        assert bool((x == torch.full((3, 5), total + n).to(dtype)).all()), dtype
        got = comm.all_gather(torch.full((2,), me).to(dtype))
        assert isinstance(got, torch.Tensor)
        assert got.dtype == dtype
        assert got.real.to(torch.int64).tolist() == [r for r in range(n) for _ in range(2)]
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        x = torch.ones(64).to(dtype)
        comm.all_reduce(x)
        assert bool((x.to(torch.float32) == n).all())
    x = torch.ones(5)
    comm.all_reduce(x)
    x.resize_(1000)  # as it could be before
    x = torch.arange(24.0).reshape(4, 6).t()
    comm.all_reduce(x)
    assert bool((x == torch.arange(24.0).reshape(4, 6).t() * n).all())
    x = torch.ones(5, requires_grad=True)
    out = torch.empty(5)
    comm.all_reduce(x, out)
    assert out.tolist() == [n] * 5


def little_memory(comm):
    """The shared memory that there is does."""
    assert comm._group.arena < 4 << 20
    every_algorithm(comm, (3, 70_001), helpers=False)


def wrong_counts(comm):
    """Ranks that disagree on how much one sends to the other."""
    n, me = comm.ranks, comm.rank
    counts = [1, 2] if me == 0 else [1, 1]
    try:
        comm.all_gather(np.ones(counts[me]), counts=counts)
        comm.barrier()
    except rl.CallsDiffer:
        return
    raise AssertionError((n, "nobody noticed"))


def threads(comm):
    """Two threads at once are told to take turns; nothing is spoilt."""
    import threading

    x = np.ones(1_000_000)
    refused = []

    def many():
        for _ in range(20):
            try:
                comm.reduce(x.copy(), root=comm.rank) if comm.ranks == 1 else comm.all_reduce(x)
            except rl.RoundelayError as error:
                refused.append(str(error))

    others = [threading.Thread(target=many) for _ in range(3)]
    for t in others:
        t.start()
    for t in others:
        t.join()
    assert all("in the middle of a call" in text for text in refused), refused[:1]


def killed_parent(comm):
    """Rank 1 forks a child that lives on, and is killed; the others must notice."""
    import os
    import signal

    comm.all_reduce(np.ones(9))
    if comm.rank == 1:
        if os.fork() == 0:
            os.close(1)  # what the test reads
            os.close(2)
            time.sleep(5)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.perf_counter()
    try:
        while True:
            comm.all_reduce(np.ones(9))
    except rl.PeerLost as error:
        print(f"PeerLost {error.rank} {time.perf_counter() - begun:.3f} noticed")
