"""Small trainings in every parallel style of torch, whose losses the tests compare with Gloo's."""

from functools import partial

import torch
import torch.distributed as dist
import torch_programs
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch_programs import same, start

STEPS = 4
WIDE = 16


def main(names, arguments):
    torch.set_default_dtype(torch.float64)
    torch_programs.perform(globals(), names, *arguments)


def model(seed=1):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(WIDE, 2 * WIDE), nn.GELU(), nn.Linear(2 * WIDE, WIDE), nn.LayerNorm(WIDE),
        nn.Linear(WIDE, WIDE),
    )  # fmt: skip


def batches(part=0, steps=STEPS):
    """Inputs and targets of every step; parts see different ones."""
    generator = torch.Generator().manual_seed(1000 + part)
    for _ in range(steps):
        yield (torch.randn(8, WIDE, generator=generator), torch.randn(8, WIDE, generator=generator))


def train(net, optimizer, part=0, steps=STEPS):
    """The loss of every step, which is the same on all ranks."""
    losses = []
    for x, target in batches(part, steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item())
    return losses


def adam(net):
    return torch.optim.AdamW(net.parameters(), lr=0.01)


# Data parallel.


def _ddp(rank, ranks, hook=None, steps=STEPS, **options):
    net = nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.01, **options)
    if hook is not None:
        net.register_comm_hook(None, hook())
    return train(net, adam(net), rank, steps)


def _halved(state, bucket):
    """A hook that averages, and chains a step of its own to the future of the work."""
    work = dist.all_reduce(bucket.buffer(), async_op=True)
    ranks = dist.get_world_size()
    return work.get_future().then(lambda future: future.value()[0] / ranks)


def _power():
    """A hook that calls again, and waits, in what it chains to the future of a call."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2, matrix_approximation_rank=2)
    return lambda _, bucket: powerSGD_hook.powerSGD_hook(state, bucket)


def ddp(rank, ranks, folder):
    same(rank, ranks, folder, _ddp)


def ddp_hook(rank, ranks, folder):
    same(rank, ranks, folder, partial(_ddp, hook=lambda: _halved))
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    half = partial(_ddp, hook=lambda: default_hooks.fp16_compress_hook)
    same(rank, ranks, folder, half, 1e-3, turn=1)
    same(rank, ranks, folder, partial(_ddp, hook=_power), turn=2)


def ddp_options(rank, ranks, folder):
    same(rank, ranks, folder, partial(_ddp, static_graph=True, gradient_as_bucket_view=True))
    same(rank, ranks, folder, partial(_ddp, find_unused_parameters=True), turn=1)


def zero(rank, ranks, folder):
    def program(rank, ranks):
        from torch.distributed.optim import ZeroRedundancyOptimizer

        net = nn.parallel.DistributedDataParallel(model())
        optimizer = ZeroRedundancyOptimizer(
            net.parameters(), optimizer_class=torch.optim.AdamW, lr=0.01
        )
        losses = train(net, optimizer, rank)
        optimizer.consolidate_state_dict(0)
        return losses

    same(rank, ranks, folder, program)


# Sharded data parallel.


def _sharded(rank, ranks, shape, names, steps=STEPS):
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    return train(net, adam(net), rank, steps)


def fsdp(rank, ranks, folder):
    same(rank, ranks, folder, partial(_sharded, shape=(ranks,), names=("all",)))


def hsdp(rank, ranks, folder):
    shape = (2, ranks // 2)
    same(rank, ranks, folder, partial(_sharded, shape=shape, names=("replicate", "shard")))


def hundred_steps(rank, ranks, folder):
    """In float32, 100 steps long."""
    torch.set_default_dtype(torch.float32)
    same(rank, ranks, folder, partial(_ddp, steps=100), 1e-3)
    sharded = partial(_sharded, shape=(ranks,), names=("all",), steps=100)
    same(rank, ranks, folder, sharded, 1e-3, turn=1)


def loaders(rank, ranks, folder):
    """Processes that torch's DataLoader forks leave the group alone."""
    start(rank, ranks, folder)
    data = torch.utils.data.TensorDataset(torch.arange(64.0))
    sampler = torch.utils.data.DistributedSampler(data)
    loader = torch.utils.data.DataLoader(data, batch_size=4, sampler=sampler, num_workers=2)
    total = torch.zeros(1)
    for _ in range(2):
        for (x,) in loader:
            part = x.sum().reshape(1)
            dist.all_reduce(part)
            total += part
    assert total.item() == 2 * 64 * 63 / 2


# Tensor and sequence parallel.


def tensor_parallel(rank, ranks, folder):
    def program(rank, ranks):
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            RowwiseParallel,
            parallelize_module,
        )

        mesh = init_device_mesh("cpu", (ranks,))
        plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        net = parallelize_module(model(), mesh, plan)
        return train(net, torch.optim.SGD(net.parameters(), lr=0.1, foreach=False))

    same(rank, ranks, folder, program)


