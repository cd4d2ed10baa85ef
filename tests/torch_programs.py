"""Programs of torch.distributed that the tests run in real processes; every rank runs the same."""

import faulthandler
import os
import time
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

import roundelay as rl
import roundelay.torch  # registers the backend, where the package is not installed

FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
NARROW = (torch.float8_e4m3fn, torch.float8_e5m2)
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)
SIZES = (0, 1, 5, 1000, 70_001)
Op = dist.ReduceOp
LONGEST = 110
"""Seconds until a rank that hangs says where."""


def main(names, arguments):
    perform(globals(), names, *arguments)


def perform(known, names, folder):
    """Run programs one after another as this rank; one that fails says so, and ends all."""
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    torch.set_num_threads(1)
    warnings.simplefilter("default")  # torch warns of much that is its own
    told = {k: os.environ.pop(k) for k in list(os.environ) if k.startswith("ROUNDELAY_")}
    if node := told.get("ROUNDELAY_NODE"):
        os.environ["ROUNDELAY_NODE"] = node
    rank, ranks = int(told["ROUNDELAY_RANK"]), int(told["ROUNDELAY_RANKS"])
    for name in names.split():
        place = Path(folder, name)
        place.mkdir(exist_ok=True)
        try:
            known[name](rank, ranks, place)
        except BaseException:
            print(f"{name}, rank {rank} of {ranks}:\n{traceback.format_exc()}", flush=True)
            os._exit(1)  # the others are told by the end of this process
        if dist.is_initialized():
            dist.destroy_process_group()


def start(rank, ranks, folder, backend="roundelay", turn=0):
    """Initialise torch.distributed by a file in the folder, a fresh one for each turn."""
    dist.init_process_group(
        backend, init_method=f"file://{folder}/{backend.replace(':', '-')}{turn}",
        rank=rank, world_size=ranks, timeout=timedelta(seconds=60),
    )  # fmt: skip


def both(rank, ranks, folder, program, turn):
    """What a program gives under Roundelay, and under Gloo."""
    found = []
    for backend in ("roundelay", "gloo"):
        torch.manual_seed(5)
        start(rank, ranks, folder, backend, turn)
        found.append(program(rank, ranks))
        dist.destroy_process_group()
    return found


def same(rank, ranks, folder, program, tolerance=1e-9, turn=0):
    """The program gives the same losses under both, step by step."""
    ours, theirs = both(rank, ranks, folder, program, turn)
    assert len(ours) == len(theirs) > 0
    for step, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert abs(a - b) <= tolerance * max(1.0, abs(b)), (step, a, b)


def values(rank, size, dtype):
    """What a rank brings: small numbers, of which every type holds all sums."""
    generator = torch.Generator().manual_seed(100 + rank)
    x = torch.randint(0, 3, (size,), generator=generator)
    return x.to(dtype) if dtype is not torch.bool else x > 0


def equal(a, b, about=None):
    """Equal tensors."""
    kind = torch.float32 if a.dtype in NARROW else a.dtype
    assert a.shape == b.shape, (a.shape, b.shape, about)
    assert a.dtype == b.dtype, (a.dtype, b.dtype, about)
    assert bool((a.to(kind) == b.to(kind)).all()), (a, b, about)


# Collectives.

FOLDS = {
    Op.SUM: torch.Tensor.add, Op.PRODUCT: torch.Tensor.mul,
    Op.MIN: torch.minimum, Op.MAX: torch.maximum,
    Op.BAND: torch.bitwise_and, Op.BOR: torch.bitwise_or, Op.BXOR: torch.bitwise_xor,
}  # fmt: skip


def reduced(ranks, size, dtype, op):
    """The reduction of what all ranks bring."""
    wide = torch.float64 if dtype in FLOATS + NARROW else dtype
    every = [values(r, size, dtype).to(wide) for r in range(ranks)]
    if op == Op.AVG:
        return (sum(every) / ranks).to(dtype) if wide.is_floating_point else sum(every) // ranks
    result = every[0]
    for x in every[1:]:
        result = FOLDS[op](result, x)
    return result.to(dtype)


def cases():
    for dtype in FLOATS + NARROW + WHOLE:
        yield from ((dtype, op) for op in (Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX))
    yield from ((dtype, op) for dtype in WHOLE for op in (Op.BAND, Op.BOR, Op.BXOR))
    yield from ((dtype, Op.SUM) for dtype in COMPLEX)
    yield from ((dtype, Op.AVG) for dtype in (torch.float64, torch.float32))
    yield from ((torch.bool, op) for op in (Op.MAX, Op.MIN))


