"""A schedule of one's own over Gloo's messages: `roundelay launch -n 4 schedule.py` or torchrun."""

import torch
import torch.distributed as dist

import roundelay as rl
from roundelay.torch import run_over

dist.init_process_group("gloo")  # "nccl", and tensors on GPUs, are the same
rank, ranks = dist.get_rank(), dist.get_world_size()

pairs = [[r, r + 1] for r in range(0, ranks, 2)]
ladders = [list(range(0, ranks, 2)), list(range(1, ranks, 2))]
schedule = rl.then(
    rl.on(pairs, rl.build("reduce_scatter/ring", 2)),  # inside a node of two ranks
    rl.on(ladders, rl.build("all_reduce/ring", ranks // 2)),  # between the nodes
    rl.on(pairs, rl.build("all_gather/ring", 2)),
)

x = torch.full((7,), rank + 1.0)
run_over(None, schedule, x)
if rank == 0:
    print(x.tolist())

dist.destroy_process_group()
