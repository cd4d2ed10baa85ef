"""Programs that make mistakes with torch.distributed: every mistake has an error, and an end."""

import os
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d
from torch._subclasses import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, distribute_tensor
from torch_programs import Op, perform, refused, start

import roundelay as rl

ones = torch.ones


def main(names, arguments):
    perform(globals(), names, *arguments)


def wrong(rank, ranks, odd):
    """Calls that one rank makes otherwise.

    Yields:
        the call, its arguments, and words that its error must have.
    """
    n = 4 if odd else 3
    root = 1 if odd else 0

    def lots(sizes):
        return [ones(size) for size in sizes]

    def row(size):
        return lots([size] * ranks)

    uneven = [3 + r for r in range(ranks)]
    other = [4] * (ranks - 1) + [sum(uneven) - 4 * (ranks - 1)]  # equal in sum
    parts, part = lots(other if odd else uneven), ones(4 if odd else 3 + rank)
    more = lots([1 + r + (odd and r == 0) for r in range(ranks)])
    wide = ones(3, dtype=torch.float64 if odd else torch.float32)
    whole, each = f"of {4 * ranks} float32", f"of {3 * ranks} float32"
    at_root = row(3) if rank == 0 else None
    yield dist.all_reduce, (ones(n),), "4 float32", "3 float32"
    yield dist.all_reduce, (wide,), "3 float64", "3 float32"
    yield dist.all_reduce, (ones(3), Op.MAX if odd else Op.SUM), "max", "sum"
    yield dist.broadcast, (ones(n), 0), "4 float32", "3 float32"
    yield dist.broadcast, (wide, 0), "float64", "float32"
    yield dist.broadcast, (ones(3), root), "broadcast"
    yield dist.reduce, (ones(n), 0), "4 float32", "3 float32"
    yield dist.reduce, (ones(3), root), "reduce"
    yield dist.gather, (ones(n), at_root, 0), whole, each
    yield dist.scatter, (ones(n), at_root, 0), whole, each
    yield dist.all_gather, (row(n), ones(n)), whole, each
    yield dist.all_gather, (parts, part), whole, "or counts"
    yield dist.all_gather_single, (ones(n * ranks), ones(n)), whole, each
    yield dist.reduce_scatter, (ones(n), row(n)), whole, each
    yield dist.reduce_scatter, (part, parts), whole, "or counts"
    yield dist.all_to_all, (row(n), row(n)), "of 36 float32", "of 27 float32"
    yield dist.all_to_all, (more, row(1 + rank)), "how much goes from one to the other"
    yield dist.barrier if odd else dist.all_reduce, () if odd else (ones(3),), "barrier", "reduce"


def differences(rank, ranks, folder):
    """Every rank is told what differs: by the call, or by the next where it has nobody to ask."""
    start(rank, ranks, folder)
    for call, arguments, *words in wrong(rank, ranks, rank == 1):
        group = dist.new_group()  # one for each, as it cannot be used afterwards

        def both(call=call, arguments=arguments, group=group):
            call(*arguments, group=group)
            dist.barrier(group)

        text = refused(both, rl.CallsDiffer)
        assert all(word in text for word in words), (call, words, text)
        refused(lambda group=group: dist.barrier(group), RuntimeError)  # as torch's programs do
        dist.barrier()


def lists(rank, ranks, folder):
    """Mixed types, tensors elsewhere, and unknown operations are refused before any exchange."""
    start(rank, ranks, folder)
    world = dist.group.WORLD
    whole, half = ones(3), ones(3, dtype=torch.float16)
    bits = torch.ones(3, dtype=torch.uint16)  # what carries bfloat16 in NumPy is not bfloat16
    row = [whole] * (ranks - 1)
    for call in (
        lambda: world.allgather([[*row, half]], [whole]),
        lambda: world.allgather([[half] * ranks], [whole]),
        lambda: world.reduce_scatter([whole], [[*row, half]]),
        lambda: world.alltoall([*row, half], [whole] * ranks),
        lambda: world.alltoall([whole] * ranks, [*row, half]),
        lambda: world.all_gather_single(ones(3 * ranks, dtype=torch.float16), whole),
        lambda: world.reduce_scatter_single(ones(1), ones(ranks, dtype=torch.float16)),
        lambda: world.all_to_all_single(half, whole, [], []),
        lambda: world.all_to_all_single(bits, whole.bfloat16(), [], []),
    ):
        assert "expected one dtype" in refused(call)
    meta = ones(3, device="meta")
    for call in (
        lambda: dist.broadcast(meta, 0),
        lambda: dist.all_gather([*row, meta], whole),
        lambda: dist.all_to_all_single(meta, meta),
        lambda: dist.send(meta, (rank + 1) % ranks),
        lambda: dist.irecv(meta, (rank + 1) % ranks),
    ):
        assert "tensor.cpu()" in refused(call)
    with FakeTensorMode():
        nothing = ones(3)
    shard = distribute_tensor(ones(3), init_device_mesh("cpu", (ranks,)), [Replicate()])
    for there in (nothing, shard):
        assert "no memory of its own" in refused(lambda there=there: world.comm.all_reduce(there))
        assert "no memory of its own" in refused(lambda there=there: world.comm.broadcast(there))
    assert "band" in refused(lambda: dist.reduce(whole, 0, Op.BAND))
    assert "avg" in refused(lambda: dist.all_reduce(whole > 0, Op.AVG))
    dist.all_reduce(whole)
    assert whole.tolist() == [ranks] * 3