def reductions(rank, ranks, folder):
    """all_reduce, reduce and reduce_scatter of every type and operation."""
    start(rank, ranks, folder)
    for dtype, op in cases():
        whole = torch.logical_or if op == Op.MAX else torch.logical_and
        for size in (0, 5, 1000):
            about = (dtype, op, size)
            if dtype == torch.bool:
                want = values(0, size, dtype)
                for r in range(1, ranks):
                    want = whole(want, values(r, size, dtype))
            else:
                want = reduced(ranks, size, dtype, op)
            x = values(rank, size, dtype)
            dist.all_reduce(x, op)
            equal(x, want, about)
            x = values(rank, size, dtype)
            dist.reduce(x, ranks - 1, op)
            equal(x, want if rank == ranks - 1 else values(rank, size, dtype), about)
            x = values(rank, size * ranks, dtype)
            out = torch.empty(size, dtype=dtype)
            if dtype != torch.bool:
                dist.reduce_scatter_single(out, x, op)
                part = reduced(ranks, size * ranks, dtype, op)[rank * size : (rank + 1) * size]
                equal(out, part, about)
    x = values(rank, 9, torch.float32)
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    equal(x, reduced(ranks, 9, torch.float32, Op.SUM) / 2)


def movements(rank, ranks, folder):
    """Every call that moves data, of every size and some types."""
    start(rank, ranks, folder)
    for dtype in (torch.float64, torch.bfloat16, torch.float8_e5m2, torch.bool, torch.complex64,
                  torch.uint8):  # fmt: skip
        for size in SIZES if dtype is torch.float64 else (3,):
            every = [values(r, size, dtype) for r in range(ranks)]
            _moved(rank, ranks, every, size, dtype)


def _moved(rank, ranks, every, size, dtype):
    def empty(n=size):
        return torch.empty(n, dtype=dtype)

    mine = every[rank]
    for root in range(ranks):
        x = mine.clone()
        dist.broadcast(x, root)
        equal(x, every[root])
        parts = [empty() for _ in range(ranks)] if rank == root else None
        dist.gather(mine, parts, root)
        if rank == root:
            for got, want in zip(parts, every, strict=True):
                equal(got, want)
        out = empty()
        dist.scatter(out, every if rank == root else None, root)
        equal(out, mine)
    parts = [empty() for _ in range(ranks)]
    dist.all_gather(parts, mine)
    for got, want in zip(parts, every, strict=True):
        equal(got, want)
    out = empty(size * ranks)
    dist.all_gather_single(out, mine)
    equal(out, torch.cat(every))
    dist.all_to_all_single(out, torch.cat(every))
    equal(out, mine.repeat(ranks))
    parts = [empty() for _ in range(ranks)]
    dist.all_to_all(parts, every)
    for got in parts:
        equal(got, mine)


def uneven(rank, ranks, folder):
    """Lists of tensors of different sizes, and uneven splits."""
    start(rank, ranks, folder)
    sizes = [(3 * r + 1) % 5 for r in range(ranks)]  # a rank may have nothing
    every = [values(r, sizes[r], torch.float64) for r in range(ranks)]
    parts = [torch.empty(size, dtype=torch.float64) for size in sizes]
    dist.all_gather(parts, every[rank])
    for got, want in zip(parts, every, strict=True):
        equal(got, want)
    ones = [torch.full((size, 2), rank + 1.0) for size in sizes]
    out = torch.empty(sizes[rank], 2)
    dist.reduce_scatter(out, ones)
    equal(out, torch.full((sizes[rank], 2), ranks * (ranks + 1) / 2))

    def split(source, target):
        return (source + 2 * target) % 3

    send = [split(rank, r) for r in range(ranks)]
    receive = [split(r, rank) for r in range(ranks)]
    x = torch.full((sum(send), 4), float(rank))
    out = torch.empty(sum(receive), 4)
    dist.all_to_all_single(out, x, receive, send)
    want = torch.cat([torch.full((receive[r], 4), float(r)) for r in range(ranks)])
    equal(out, want)
    ins = [torch.full((size,), float(rank)) for size in send]
    outs = [torch.empty(size) for size in receive]
    dist.all_to_all(outs, ins)
    equal(torch.cat(outs), want[:, 0])


