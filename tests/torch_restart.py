"""A program under torchrun, one of whose ranks dies; torchrun then starts all of them anew."""

import os
import sys

import torch
import torch.distributed as dist

import roundelay.torch  # noqa: F401

dist.init_process_group("roundelay")
restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
x = torch.empty(3)
for step in range(50):
    if restarts == 0 and step == 20 and dist.get_rank() == int(sys.argv[1]):
        os._exit(5)
    dist.all_reduce(x.fill_(1))
    assert x[0] == dist.get_world_size()
print(f"ended after {restarts} restarts", flush=True)
dist.destroy_process_group()