def ended(rank, ranks, folder):
    """A group that was destroyed, and a second world."""
    start(rank, ranks, folder)
    group, world = dist.new_group(), dist.group.WORLD
    refused(lambda: start(rank, ranks, folder, turn=1), ValueError)
    work = dist.all_reduce(ones(2), group=group, async_op=True)
    dist.destroy_process_group(group)
    assert work.is_completed()
    dist.all_reduce(ones(2))
    comm = world.comm
    dist.destroy_process_group()
    refused(lambda: dist.all_reduce(ones(2)), ValueError)  # torch's own
    for gone in (group, world):
        for call in (
            lambda gone=gone: gone.allreduce([ones(2)]),
            lambda gone=gone: gone.barrier(),
            lambda gone=gone: gone.send([ones(2)], 0, 0),
            lambda gone=gone: gone.recv([ones(2)], 0, 0),
        ):
            assert "was destroyed" in refused(call)
        gone.shutdown()  # both do nothing more
        gone.abort()
    assert "is closed" in refused(lambda: comm.all_reduce(ones(2)))
    start(rank, ranks, folder, turn=2)
    dist.barrier()


def forked(rank, ranks, folder):
    """A process that was forked is told so, whatever it calls; its parent goes on."""
    start(rank, ranks, folder)
    dist.all_reduce(ones(2), async_op=True).wait()
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    work = dist.isend(ones(2), after)
    dist.recv(ones(2), before)
    work.wait()
    dist.barrier()
    child = os.fork()
    if child == 0:
        for call in (
            lambda: dist.all_reduce(ones(2)),
            lambda: dist.all_reduce(ones(2), async_op=True),
            lambda: dist.barrier(),
            lambda: dist.isend(ones(2), after),
            lambda: dist.irecv(ones(2), before),
        ):
            assert f"process {os.getppid()}" in refused(call)
        dist.destroy_process_group()
        os._exit(0)
    end = time.monotonic() + 30
    found, status = os.waitpid(child, os.WNOHANG)
    while found == 0 and time.monotonic() < end:
        time.sleep(0.01)
        found, status = os.waitpid(child, os.WNOHANG)
    assert (found, status) == (child, 0)
    x = ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [ranks] * 2