def shapes(rank, ranks, folder):
    """Scalars, several dimensions, what is not contiguous, gradients, views side by side."""
    start(rank, ranks, folder)
    total = ranks * (ranks + 1) / 2
    x = torch.tensor(rank + 1.0)
    dist.all_reduce(x)
    assert x.item() == total
    base = torch.arange(24.0).reshape(4, 6)
    for dtype in (torch.float32, torch.bfloat16):
        x = (base.to(dtype) * (rank + 1)).t()
        dist.all_reduce(x)
        equal(x, (base * total).to(dtype).t())
    x = torch.zeros(8, 6)[::2]
    dist.broadcast(x.copy_(base + rank), 0)
    equal(x, base)
    out = torch.empty(6, ranks).t()
    dist.all_gather_single(out, torch.full((6,), float(rank)))
    equal(out, torch.arange(float(ranks)).reshape(-1, 1).expand(ranks, 6))
    parts = list(torch.empty(ranks, 2, 3).unbind())
    dist.all_gather(parts, torch.full((2, 3), float(rank)))
    assert [p[0, 0].item() for p in parts] == list(range(ranks))
    parts = [torch.empty(3, 2).t() for _ in range(ranks)]
    dist.all_gather(parts, torch.full((2, 3), float(rank)))
    assert [p[1, 2].item() for p in parts] == list(range(ranks))
    x = torch.ones(5, requires_grad=True)
    with torch.no_grad():
        dist.all_reduce(x)
    assert x.tolist() == [ranks] * 5
    x = torch.ones(3, dtype=torch.complex64) * 1j
    dist.all_reduce(x)
    assert x.tolist() == [1j * ranks] * 3
    x.resize_(1000)  # as it could be before


