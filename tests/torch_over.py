"""Programs that run schedules over the messages of any group; Gloo's own calls check them."""

import torch
import torch.distributed as dist
from torch_programs import Op, equal, perform, refused, start, values

import roundelay as rl
from roundelay.torch import run_over

OPS = {"sum": Op.SUM, "product": Op.PRODUCT, "min": Op.MIN, "max": Op.MAX}
SIZES = (0, 1, 7, 1000)


def main(names, arguments):
    perform(globals(), names, *arguments)


def wanted(collective, rank, ranks, root, x, op=Op.SUM):
    """What Gloo makes of it: the input that this rank has, and its result or None."""
    parts = [torch.empty_like(x) for _ in range(ranks)]
    whole = torch.cat([x + r for r in range(ranks)])
    if collective in ("all_reduce", "reduce", "broadcast"):
        y = x.clone()
        if collective == "all_reduce":
            dist.all_reduce(y, op)
        elif collective == "reduce":
            dist.reduce(y, root, op)
        else:
            dist.broadcast(y, root)
        return x, y if collective != "reduce" or rank == root else x
    if collective == "all_gather":
        dist.all_gather(parts, x)
        return x, torch.cat(parts)
    if collective == "gather":
        dist.gather(x, parts if rank == root else None, root)
        return x, torch.cat(parts) if rank == root else None
    if collective == "scatter":
        y = torch.empty_like(x)
        dist.scatter(y, list(whole.chunk(ranks)) if rank == root and x.numel() else
                     parts if rank == root else None, root)  # fmt: skip
        return whole if rank == root else None, y
    if collective == "reduce_scatter":
        every = whole.clone()
        dist.all_reduce(every, op)
        return whole, every[rank * x.numel() : (rank + 1) * x.numel()]
    y = torch.empty_like(whole)
    dist.all_to_all_single(y, whole)
    return whole, y


def check(schedule, size, dtype=torch.float64, op="sum"):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x = values(rank, size, dtype)
    given, want = wanted(schedule.collective, rank, ranks, schedule.root, x, OPS[op])
    before = None if given is None else given.clone()
    out = None
    if schedule.collective == "scatter" or size % 2:
        out = None if want is None else torch.empty_like(want)
        if schedule.collective == "reduce" and rank != schedule.root:
            out.copy_(want)
    got = run_over(None, schedule, given, out, op)
    about = (schedule, size, dtype, op)
    if want is None:
        assert got is None, about
    else:
        equal(got, want, about)
        assert out is None or got is out
        if got is not given and before is not None:
            equal(given, before, about)


def every_schedule(rank, ranks, folder):
    """Every algorithm of the library that works without switches, at every size."""
    start(rank, ranks, folder, "gloo")
    names = set()
    for algorithm in rl.algorithms():
        if algorithm.collective in ("barrier", "send_recv"):
            continue
        for parameters in algorithm.variants(ranks):
            root = ranks // 2 if algorithm.kind.rooted else 0
            schedule = algorithm(ranks, root, **dict(parameters))
            if not schedule.helpers:
                names.add(algorithm.name)
                for size in SIZES:
                    check(schedule, size)
    assert names >= {"ring", "binomial", "one_shot", "direct", "pairwise"}, names
    if ranks == 4:
        assert names >= {"halving_doubling", "double_tree", "bruck", "hierarchical"}, names


