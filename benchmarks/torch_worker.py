"""A rank of `torch_backend.py`: times torch.distributed over Roundelay and Gloo, in turns."""

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import roundelay.torch  # noqa: F401  (registers the backend)

SIZES = (8, 1 << 10, 32 << 10, 1 << 20, 16 << 20, 128 << 20)  # bytes, as in nccl-tests
TURNS = 5
SECONDS = 0.05  # of one library's turn
SLOW = 100_000  # us: calls that take so long are made once a turn
STEPS = 8  # of training in a turn

Call = Callable[[], Any]


def calls(size: int, group: Any) -> Iterator[tuple[str, Call]]:
    """The collectives on float32 tensors, as torch's users make them."""
    rank, n = dist.get_rank(), dist.get_world_size()
    each = max(1, size // 4 // n)
    whole, piece = torch.ones(max(2, size // 4)), torch.ones(each)
    wide, other = torch.ones(each * n), torch.ones(each * n)
    parts = list(other.chunk(n)) if rank == 0 else None
    yield "all_reduce", partial(dist.all_reduce, whole, group=group)
    yield "reduce", partial(dist.reduce, whole, 0, group=group)
    yield "broadcast", partial(dist.broadcast, whole, 0, group=group)
    yield "all_gather", partial(dist.all_gather_single, wide, piece, group=group)
    yield "reduce_scatter", partial(dist.reduce_scatter_single, piece, wide, group=group)
    yield "gather", partial(dist.gather, piece, parts, 0, group=group)
    yield "scatter", partial(dist.scatter, piece, parts, 0, group=group)
    yield "all_to_all", partial(dist.all_to_all_single, wide, other, group=group)


def ping_pong(size: int, group: Any) -> Call:
    """A message there and back between ranks 0 and 1."""
    rank, x = dist.get_rank(), torch.ones(max(1, size // 4))

    def call() -> None:
        if rank == 0:
            dist.send(x, 1, group)
            dist.recv(x, 1, group)
        elif rank == 1:
            dist.recv(x, 0, group)
            dist.send(x, 0, group)

    return call


def timed(call: Call, times: int) -> float:
    """Us a call; the same on all ranks, for all wait until the last has done."""
    dist.barrier()
    begun = time.perf_counter()
    for _ in range(times):
        call()
    dist.barrier()
    found = torch.tensor([(time.perf_counter() - begun) / times * 1e6])
    dist.broadcast(found, 0)
    return float(found)


def in_turns(ours: Call, theirs: Call) -> dict[str, float]:
    """The median of each, us."""
    times = []
    for call in (ours, theirs):
        first = timed(call, 1)
        each = first if first > SLOW else timed(call, 3)
        times.append(int(min(2000, max(1 if each > SLOW else 2, SECONDS * 1e6 / each))))
    found = [[timed(call, k) for call, k in zip((ours, theirs), times, strict=True)]
             for _ in range(TURNS)]  # fmt: skip
    a, b = (statistics.median(column) for column in zip(*found, strict=True))
    return {"ours_us": a, "gloo_us": b}


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.ahead = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.ahead(self.second(x))


def silent(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """A hook of DistributedDataParallel that exchanges nothing."""
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


def training(group: Any, hook: Any = None) -> Call:
    """A step of a transformer of 1.6 million parameters."""
    torch.manual_seed(1)
    blocks = nn.Sequential(Block(256), Block(256))
    net = nn.parallel.DistributedDataParallel(blocks, process_group=group)
    if hook is not None:
        net.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(2, 16, 256)

    def step() -> None:
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()

    return step


def steps(group: Any) -> dict[str, float]:
    """Us of a step without exchange, and over each library."""
    ours = dist.group.WORLD
    runs = {"alone_us": training(ours, silent), "ours_us": training(ours),
            "gloo_us": training(group)}  # fmt: skip
    for run in runs.values():
        timed(run, 3)
    found = [{name: timed(run, STEPS) for name, run in runs.items()} for _ in range(2 * TURNS)]
    return {name: statistics.median(turn[name] for turn in found) for name in runs}


def main(place: str) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("roundelay")
    gloo = dist.new_group(backend="gloo")
    rows, messages = [], []
    for size in SIZES:
        pairs = zip(calls(size, None), calls(size, gloo), strict=True)
        for (name, ours), (_, theirs) in pairs:
            rows.append({"call": name, "bytes": size, **in_turns(ours, theirs)})
        found = in_turns(ping_pong(size, None), ping_pong(size, gloo))
        messages.append({"call": "send and recv, there and back", "bytes": size, **found})
    comm, x = dist.group.WORLD.comm, torch.ones(2)  # type: ignore[union-attr]
    direct = timed(partial(comm.all_reduce, x.numpy()), 2000)
    result = {"rows": rows, "messages": messages, "direct_us": direct, "ddp": steps(gloo)}
    if dist.get_rank() == 0:
        Path(place).write_text(json.dumps(result))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