def under_way(rank, ranks, folder):
    """Calls that go on in the background: order, futures, waiting, errors."""
    start(rank, ranks, folder)
    tensors = [torch.full((1000 * k + 1,), rank + 1.0) for k in range(20)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    last = torch.ones(3)
    dist.all_reduce(last)  # after all of those
    assert all(w.is_completed() and w.is_success() for w in works)
    assert last.tolist() == [ranks] * 3
    for t, w in zip(tensors, works, strict=True):
        assert w.wait()
        assert w.exception() is None
        assert w.result()[0] is t
        assert bool((t == ranks * (ranks + 1) / 2).all())
    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    doubled = work.get_future().then(lambda f: f.value()[0] * 2)
    assert doubled.wait().tolist() == [2 * ranks] * 2

    def twice(future):
        """Calls, and waits, in the thread that has made the call before."""
        y = future.value()[0]
        dist.all_reduce(y)
        return dist.all_reduce(y, async_op=True).get_future().wait()

    x = torch.ones(2)
    work = dist.all_reduce(x, async_op=True)
    assert work.get_future().then(twice).wait()[0].tolist() == [ranks**3] * 2
    again = work.get_future().wait()
    assert again[0] is x or bool((again[0] == x).all())
    calls = [dist.barrier(async_op=True)]
    out = torch.empty(ranks)
    calls.append(dist.all_gather_single(out, torch.tensor([float(rank)]), async_op=True))
    parts = [torch.empty(2) for _ in range(ranks)]
    calls.append(dist.all_gather(parts, torch.full((2,), float(rank)), async_op=True))
    calls.append(dist.all_to_all_single(torch.empty(ranks), torch.ones(ranks), async_op=True))
    for call in reversed(calls):
        call.wait(timedelta(seconds=30))
    assert out.tolist() == [float(r) for r in range(ranks)]
    assert [p[1].item() for p in parts] == list(range(ranks))
    if rank == 0:
        time.sleep(0.3)
    work = dist.barrier(async_op=True)
    if rank:
        try:
            work.wait(timedelta(milliseconds=50))
            raise AssertionError("rank 0 has not come yet")
        except rl.TooLate:
            pass
    work.wait()


def together(rank, ranks, folder):
    """Coalesced calls, of both names, and the manager of torch."""
    start(rank, ranks, folder)
    group = dist.group.WORLD
    total = ranks * (ranks + 1) / 2
    tensors = [torch.full((k,), rank + 1.0) for k in (3, 0, 100)]
    dist.all_reduce_coalesced(tensors)
    assert all(bool((t == total).all()) for t in tensors)
    with dist.distributed_c10d._coalescing_manager(group, async_ops=True) as manager:
        for t in tensors:
            dist.all_reduce(t)
    manager.wait()
    assert all(bool((t == total * ranks).all()) for t in tensors)
    ins = [torch.full((k,), float(rank)) for k in (2, 5)]
    for name in ("all_gather_single_coalesced", "allgather_into_tensor_coalesced"):
        outs = [torch.empty(2 * ranks), torch.empty(5 * ranks)]
        getattr(group, name)(outs, ins).wait()
        for out in outs:
            equal(out.reshape(ranks, -1)[:, 0], torch.arange(float(ranks)))
    for name in ("reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"):
        outs = [torch.empty(2), torch.empty(5)]
        wide = [torch.ones(2 * ranks), torch.ones(5 * ranks)]
        getattr(group, name)(outs, wide).wait()
        assert [out[0].item() for out in outs] == [ranks] * 2
    lists = [[torch.empty(k) for k in (2, 5)] for _ in range(ranks)]
    group.allgather_coalesced(lists, ins).wait()
    assert [x[0].item() for row in lists for x in row] == [r for r in range(ranks) for _ in "ab"]
    for name in ("all_gather_single", "_allgather_base"):
        out = torch.empty(2 * ranks)
        getattr(group, name)(out, ins[0]).wait()
        equal(out, torch.arange(float(ranks)).repeat_interleave(2))
    out = torch.empty(2)
    group._reduce_scatter_base(out, torch.ones(2 * ranks), c10d.ReduceScatterOptions()).wait()
    group.alltoall_base(torch.empty(ranks), torch.ones(ranks), [], []).wait()
    group._start_coalescing(torch.device("cpu"))
    x = torch.ones(4)
    dist.all_reduce(x, async_op=True)
    group._end_coalescing(torch.device("cpu")).wait()
    assert x.tolist() == [ranks] * 4
    group.monitored_barrier(timedelta(seconds=30))


def objects(rank, ranks, folder):
    """Collectives of Python objects."""
    start(rank, ranks, folder)
    mine = {"rank": rank, "text": "x" * 1000 * rank}
    every = [None] * ranks
    dist.all_gather_object(every, mine)
    assert [e["rank"] for e in every] == list(range(ranks))
    found = [mine, rank]
    dist.broadcast_object_list(found, ranks - 1)
    assert found[1] == ranks - 1
    gathered = [None] * ranks if rank == 0 else None
    dist.gather_object(mine, gathered)
    assert rank or [len(e["text"]) for e in gathered] == [1000 * r for r in range(ranks)]
    out = [None]
    dist.scatter_object_list(out, [r * 10 for r in range(ranks)])
    assert out == [rank * 10]
    if rank == 0:
        dist.send_object_list([mine, "end"], 1)
    elif rank == 1:
        got = [None, None]
        dist.recv_object_list(got, 0)
        assert got[1] == "end"


# Messages between two ranks.


def messages(rank, ranks, folder):
    """send and recv of many sizes, around a ring and back."""
    start(rank, ranks, folder)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    for size in (0, 1, 10, 11, 1000, 1_000_000):
        x, y = torch.full((size,), float(rank)), torch.empty(size)
        if rank % 2 == 0:
            dist.send(x, after)
            dist.recv(y, before)
        else:
            dist.recv(y, before)
            dist.send(x, after)
        equal(y, torch.full((size,), float(before)))
    for dtype in (torch.bfloat16, torch.bool, torch.int8):
        x = torch.ones(3, 5).to(dtype).t()
        y = torch.zeros(3, 5).to(dtype).t()
        work = dist.isend(x, after)
        dist.recv(y, before)
        work.wait()
        equal(x, y)
    x = torch.full((2,), float(rank))
    y = torch.empty(2)
    works = [dist.isend(x, rank), dist.irecv(y, rank)]  # to itself
    for work in works:
        work.wait()
    equal(x, y)


def tags(rank, ranks, folder):
    """Messages of one pair are told apart by their tags, and those of one tag keep their order."""
    start(rank, ranks, folder)
    count = 30
    if rank == 0:
        works = []
        for k in range(count):
            size = 20_000 if k % 3 == 0 else 2
            works += [dist.isend(torch.full((size,), float(k)), r, tag=k % 5)
                      for r in range(1, ranks)]  # fmt: skip
        for work in works:
            work.wait()
    else:
        for tag in (3, 0, 4, 1, 2):
            for k in range(tag, count, 5):
                out = torch.empty(20_000 if k % 3 == 0 else 2)
                dist.recv(out, 0, tag=tag)
                assert out[0].item() == out[-1].item() == k
    # All send many to all before anybody receives.
    outs = [[torch.empty(1) for _ in range(200)] for _ in range(ranks)]
    works = [dist.isend(torch.tensor([float(k)]), r, tag=7)
             for k in range(200) for r in range(ranks) if r != rank]  # fmt: skip
    works += [dist.irecv(out, r, tag=7)
              for r in range(ranks) if r != rank for out in outs[r]]  # fmt: skip
    for work in works:
        work.wait()
    for r in range(ranks):
        assert r == rank or [x.item() for x in outs[r]] == list(range(200))


def batches(rank, ranks, folder):
    """batch_isend_irecv, around a ring in both directions, beside collectives."""
    start(rank, ranks, folder)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    for step in range(20):
        size = (1, 1000, 300_000)[step % 3]
        x = torch.full((size,), float(rank + step))
        up, down = torch.empty(size), torch.empty(size)
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, up, before),
            dist.P2POp(dist.isend, x, before, tag=1), dist.P2POp(dist.irecv, down, after, tag=1),
        ])  # fmt: skip
        y = torch.ones(10)
        dist.all_reduce(y)
        for work in works:
            work.wait()
        assert up[-1].item() == before + step
        assert down[-1].item() == after + step


