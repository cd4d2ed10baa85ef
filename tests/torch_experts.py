"""What ranks do in the tests of the layer of experts; see `rank_programs`."""

import os
import signal
import sys
import threading

import numpy as np
import torch
from torch import nn

import roundelay as rl
from roundelay.errors import RoundelayError
from roundelay.moe import Placement
from roundelay.workloads.experts import Experts, hidden

HIDDEN, EXPERTS, K = 12, 8, 3

torch.set_num_threads(1)


def main(name, arguments):
    comm = rl.init(timeout=30)
    for each in name.split():
        globals()[each](comm, *arguments)
    comm.close()


def expert(number):
    torch.manual_seed(100 + number)
    net = nn.Sequential(nn.Linear(HIDDEN, 20), nn.Tanh(), nn.Linear(20, HIDDEN))
    return net.double()


def layer(comm, **more):
    torch.manual_seed(7)
    return Experts(comm, HIDDEN, more.pop("experts", EXPERTS), K, expert, **more).double()


def tokens(rank, count):
    return torch.randn(count, HIDDEN, dtype=torch.float64,
                       generator=torch.Generator().manual_seed(rank))  # fmt: skip


class Uncut(nn.Module):
    """All experts in one process, token by token."""

    def __init__(self, gate, nodes, max_nodes):
        super().__init__()
        self.gate = nn.Linear(HIDDEN, EXPERTS, bias=False).double()
        self.gate.load_state_dict(gate.state_dict())
        self.experts = nn.ModuleList(expert(e) for e in range(EXPERTS))
        self.nodes, self.max_nodes = nodes, max_nodes

    def forward(self, x):
        rows = []
        for token, scores in zip(x, self.gate(x).softmax(-1), strict=True):
            open_ = scores
            if self.max_nodes:
                groups = scores.reshape(self.nodes, -1)
                best = groups.topk(2, dim=1).values.sum(1).topk(self.max_nodes).indices
                closed = torch.ones_like(groups, dtype=torch.bool)
                closed[best] = False
                open_ = groups.masked_fill(closed, -1).reshape(-1)
            chosen = open_.topk(K).indices
            total = scores[chosen].sum()
            rows.append(sum(scores[e] / total * self.experts[e](token) for e in chosen.tolist()))
        return torch.stack(rows) if rows else x * 1


def compare(comm, counts, nodes=None, **more):
    """Output, gradient of the input, of the gate and of the experts: as without cutting."""
    ours = layer(comm, **more)
    nodes = nodes or comm.ranks // ours.group
    uncut = Uncut(ours.gate, nodes, ours.max_nodes)
    x = tokens(comm.rank, counts[comm.rank]).requires_grad_()
    y = ours(x)
    (y**2).sum().backward()
    every = [tokens(r, c).requires_grad_() for r, c in enumerate(counts)]
    expected = [uncut(t) for t in every]
    sum((e**2).sum() for e in expected).backward()
    assert torch.allclose(y, expected[comm.rank], rtol=1e-10, atol=1e-12)
    assert torch.allclose(x.grad, every[comm.rank].grad, rtol=1e-9, atol=1e-11)
    gate = comm.all_reduce(ours.gate.weight.grad)
    wanted = uncut.gate.weight.grad
    wanted = torch.zeros_like(gate) if wanted is None else wanted  # no token at all
    assert torch.allclose(gate, wanted, rtol=1e-9, atol=1e-11)
    if ours.placement.slots.size == EXPERTS:
        for slot, number in enumerate(ours.placement.slots[comm.rank].tolist()):
            for a, b in zip(ours.experts[slot].parameters(),
                            uncut.experts[number].parameters(), strict=True):  # fmt: skip
                found = torch.zeros_like(b) if a.grad is None else a.grad
                wanted = torch.zeros_like(b) if b.grad is None else b.grad
                assert torch.allclose(found, wanted, rtol=1e-9, atol=1e-11)


def as_uncut(comm):
    counts = [5, 0, 9, 2][: comm.ranks]
    for scheme in ("flat_expert", "flat_card", "two_hop"):
        compare(comm, counts, scheme=scheme, group=2)
    for micro_batches, waves in ((1, 1), (1, 2), (3, 1), (2, 2)):
        compare(comm, counts, group=2, micro_batches=micro_batches, waves=waves)
    compare(comm, counts, group=2, max_nodes=1)
    compare(comm, [0] * comm.ranks, group=2)
    load = np.array([9, 1, 1, 1, 5, 1, 1, 1])
    compare(comm, counts, experts=Placement.balanced(load, comm.ranks, EXPERTS // comm.ranks + 1))


def in_fp8(comm):
    exact, rough = layer(comm, group=2), layer(comm, group=2, fp8=True)
    x = tokens(comm.rank, 20).requires_grad_()
    y = exact(x)
    y.sum().backward()
    wanted, x.grad = x.grad, None
    found = rough(x)
    found.sum().backward()
    assert 0 < (found - y).abs().max() < 0.1 * y.abs().max()
    assert 0 < (x.grad - wanted).abs().max() < 0.2 * wanted.abs().max()


def one_gate(comm):
    """Whatever the ranks drew before, they send a token to the same experts."""
    torch.manual_seed(comm.rank)
    ours = Experts(comm, HIDDEN, EXPERTS, K, expert).gate.weight.detach()
    every = comm.all_gather(ours).reshape(comm.ranks, -1)
    assert (every == every[0]).all()


def learns(comm):
    """A few steps of training: gradients of the gate are added up, those of experts are not."""
    net = layer(comm, group=2)
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    x = tokens(comm.rank, 30)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = ((net(x) - x.sin()) ** 2).mean()
        loss.backward()
        comm.all_reduce(net.gate.weight.grad)
        optimizer.step()
        losses.append(float(comm.all_reduce(loss.detach().reshape(1).clone())))
    assert losses[-1] < 0.9 * losses[0]


def hides(comm):
    """The trace says how much of the exchange nobody waited for."""
    torch.manual_seed(7)
    net = Experts(comm, 256, 4 * comm.ranks, 2, lambda _: nn.Linear(256, 256), micro_batches=4)
    x = torch.randn(2000, 256)
    net(x).sum().backward()  # connections and memory
    net.waited.clear()
    with comm.trace() as trace:
        net(x).sum().backward()
    found = hidden(trace.timeline, comm.rank, net.waited)
    assert found.exchange > 0
    assert 0 < found.share <= 1, found


def mistakes(comm):
    net = layer(comm, group=1)
    for x, message in (
        (torch.zeros(3), "expected float32 or float64 of shape (tokens, hidden)"),
        (torch.zeros(3, HIDDEN, dtype=torch.int64), "x is of torch.int64"),
        (torch.zeros(3, HIDDEN, dtype=torch.float64, device="meta"), "on meta"),
    ):
        says(message, lambda x=x: net(x))
    says("waves = 0", lambda: layer(comm, waves=0))
    says(f"{EXPERTS + 1} experts on", lambda: layer(comm, experts=EXPERTS + 1))
    says("experts on 5 ranks", lambda: layer(comm, experts=Placement.even(10, 5)))
    comm.barrier()


def says(message, do):
    try:
        do()
    except RoundelayError as error:
        found = str(error)
    else:
        found = "no error"
    assert message in found, found


def dies(comm, dying):
    net = layer(comm, group=2)
    x = tokens(comm.rank, 200).requires_grad_()
    net(x).sum().backward()
    if comm.rank == dying:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
    try:
        while True:
            net(x).sum().backward()
    except rl.ExchangeError as error:
        print(type(error).__name__)
        sys.stdout.flush()