def one_group_two_threads(rank, ranks, folder):
    """Calls of two threads that overlap are refused: what a call gives is right, or it gives none.

    Their sizes differ, so that calls of two threads are never taken for one another.
    """
    start(rank, ranks, folder)
    seen = []

    def many(size):
        for k in range(300):
            group, x = groups[k % 2], torch.full((size,), rank + 1.0)
            try:
                if k % 3:
                    dist.all_reduce(x, group=group)
                else:
                    dist.all_reduce(x, group=group, async_op=True).wait()
                good = bool((x == ranks * (ranks + 1) / 2).all())
                seen.append("right" if good else f"wrong: {x}")
            except rl.ExchangeError as error:
                seen.append(type(error).__name__)
                return
            except rl.RoundelayError as error:
                seen.append("refused" if "in the middle of a call" in str(error) else str(error))

    groups = [dist.new_group(), dist.new_group()]
    threads = [threading.Thread(target=many, args=(size,)) for size in (3, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for group in groups:
        group.comm.interrupt()
    ends = {"right", "refused", "CallsDiffer", "TooLate", "PeerLost", "Broken"}
    assert set(seen) <= ends, set(seen) - ends


def threads_in_turn(rank, ranks, folder):
    """Threads that take turns may share a group: calls in the background come first, for all."""
    start(rank, ranks, folder)
    turn, total = threading.Lock(), ranks * (ranks + 1) / 2
    begun = [threading.Event() for _ in range(40)]
    wrong = []

    def some(first):
        try:
            for k in range(first, len(begun), 2):
                if k:
                    begun[k - 1].wait(30)
                with turn:
                    x, y = torch.full((5000,), rank + 1.0), torch.full((5000,), k + 0.0)
                    work = dist.all_reduce(x, async_op=True)
                    begun[k].set()
                    dist.broadcast(y, k % ranks)
                    work.wait()
                assert bool((x == total).all())
                assert bool((y == k).all())
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=some, args=(first,)) for first in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong, wrong


# Who does not come, and how a call that hangs is ended.


def missing(rank, ranks, folder):
    """The error names the rank that has not come, whoever of the others each waits for."""
    start(rank, ranks, folder)
    last = ranks - 1
    short, soon = timedelta(seconds=1), timedelta(milliseconds=300)

    def late(call):
        begun = time.monotonic()
        text = refused(call, rl.TooLate)
        assert f"rank {last}" in text, text
        assert 0.2 < time.monotonic() - begun < 20
        return text

    def options(kind):
        found = kind()
        found.timeout, found.asyncOp = short, False
        return found

    one = c10d.AllreduceOptions
    some = dist.new_group(timeout=short)
    told, set_later, alone, apart = (dist.new_group() for _ in range(4))
    set_later.set_timeout(short)
    if rank != last:
        late(lambda: dist.all_reduce(ones(3), group=some))
        late(lambda: told.allreduce([ones(3)], options(one)))
        late(lambda: set_later.barrier(options(c10d.BarrierOptions)))
        work = dist.all_reduce(ones(3), group=alone, async_op=True)
        text = late(lambda: work.wait(soon))
        assert "wait again" in text
        text = refused(lambda: apart.monitored_barrier(short), rl.TooLate)
        assert ("check rank 0" if rank else f"Rank {last} failed to pass") in text
    if rank == 0:
        text = refused(lambda: apart.monitored_barrier(soon, wait_all_ranks=True), rl.TooLate)
        assert "Ranks 1, 2 failed to pass" in text
    if rank == 0:
        late(lambda: dist.irecv(ones(3), last, alone).wait(soon))
        late(lambda: dist.recv(ones(3), last, set_later))
    store = dist.group.WORLD.get_group_store()
    if rank == last:
        store.wait([f"late {r}" for r in range(last)])
        dist.all_reduce(ones(3), group=alone)
    else:
        store.set(f"late {rank}", "")
        work.wait()
    x = ones(3)
    dist.all_reduce(x, group=apart)  # which a monitored barrier leaves as it was
    assert x.tolist() == [ranks] * 3
    os._exit(0)


def hanging(rank, ranks, folder):
    """abort and destroy_process_group return while calls of this process hang."""
    start(rank, ranks, folder)
    ends = {}

    def hang(name, call):
        try:
            call()
            ends[name] = None
        except rl.RoundelayError as error:
            ends[name] = error

    def ended(name, call, end, group, later=False):
        thread = threading.Thread(target=hang, args=(name, call))
        thread.start()
        time.sleep(0.5)
        assert name not in ends, (name, ends)
        begun = time.monotonic()
        end(group)
        thread.join(10)
        assert not thread.is_alive(), name
        assert time.monotonic() - begun < 10
        assert isinstance(ends[name], rl.RoundelayError), (name, ends)

    pairs = [dist.new_group([0, 1]) for _ in range(6)]
    x = ones(3)
    if rank == 0:
        abort, destroy = (lambda group: group.abort()), dist.destroy_process_group
        for turn, end in enumerate((abort, destroy)):
            a, b, c = pairs[3 * turn : 3 * turn + 3]
            ended(f"call {turn}", lambda a=a: dist.all_reduce(x, group=a), end, a)
            ended(f"recv {turn}", lambda b=b: dist.recv(x, 1, b), end, b)
            work = dist.all_reduce(x, group=c, async_op=True)
            queued = dist.all_reduce(x, group=c, async_op=True)
            ended(f"wait {turn}", work.wait, abort, c)
            refused(queued.wait)
    dist.barrier()
    thread = threading.Thread(target=hang, args=("world", lambda: dist.all_reduce(x)))
    if rank == 0:
        thread.start()
        time.sleep(0.3)
        dist.distributed_c10d._abort_process_group()
        thread.join(10)
        assert isinstance(ends["world"], rl.RoundelayError), ends
        assert not dist.is_initialized()
    else:
        refused(lambda: (dist.barrier(), dist.barrier()), RuntimeError)  # it is told at once
    os._exit(0)
