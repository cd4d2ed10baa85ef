"""Data parallel training over Roundelay: run it by `roundelay launch -n 2 ddp.py` or torchrun."""

import torch
import torch.distributed as dist
from torch import nn

import roundelay.torch  # noqa: F401  (only where roundelay is not installed)

STEPS = 5

dist.init_process_group("roundelay")  # was "gloo"; nothing else is different
rank, ranks = dist.get_rank(), dist.get_world_size()

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
model = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)

torch.manual_seed(100 + rank)  # each rank has data of its own
x = torch.randn(64, 8)
target = x.sum(1, keepdim=True).sin()

for step in range(STEPS):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()  # gradients are added up on the way
    optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if rank == 0:
        print(f"step {step}: loss {mean.item() / ranks:.3f}")

dist.destroy_process_group()
