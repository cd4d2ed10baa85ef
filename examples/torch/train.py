"""A language model that learns this project's licence, by plain DDP. Run it with

roundelay launch -n 2 examples/torch/train.py

or torchrun. Only the name of the backend is Roundelay's; everything else is torch's.
"""

from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import roundelay.torch  # noqa: F401  (only where roundelay is not installed)

WIDTH, CONTEXT, BATCH, STEPS = 32, 32, 16, 40


class Model(nn.Module):
    """One layer of attention to the bytes before, and a guess at the next."""

    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layer = nn.TransformerEncoderLayer(
            WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True
        )
        self.head = nn.Linear(WIDTH, 256)
        self.mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT, dtype=torch.float64)

    def forward(self, tokens):
        x = self.token(tokens) + self.place.weight
        return self.head(self.layer(x, self.mask, is_causal=True))


dist.init_process_group("roundelay")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
model = DistributedDataParallel(Model(), bucket_cap_mb=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
text = torch.tensor(list((Path(__file__).parents[2] / "LICENSE").read_bytes()))

for step in range(STEPS + 1):
    draw = torch.Generator().manual_seed(step)  # the same batch whatever the number of ranks
    first = torch.randint(len(text) - CONTEXT, (BATCH, 1), generator=draw)[rank::ranks]
    part = text[first + torch.arange(CONTEXT + 1)]
    loss = cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()  # DDP adds gradients up, bucket by bucket, while this still runs
    optimizer.step()
    dist.all_reduce(mean := loss.detach().clone(), dist.ReduceOp.AVG)
    if rank == 0 and step % 10 == 0:
        print(f"step {step}: loss {mean.item():.3f}")

dist.destroy_process_group()