def sequence_parallel(rank, ranks, folder):
    def program(rank, ranks):
        from torch.distributed.tensor import Shard
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            RowwiseParallel,
            SequenceParallel,
            parallelize_module,
        )

        mesh = init_device_mesh("cpu", (ranks,))
        plan = {
            "0": ColwiseParallel(input_layouts=Shard(0)),
            "2": RowwiseParallel(output_layouts=Shard(0)),
            "3": SequenceParallel(sequence_dim=0),
        }
        net = parallelize_module(model()[:4], mesh, plan)
        losses = []
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
        for x, target in batches():
            optimizer.zero_grad()
            out = net(x.chunk(ranks)[rank])
            loss = nn.functional.mse_loss(out.full_tensor(), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    same(rank, ranks, folder, program)


def redistribution(rank, ranks, folder):
    """DTensor between all placements gives back what was distributed."""
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    start(rank, ranks, folder)
    mesh = init_device_mesh("cpu", (ranks,))
    whole = torch.arange(60.0).reshape(6, 10)
    kinds = [Shard(0), Shard(1), Replicate()]
    for source in kinds:
        for target in kinds:
            moved = distribute_tensor(whole, mesh, [source]).redistribute(mesh, [target])
            assert bool((moved.full_tensor() == whole).all()), (source, target)
    for target in kinds:
        part = DTensor.from_local(whole.clone(), mesh, [Partial()])
        assert bool((part.redistribute(mesh, [target]).full_tensor() == whole * ranks).all())
    grid = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("rows", "columns"))
    for source in ([Shard(0), Shard(1)], [Shard(0), Replicate()], [Replicate(), Shard(0)]):
        assert bool((distribute_tensor(whole, grid, source).full_tensor() == whole).all()), source
    for name in ("rows", "columns"):
        group = grid[name].get_group()
        x = torch.ones(3)
        dist.all_reduce(x, group=group)
        assert x[0].item() == dist.get_world_size(group)


# Pipelines.


def pipeline(rank, ranks, folder):
    def program(rank, ranks):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

        losses = []
        for kind in (ScheduleGPipe, Schedule1F1B):
            layers = [model(seed) for seed in range(ranks)]
            stage = PipelineStage(layers[rank], rank, ranks, torch.device("cpu"))
            schedule = kind(stage, 4, loss_fn=nn.functional.mse_loss)
            optimizer = adam(layers[rank])
            for x, target in batches():
                optimizer.zero_grad()
                if rank == 0:
                    schedule.step(x)
                elif rank < ranks - 1:
                    schedule.step()
                else:
                    found = []
                    schedule.step(target=target, losses=found)
                    losses.append(torch.stack(found).mean().item())
                optimizer.step()
        return losses or [0.0]

    same(rank, ranks, folder, program)


# Checkpoints.


def checkpoint(rank, ranks, folder):
    def program(rank, ranks):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.fsdp import fully_shard

        place = f"{folder}/{dist.get_backend()}"
        net = fully_shard(model(), mesh=init_device_mesh("cpu", (ranks,)))
        losses = train(net, adam(net), rank)
        dcp.save({"net": net.state_dict()}, checkpoint_id=place)
        fresh = fully_shard(model(7), mesh=init_device_mesh("cpu", (ranks,)))
        state = {"net": fresh.state_dict()}
        dcp.load(state, checkpoint_id=place)
        fresh.load_state_dict(state["net"])
        return losses + train(fresh, adam(fresh), rank)

    same(rank, ranks, folder, program)


# torch.compile and functional collectives.


def compiled(rank, ranks, folder):
    """Collectives inside compiled functions."""
    import torch.distributed._functional_collectives as functional

    start(rank, ranks, folder)
    group = dist.group.WORLD

    def in_place(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1

    def as_function(x):
        return functional.all_reduce(x * 2, "sum", group) + 1

    def gathered(x):
        out = torch.empty(4 * ranks)
        dist.all_gather_single(out, x)
        return out * 2

    x = torch.full((4,), rank + 1.0)
    for function in (in_place, as_function, gathered):
        want = function(x)
        for backend in ("eager", "aot_eager"):
            torch._dynamo.reset()
            got = torch.compile(function, backend=backend, fullgraph=True)(x)
            assert bool((got == want).all()), (function.__name__, backend)


def functional(rank, ranks, folder):
    """Functional collectives, and their gradients."""
    import torch.distributed._functional_collectives as f

    start(rank, ranks, folder)
    group = dist.group.WORLD
    total = ranks * (ranks + 1) / 2
    x = torch.full((2 * ranks,), rank + 1.0)
    assert bool((f.all_reduce(x, "sum", group) == total).all())
    assert f.all_gather_tensor(x, 0, group)[-1].item() == ranks
    assert f.reduce_scatter_tensor(x, "avg", 0, group).tolist() == [total / ranks] * 2
    assert f.all_to_all_single(x, None, None, group)[::2].tolist() == list(range(1, ranks + 1))
    assert f.broadcast(x, ranks - 1, group)[0].item() == ranks
    ring = [(r + 1) % ranks for r in range(ranks)]
    assert f.permute_tensor(x, ring, group)[0].item() == (rank - 1) % ranks + 1
    for y in f.all_reduce_coalesced([x, x[:0]], "max", group):
        assert bool((y == ranks).all())
    for y in f.all_gather_into_tensor_coalesced([x, x], group):
        assert y[-1].item() == ranks
    for y in f.reduce_scatter_tensor_coalesced([x, x], "sum", [0, 0], group):
        assert y.tolist() == [total] * 2
    x = torch.ones(ranks, requires_grad=True)
    f.all_gather_tensor_autograd(x, 0, group).sum().backward()
    assert x.grad.tolist() == [ranks] * ranks
