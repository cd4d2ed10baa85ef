"""DDP that loses a rank and goes on. Run it with

roundelay launch -n 4 --elastic examples/torch/elastic.py
"""

import os
import signal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import roundelay.torch

STEPS = 40

dist.init_process_group("roundelay")
torch.manual_seed(0)
net = torch.nn.Linear(8, 1, dtype=torch.float64)
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

step = 0
while step < STEPS:
    try:
        if dist.get_world_size() == 4 and dist.get_rank() == 2 and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        x = torch.randn(240, 8, dtype=torch.float64, generator=torch.manual_seed(step))
        x = x[dist.get_rank() :: dist.get_world_size()]
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        dist.all_reduce(loss := loss.detach(), dist.ReduceOp.AVG)
    except RuntimeError as error:  # DDP gives no other, whatever the backend
        if "has ended" not in str(error):
            raise
        roundelay.torch.shrink()
        if dist.get_rank() == 0:
            print(f"step {step}: {dist.get_world_size()} ranks go on")
        steps = [None] * dist.get_world_size()  # some may have made the step, others not
        dist.all_gather_object(steps, step)
        for tensor in net.state_dict().values():
            dist.broadcast(tensor, steps.index(max(steps)))
        step = max(steps)
        model = DistributedDataParallel(net)
        continue
    optimizer.step()
    step += 1
    if dist.get_rank() == 0 and step % 20 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
dist.destroy_process_group()