def any_source(rank, ranks, folder):
    """A receive from whichever rank sends first; ranks that have ended do not disturb it."""
    start(rank, ranks, folder)
    for _ in range(3):
        if rank == 0:
            seen = set()
            for _ in range(2 * (ranks - 1)):
                out = torch.empty(2)
                source = dist.recv(out)
                assert out.tolist() == [source] * 2
                seen.add(source)
            assert seen == set(range(1, ranks))
        else:
            dist.send(torch.full((2,), float(rank)), 0)
            dist.send(torch.full((2,), float(rank)), 0)
        dist.barrier()
    # From a named rank afterwards, though threads still listen to all.
    if rank == 0:
        out = torch.empty(50_000)
        for r in range(1, ranks):
            assert dist.recv(out, r) == r
            assert out[-1].item() == r
    else:
        dist.send(torch.full((50_000,), float(rank)), 0)
    if rank == 1:
        time.sleep(0.5)
        dist.send(torch.ones(1), 0, tag=4)
    elif rank == 0:
        assert dist.recv(torch.empty(1), tag=4) == 1


def last_words(rank, ranks, folder):
    """What was sent arrives, though the sender ends at once; and nobody waits for nothing."""
    start(rank, ranks, folder)
    if rank == 0:
        got = torch.empty(3)
        dist.recv(got, 1)  # so that the pair is connected
        time.sleep(0.5)
        dist.recv(got, 1)
        assert got.tolist() == [7.0] * 3
        dist.irecv(torch.empty(1), 1)  # will never come, and must not keep this process
    elif rank == 1:
        dist.send(torch.zeros(3), 0)
        dist.send(torch.full((3,), 7.0), 0)
    os._exit(0) if rank == 2 else None


# Groups.


def groups(rank, ranks, folder):
    """Groups of some ranks, in any order, at once, again and again; and a world made anew."""
    for turn in range(2):
        start(rank, ranks, folder, turn=turn)
        for members in ([0], [ranks - 1, 0], list(range(ranks)), list(range(1, ranks))):
            group = dist.new_group(sorted(members))
            if rank in members:
                x = torch.full((3,), rank + 1.0)
                dist.all_reduce(x, group=group)
                assert x[0].item() == sum(m + 1 for m in members)
                x = torch.full((3,), float(rank))
                dist.broadcast(x, max(members), group=group)
                assert x[0].item() == max(members)
                if len(members) > 1 and rank in (min(members), max(members)):
                    other = min(members) if rank == max(members) else max(members)
                    y = torch.empty(3)
                    works = [dist.isend(x + rank, other, group), dist.irecv(y, other, group)]
                    for work in works:
                        work.wait()
                    assert y[0].item() == max(members) + other
                dist.destroy_process_group(group)
        if rank < 2:  # only its members make it
            pair = dist.new_group([0, 1], use_local_synchronization=True)
            x = torch.ones(1)
            dist.all_reduce(x, group=pair)
            assert x.item() == 2
        gloo = dist.new_group(backend="gloo")
        x = torch.ones(1)
        dist.all_reduce(x, group=gloo)
        dist.destroy_process_group()