def types(rank, ranks, folder):
    """Every operation, and types that Gloo has no messages of, or cannot add."""
    start(rank, ranks, folder, "gloo")
    ring = rl.build("all_reduce/ring", ranks)
    for op in OPS:
        for dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.int8):
            check(ring, 101, dtype, op)
    narrow = (torch.float8_e5m2, torch.complex64, torch.bfloat16, torch.bool, torch.int16)
    for dtype in narrow:
        x = values(rank, 9, dtype)
        out = run_over(None, rl.build("all_gather/ring", ranks), x)
        equal(out, torch.cat([values(r, 9, dtype) for r in range(ranks)]))
    total = ranks * (ranks + 1) / 2
    for dtype in (torch.complex64, torch.bfloat16):
        x = torch.full((5,), rank + 1).to(dtype)
        assert run_over(None, ring, x) is x
        assert x.tolist() == [total] * 5
    for dtype, mean in ((torch.float32, -total / ranks), (torch.int32, -(total // ranks))):
        x = torch.full((5,), -rank - 1).to(dtype)
        run_over(None, ring, x, op=Op.AVG)
        assert x.tolist() == [mean] * 5
    reduce = rl.build("reduce/binomial", ranks)
    x = torch.full((5,), rank + 1.0)
    run_over(None, reduce, x, op="avg")
    assert x.tolist() == [total / ranks if rank == 0 else rank + 1.0] * 5


def tensors(rank, ranks, folder):
    """Uneven pieces, strided tensors, shapes, memory that overlaps, sub-groups, our own group."""
    start(rank, ranks, folder, "gloo")
    ring, whole = rl.build("all_gather/ring", ranks), rl.build("all_reduce/ring", ranks)
    counts = [(3 * r + 1) % 5 for r in range(ranks)]
    every = [torch.full((n,), float(r)) for r, n in enumerate(counts)]
    equal(run_over(None, ring, every[rank], counts=counts), torch.cat(every))
    x = torch.cat(every)
    got = run_over(None, rl.build("reduce_scatter/ring", ranks), x, counts=counts)
    equal(got, every[rank] * ranks)
    x = torch.arange(12.0).reshape(3, 4).t()
    assert run_over(None, whole, x) is x
    equal(x, torch.arange(12.0).reshape(3, 4).t() * ranks)
    both = torch.zeros(2 * ranks)
    both[2 * rank : 2 * rank + 2] = rank
    run_over(None, ring, both[2 * rank : 2 * rank + 2], both)
    equal(both, torch.arange(float(ranks)).repeat_interleave(2))
    x = torch.ones(4, requires_grad=True)
    with torch.no_grad():
        run_over(None, whole, x)
    assert x.tolist() == [ranks] * 4
    members = list(range(1, ranks))
    for backend in ("gloo", "roundelay"):
        group = dist.new_group(members, backend=backend)
        if rank in members:
            x = torch.full((50,), float(rank))
            run_over(group, rl.build("all_reduce/ring", len(members)), x)
            assert x[-1].item() == sum(members)


def mistakes(rank, ranks, folder):
    """Bad input is refused on every rank before anything is sent."""
    start(rank, ranks, folder, "gloo")
    x, ring = torch.ones(4), rl.build("all_reduce/ring", ranks)
    switch = next(a for a in rl.algorithms("all_reduce") if a(4).helpers)
    wrong = rl.Schedule("all_reduce", ranks, 1, tuple(rl.build("broadcast/binomial", ranks).rounds))
    gather = rl.build("all_gather/ring", ranks)
    for call, word in (
        (lambda: run_over(None, rl.build("all_reduce/ring", ranks + 1), x), "expected as many"),
        (lambda: run_over(None, switch(ranks), x), "switches"),
        (lambda: run_over(None, wrong, x), "not right"),
        (lambda: run_over(None, rl.build("barrier/dissemination", ranks), x), "all_reduce"),
        (lambda: run_over(None, ring, x, op="median"), "expected one of sum"),
        (lambda: run_over(None, ring, x, op=Op.BAND), "expected one of sum"),
        (lambda: run_over(None, ring, x * 1j, op="max"), "torch has no max"),
        (lambda: run_over(None, ring, x, torch.ones(5)), "expected 4"),
        (lambda: run_over(None, ring, x, torch.ones(4, dtype=torch.int32)), "expected torch.float"),
        (lambda: run_over(None, ring, x, torch.ones(4, device="meta")), "expected torch.float"),
        (lambda: run_over(None, ring, None), "expected a tensor"),
        (lambda: run_over(None, gather, x, counts=[1]), "numbers from 0 up"),
        (lambda: run_over(None, gather, x, counts=[1] * ranks), "expected 1"),
        (lambda: run_over(None, rl.build("all_to_all/direct", ranks), torch.ones(ranks + 1)),
         "expected a multiple"),
    ):  # fmt: skip
        assert word in refused(call), word
    run_over(None, ring, x)
    assert x.tolist() == [ranks] * 4
