"""Programs that look at what torch's own tools see of a group's calls."""

import json
import os
import timeit
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.autograd import profiler
from torch.profiler import ProfilerActivity, profile
from torch_programs import perform, refused, start

import roundelay as rl
import roundelay.torch

FIELDS = {"Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size"}
"""What torch's own checks of traces ask of an event of a collective."""


def main(names, arguments):
    perform(globals(), names, *arguments)


def profiled(rank, ranks, folder):
    """A trace of the profiler has an event for each call, with the fields that tools look for."""
    start(rank, ranks, folder)
    part = dist.new_group([0, ranks - 1], group_desc="ends")
    one, wide = torch.ones(5), torch.ones(2 * ranks, dtype=torch.bfloat16)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        dist.all_reduce(one)
        dist.all_reduce(one, async_op=True).wait()
        dist.broadcast(one, 0)
        dist.all_gather([torch.empty(5) for _ in range(ranks)], one)
        dist.all_gather_single(torch.empty(2 * ranks, dtype=torch.bfloat16), wide[:2])
        dist.reduce_scatter_single(torch.empty(2, dtype=torch.bfloat16), wide)
        dist.all_to_all_single(wide.clone(), wide, [2] * ranks, [2] * ranks)
        dist.barrier()
        if rank in (0, ranks - 1):
            dist.all_reduce(one, group=part)
            if rank:
                dist.send(one, 0, part)
            else:
                dist.recv(one, ranks - 1, part)
    place = folder / f"trace{rank}.json"
    seen.export_chrome_trace(str(place))
    events = [e for e in json.loads(place.read_text())["traceEvents"]
              if e.get("ph") == "X" and e["name"].startswith("roundelay:")]  # fmt: skip
    events.sort(key=lambda e: e["ts"])
    named = [e["name"].removeprefix("roundelay:") for e in events]
    assert named[:8] == [
        "all_reduce", "all_reduce", "broadcast", "all_gather", "_allgather_base",
        "_reduce_scatter_base", "all_to_all", "barrier",
    ], named  # fmt: skip
    found = [e["args"] for e in events]
    assert all(args.keys() >= FIELDS for args in found)
    first, last = found[0], found[-1]
    assert first["Collective name"] == "allreduce"
    assert (first["In msg nelems"], first["Out msg nelems"], first["dtype"]) == (5, 5, "Float")
    assert first["Process Group Ranks"] == f"{list(range(ranks))}"
    assert first["Process Group Description"] == "default_pg"
    assert (first["Group size"], first["Global rank start"]) == (ranks, 0)
    assert found[3]["Out msg nelems"] == 5 * ranks
    assert (found[4]["In msg nelems"], found[4]["Out msg nelems"]) == (2, 2 * ranks)
    assert found[4]["dtype"] == "BFloat16"
    assert found[6]["In split size"] == f"{[2] * ranks}"
    assert found[7]["In msg nelems"] == 0
    if rank in (0, ranks - 1):
        assert last["Process Group Ranks"] == f"{[0, ranks - 1]}"
        assert (last["Process Group Description"], last["Group size"]) == ("ends", 2)
        assert last["Dst Rank" if rank else "Src Rank"] == (0 if rank else 1)


def unseen(rank, ranks, folder):
    """Says what a call's look at the profiler costs while none is active."""
    start(rank, ranks, folder)
    many = 1_000_000
    cost = timeit.timeit("p._is_profiler_enabled", globals={"p": profiler}, number=many) / many
    print(f"{cost * 1e9:.0f} ns to see that there is no profiler")


def mismatched(rank, ranks, folder):
    """Rank 1 brings another size to the fourth call; every rank writes its last calls."""
    start(rank, ranks, folder)
    for _ in range(3):
        dist.all_reduce(torch.ones(10))
    dist.barrier()
    x = torch.ones(8 if rank == 1 else 7)
    refused(lambda: dist.all_reduce(x), rl.CallsDiffer)  # TORCH_FR_DUMP_TEMP_FILE has it dumped
    os._exit(0)


def absent(rank, ranks, folder):
    """The last rank leaves one call out; each writes its calls while the others hang in it."""
    start(rank, ranks, folder)
    part = dist.new_group(group_desc="part")
    for _ in range(20):  # more than are kept
        dist.all_gather_single(torch.empty(3 * ranks), torch.ones(3), group=part)
    assert "no prefix" in refused(lambda: roundelay.torch.dump(group=part))
    gloo = dist.new_group(backend="gloo")
    assert "expected a process group" in refused(lambda: roundelay.torch.dump("x", gloo))
    assert "cannot write" in refused(lambda: roundelay.torch.dump("/nowhere/rank", part))
    store = part.get_group_store()
    if rank == ranks - 1:
        store.wait([f"written {r}" for r in range(rank)])
        roundelay.torch.dump(folder / "rank", part)
    else:
        work = dist.all_reduce(torch.ones(5), group=part, async_op=True)
        refused(lambda: work.wait(timedelta(seconds=1)), rl.TooLate)
        assert roundelay.torch.dump(folder / "rank", part) == folder / f"rank{rank}"
        store.set(f"written {rank}", "")
    store.set(f"end {rank}", "")
    store.wait([f"end {r}" for r in range(ranks)])
    os._exit(0)