def splits(rank, ranks, folder):
    """Groups that are split from others, several at once, and again from those."""
    start(rank, ranks, folder)
    world = dist.new_group(list(range(ranks)), group_desc="all")
    world.set_timeout(timedelta(seconds=40))
    parts = [list(range(0, ranks, 2)), list(range(1, ranks, 2))]
    mine = parts[rank % 2]
    group = world.split_group(mine)
    assert (group.rank(), group.size()) == (mine.index(rank), len(mine))
    assert group.timeout == timedelta(seconds=40)
    assert group.group_desc == "all:split"
    x = torch.full((1000,), rank + 1.0)
    group.allreduce([x]).wait()
    assert x[-1].item() == sum(r + 1 for r in mine)
    assert world.split_group([(rank + 1) % ranks], group_name="others") is None
    alone = group.split_group([group.rank()], timedelta(seconds=5), group_desc="alone")
    assert (alone.size(), alone.timeout, alone.group_desc) == (1, timedelta(seconds=5), "alone")
    if len(mine) > 1:
        pair = group.split_group([0, 1], group_name="two")
        assert (pair is None) == (group.rank() > 1)
        if pair is not None:
            y = torch.empty(3)
            other = 1 - pair.rank()
            works = [pair.send([torch.full((3,), float(rank))], other, 0), pair.recv([y], other, 0)]
            for work in works:
                work.wait()
            assert y[0].item() == mine[other]
            pair.shutdown()
    refused(lambda: dist.split_group(world, parts), RuntimeError)  # torch has it for accelerators
    for each in (alone, group):
        each.shutdown()


def beside_gloo(rank, ranks, folder):
    """A group of ours in a world of Gloo's has a session of its own."""
    start(rank, ranks, folder, "gloo")
    group = dist.new_group(list(range(ranks - 1)), backend="roundelay")
    if rank < ranks - 1:
        x = torch.ones(3)
        dist.all_reduce(x, group=group)
        assert x[0].item() == ranks - 1
    whole = dist.new_group(backend="roundelay")
    x = torch.ones(3)
    dist.all_reduce(x, group=whole)
    assert x[0].item() == ranks


def names(rank, ranks, folder):
    """What torch says of a group."""
    start(rank, ranks, folder)
    assert dist.get_backend() == "roundelay"
    assert dist.get_world_size() == ranks
    group = dist.new_group(list(range(ranks)), group_desc="everyone")
    assert group.name() == "roundelay"
    assert group.group_desc == group.comm.name == "everyone"
    assert dist.new_group(list(range(ranks))).comm.name not in ("", "undefined")
    assert group.group_name
    assert group.rank() == rank
    assert group.size() == ranks
    assert dist.get_process_group_ranks(group) == list(range(ranks))
    assert dist.distributed_c10d._device_capability(group) == ["cpu"]
    assert group.comm.ranks == ranks


def other_devices(rank, ranks, folder):
    """Another backend beside ours takes the tensors of its devices."""
    from torch.testing._internal.distributed import fake_pg  # noqa: F401

    start(rank, ranks, folder, "cpu:roundelay,meta:fake")
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x[0].item() == ranks
    other = dist.group.WORLD.other(torch.device("meta"))
    assert other.size() == ranks
    assert dist.distributed_c10d._device_capability() == ["cpu", "meta"]


# Bad input.


def refused(what, error=rl.RoundelayError, **options):
    """The text of the error that a call raises."""
    try:
        what(**options)
    except error as found:
        return str(found)
    raise AssertionError("nobody complained")


