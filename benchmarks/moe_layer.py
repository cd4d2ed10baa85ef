"""A rank of `moe.py`: steps of a layer of experts, and how much of its exchange is hidden.

`moe_layer.py FILE` runs in a job; rank 0 writes what it finds.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

import roundelay as rl
from roundelay.workloads.experts import Experts, hidden

TOKENS, HIDDEN, INNER, EXPERTS, TOP_K = 1024, 512, 1024, 16, 4
STEPS, TURNS = 3, 5
WAYS = {
    "at once": {"micro_batches": 1},
    "two micro-batches": {"micro_batches": 2},
    "two waves of experts": {"micro_batches": 1, "waves": 2},
    "two micro-batches, each in two waves": {"micro_batches": 2, "waves": 2},
}


def expert(number: int) -> nn.Module:
    return nn.Sequential(nn.Linear(HIDDEN, INNER), nn.GELU(), nn.Linear(INNER, HIDDEN))


def turn(comm: rl.Communicator, layer: Experts, x: torch.Tensor) -> dict[str, float]:
    """A few steps, forward and backward."""
    layer.waited.clear()
    times = []
    comm.barrier()
    with comm.trace() as trace:
        for _ in range(STEPS):
            begin = time.perf_counter()
            layer(x).sum().backward()
            times.append(time.perf_counter() - begin)
            layer.zero_grad()
    found = hidden(trace.timeline, comm.rank, layer.waited)
    return {"step": statistics.median(times), "exchange": found.exchange / STEPS,
            "hidden": found.share}  # fmt: skip


def main(place: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with rl.init(timeout=120) as comm:
        layers = {
            name: Experts(comm, HIDDEN, EXPERTS, TOP_K, expert, **way)
            for name, way in WAYS.items()
        }  # fmt: skip
        x = torch.randn(TOKENS, HIDDEN, generator=torch.Generator().manual_seed(comm.rank))
        found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
        for number in range(TURNS + 1):  # the first makes the connections
            for name, layer in layers.items():
                figures = turn(comm, layer, x)
                found[name] += [figures] if number else []
        if comm.rank == 0:
            Path(place).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