def bad_input(rank, ranks, folder):
    """Every mistake is told, and the group goes on."""
    start(rank, ranks, folder)
    meta = torch.ones(3, device="meta")
    assert "cpu:roundelay,meta" in refused(lambda: dist.all_reduce(meta))
    sparse = torch.eye(3).to_sparse()
    assert "to_dense" in refused(lambda: dist.all_reduce(sparse))
    text = refused(lambda: dist.all_reduce(torch.ones(2, dtype=torch.float32), Op.BAND))
    assert "band" in text
    assert "complex" in refused(
        lambda: dist.group.WORLD.allreduce([torch.ones(2, dtype=torch.complex64)], _max()).wait()
    )
    outs = [torch.empty(2) for _ in range(ranks)]
    outs[-1] = torch.empty(2, dtype=torch.float64)
    assert "one dtype" in refused(lambda: dist.group.WORLD.allgather([outs], [torch.ones(2)]))
    assert "one a rank" in refused(lambda: dist.group.WORLD.allgather([outs[:-1]], [torch.ones(2)]))
    text = refused(lambda: dist.all_to_all_single(torch.empty(7), torch.ones(7), [7], [7]))
    assert "split sizes" in text
    text = refused(lambda: dist.all_gather_single(torch.empty(3), torch.ones(2)))
    assert "expected" in text
    sizes = [torch.empty(k) for k in range(ranks)]
    assert "one size" in refused(
        lambda: dist.group.WORLD.scatter([torch.empty(2)], [sizes], _root(rank))
    )
    assert "expected a rank" in refused(lambda: dist.group.WORLD.send([torch.ones(1)], ranks, 0))
    x = torch.ones(3)
    dist.all_reduce(x)
    assert x.tolist() == [ranks] * 3
    if rank == 0:
        dist.send(torch.ones(3), 1)
    elif rank == 1:
        assert "12 bytes" in refused(lambda: dist.recv(torch.empty(5), 0))
    world = dist.group.WORLD
    refused(lambda: start(rank, ranks, folder), ValueError)
    dist.destroy_process_group()
    assert "was destroyed" in refused(lambda: world.allreduce([x]))


def _max():
    options = c10d.AllreduceOptions()
    options.reduceOp = Op.MAX
    return options


def _root(rank):
    options = c10d.ScatterOptions()
    options.rootRank = rank
    return options


def differing(rank, ranks, folder):
    """A wrong shape on one rank is named on all."""
    start(rank, ranks, folder)
    x = torch.ones(3 if rank else 4)
    text = refused(lambda: dist.all_reduce(x), rl.CallsDiffer)
    assert "3 float32" in text
    assert "4 float32" in text


def lost(rank, ranks, folder):
    """The end of a rank is told within a second, also to who waits for a message of it."""
    start(rank, ranks, folder)
    dist.all_reduce(torch.ones(2))
    if rank == 1:
        dist.send(torch.ones(1), 0)
        os._exit(0)
    if rank == 0:
        dist.recv(torch.ones(1), 1)
        refused(lambda: dist.recv(torch.ones(1), 1), rl.PeerLost)
    begun = time.monotonic()
    text = refused(lambda: dist.all_reduce(torch.ones(2), async_op=True).wait(), rl.PeerLost)
    assert "rank 1" in text
    assert time.monotonic() - begun < 5
    os._exit(0)


def meeting_the_dead(rank, ranks, folder):
    """Who has gone is not waited for, where a group or a first message needs it."""
    start(rank, ranks, folder)
    dist.all_reduce(torch.ones(2))
    if rank == 2:
        os._exit(0)
    time.sleep(0.3)
    begun = time.monotonic()
    if rank == 0:
        text = refused(lambda: dist.new_group([0, 1, 2]), rl.PeerLost)
    else:
        text = refused(lambda: dist.recv(torch.ones(1), 2), rl.PeerLost)
    assert "rank 2 has gone" in text
    assert time.monotonic() - begun < 5
    os._exit(0)


def shrinking_twice(rank, ranks, folder):
    """Rank 0 dies in the middle of the shrink after rank 2's death; the other two go on."""
    from roundelay.torch import elastic

    start(rank, ranks, folder)
    dist.all_reduce(torch.ones(2))
    if rank == 2:
        os._exit(0)
    if rank == 0:
        elastic._store = lambda *_: os._exit(0)
    refused(lambda: dist.all_reduce(torch.ones(2)), rl.PeerLost)
    roundelay.torch.shrink()
    x = torch.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2.0, 2.0]
    assert dist.get_rank() == (0 if rank == 1 else 1)
    dist.destroy_process_group()
    os._exit(0)


def two_threads(rank, ranks, folder):
    """Two threads at once are told to take turns, or take a group each."""
    import threading

    start(rank, ranks, folder)
    apart = [dist.new_group() for _ in range(2)]
    wrong = []

    def many(group):
        try:
            for _ in range(50):
                x = torch.ones(100)
                dist.all_reduce(x, group=group)
                assert x[0].item() == ranks
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=many, args=(group,)) for group in apart]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong
