"""torch's calls, as calls of a communicator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial, wraps
from typing import Any, Final

from torch import Tensor
from torch._C import _distributed_c10d as c10d
from torch.autograd import profiler

from ..communicator import Communicator
from ..errors import RoundelayError
from . import flight
from .profiling import event
from .tensors import Elsewhere, Row, memory, only, operation, pair
from .work import FOREVER, Finished, Pending

Tensors = Sequence[Tensor]
Method = Callable[..., Any]

# What a call without options has; nobody writes into them.
_ALL_REDUCE: Final = c10d.AllreduceOptions()
_REDUCE: Final = c10d.ReduceOptions()
_BROADCAST: Final = c10d.BroadcastOptions()
_ALL_GATHER: Final = c10d.AllgatherOptions()
_REDUCE_SCATTER: Final = c10d.ReduceScatterOptions()
_GATHER: Final = c10d.GatherOptions()
_SCATTER: Final = c10d.ScatterOptions()
_ALL_TO_ALL: Final = c10d.AllToAllOptions()
_BARRIER: Final = c10d.BarrierOptions()


def here(method: Method) -> Method:
    """A call that the profiler sees, and another backend takes where tensors are not on the CPU."""
    name = method.__name__

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        try:
            if profiler._is_profiler_enabled:
                with event(self, name, args):
                    return method(self, *args, **options)
            return method(self, *args, **options)
        except Elsewhere as found:
            other = self.other(found.device)
        return getattr(other, name)(*args, **options)

    return call


class Collectives:
    """The calls of a process group. With `asyncOp` another thread makes them, in order.

    Attributes:
        comm: the communicator.
        timeout: how long a call may wait for other ranks.
    """

    comm: Communicator
    timeout: timedelta
    _batch: list[Finished] | None = None

    def _start(self, do: Callable[[], Any], tensors: Any, opts: Any) -> Finished:
        """Make a call that sets the tensors."""
        if opts.timeout > FOREVER:
            do = partial(self._within, opts.timeout, do)
        if flight.ASKED:
            do = partial(flight.dumping, self, do)
        if opts.asyncOp:
            return self._under_way(Pending(self.comm.later(do), tensors))
        do()
        return Finished(tensors)

    def _within(self, timeout: timedelta, do: Callable[[], Any]) -> None:
        """Make a call that may wait for other ranks so long."""
        self.comm.patience(timeout.total_seconds())
        try:
            do()
        finally:
            self.comm.patience(self.timeout.total_seconds())

    # Calls that come together are made one by one; only their waiting is one.

    def _under_way(self, work: Finished) -> Finished:
        if self._batch is not None:
            self._batch.append(work)
        return work

    def _start_coalescing(self, device: Any) -> None:
        self._batch = []

    def _end_coalescing(self, device: Any) -> Finished:
        batch, self._batch = self._batch or [], None
        return Pending(self.comm.later(lambda: [work.wait() for work in batch]), [])

    @here
    def allreduce(self, tensors: Tensors, opts: Any = _ALL_REDUCE) -> Finished:
        """Every rank gets the reduction of all ranks' tensors."""
        x, dtype = memory(only(tensors))
        op, scale = operation(opts.reduceOp)
        do = partial(self.comm.all_reduce, x, None, op, dtype=dtype, scale=scale)
        return self._start(do, tensors, opts)

    @here
    def allreduce_coalesced(self, tensors: Tensors, opts: Any = _ALL_REDUCE) -> Finished:
        """All reductions of a list."""
        op, scale = operation(opts.reduceOp)
        calls = [
            partial(self.comm.all_reduce, x, None, op, dtype=dtype, scale=scale)
            for x, dtype in map(memory, tensors)
        ]
        return self._start(partial(_each, calls), tensors, opts)

    @here
    def reduce(self, tensors: Tensors, opts: Any = _REDUCE) -> Finished:
        """The root gets the reduction."""
        x, dtype = memory(only(tensors))
        op, scale = operation(opts.reduceOp)
        do = partial(self.comm.reduce, x, None, op, opts.rootRank, dtype=dtype, scale=scale)
        return self._start(do, tensors, opts)

    @here
    def broadcast(self, tensors: Tensors, opts: Any = _BROADCAST) -> Finished:
        """Every rank gets the root's tensor."""
        x, dtype = memory(only(tensors))
        do = partial(self.comm.broadcast, x, None, opts.rootRank, dtype=dtype)
        return self._start(do, tensors, opts)

    @here
    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = _ALL_GATHER) -> Finished:
        """Every rank gets all tensors, one after another in one."""
        return self._start(self._gathering(output, input), [output], opts)

    @here
    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = _ALL_GATHER
    ) -> Finished:
        """`all_gather_single` for each of two lists."""
        calls = [self._gathering(y, x) for y, x in zip(outputs, inputs, strict=True)]
        return self._start(partial(_each, calls), outputs, opts)

    @here
    def allgather(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = _ALL_GATHER
    ) -> Finished:
        """Every rank gets all tensors, as a list; they may be of different sizes."""
        do = self._listing(only(outputs), only(inputs))
        return self._start(do, outputs[0], opts)

    @here
    def allgather_coalesced(
        self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = _ALL_GATHER
    ) -> Finished:
        """`allgather` of a list of tensors; from each rank comes a list."""
        by_input = zip(*outputs, strict=True) if inputs else ()
        calls = [self._listing(y, x) for y, x in zip(by_input, inputs, strict=True)]
        return self._start(partial(_each, calls), outputs, opts)

    @here
    def reduce_scatter_single(
        self, output: Tensor, input: Tensor, opts: Any = _REDUCE_SCATTER
    ) -> Finished:
        """Every rank gets its piece of the reduction."""
        return self._start(self._scattering(output, input, opts), [output], opts)

    @here
    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = _REDUCE_SCATTER
    ) -> Finished:
        """`reduce_scatter_single` for each of two lists."""
        calls = [self._scattering(y, x, opts) for y, x in zip(outputs, inputs, strict=True)]
        return self._start(partial(_each, calls), outputs, opts)

    @here
    def reduce_scatter(
        self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = _REDUCE_SCATTER
    ) -> Finished:
        """Every rank gets the reduction of the tensors at its place in the lists."""
        output = only(outputs)
        y, dtype = memory(output)
        row = Row(only(inputs), output, self.comm.ranks)
        op, scale = operation(opts.reduceOp)

        def do() -> None:
            row.fill()
            self.comm.reduce_scatter(row.array, y, op, counts=row.counts, dtype=dtype, scale=scale)

        return self._start(do, outputs, opts)

    @here
    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = _GATHER) -> Finished:
        """The root gets all tensors, as a list."""
        root, (x, dtype) = opts.rootRank, memory(only(inputs))
        if self.comm.rank != root:
            do = partial(self.comm.gather, x, None, root, dtype=dtype)
            return self._start(do, [], opts)
        row = Row(only(outputs), inputs[0], self.comm.ranks)
        row.expect_equal("gather")

        def at_root() -> None:
            self.comm.gather(x, row.array, root, dtype=dtype)
            row.spread()

        return self._start(at_root, outputs[0], opts)

    @here
    def scatter(
        self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any = _SCATTER
    ) -> Finished:
        """Every rank gets its tensor of the root's list."""
        root, (y, dtype) = opts.rootRank, memory(only(outputs))
        if self.comm.rank != root:
            do = partial(self.comm.scatter, None, y, root, dtype=dtype)
            return self._start(do, outputs, opts)
        row = Row(only(inputs), outputs[0], self.comm.ranks)
        row.expect_equal("scatter")

        def at_root() -> None:
            row.fill()
            self.comm.scatter(row.array, y, root, dtype=dtype)

        return self._start(at_root, outputs, opts)

    @here
    def all_to_all_single(
        self, output: Tensor, input: Tensor, output_splits: Sequence[int],
        input_splits: Sequence[int], opts: Any = _ALL_TO_ALL,
    ) -> Finished:  # fmt: skip
        """Every rank sends pieces of a tensor, cut along its first dimension, to all ranks."""
        x, y, dtype = pair(input, output)
        send, receive = None, None
        if output_splits or input_splits:
            send = _counts(input, input_splits, self.comm.ranks)
            receive = _counts(output, output_splits, self.comm.ranks)
        do = partial(
            self.comm.all_to_all, x, y, send_counts=send, receive_counts=receive, dtype=dtype
        )
        return self._start(do, [output], opts)

    @here
    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = _ALL_TO_ALL) -> Finished:
        """Every rank sends a tensor to each, and gets one from each; sizes may differ."""
        ranks = self.comm.ranks
        source, target = Row(inputs, inputs[0], ranks), Row(outputs, inputs[0], ranks)
        equal = source.counts is None and target.counts is None
        send, receive = (None, None) if equal else (source.sizes, target.sizes)

        def do() -> None:
            source.fill()
            self.comm.all_to_all(
                source.array, target.array, send_counts=send, receive_counts=receive,
                dtype=source.dtype,
            )  # fmt: skip
            target.spread()

        return self._start(do, outputs, opts)

    @here
    def barrier(self, opts: Any = _BARRIER) -> Finished:
        """Returns when all ranks have come."""
        return self._start(self.comm.barrier, [], opts)

    # The names that these calls had before torch 2.13; programs use them as well.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    def _gathering(self, output: Tensor, input: Tensor) -> Callable[[], Any]:
        x, y, dtype = pair(input, output)
        return partial(self.comm.all_gather, x, y, dtype=dtype)

    def _scattering(self, output: Tensor, input: Tensor, opts: Any) -> Callable[[], Any]:
        x, y, dtype = pair(input, output)
        op, scale = operation(opts.reduceOp)
        return partial(self.comm.reduce_scatter, x, y, op, dtype=dtype, scale=scale)

    def _listing(self, outputs: Tensors, input: Tensor) -> Callable[[], Any]:
        x, dtype = memory(input)
        row = Row(outputs, input, self.comm.ranks)

        def do() -> None:
            self.comm.all_gather(x, row.array, counts=row.counts, dtype=dtype)
            row.spread()

        return do


def _each(calls: Sequence[Callable[[], Any]]) -> None:
    for call in calls:
        call()


def _counts(tensor: Tensor, splits: Sequence[int], ranks: int) -> list[int]:
    """Elements that go to, or come from, each rank."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % ranks:
            raise RoundelayError(
                f"{rows} rows over {ranks} ranks without split sizes; expected a multiple of "
                f"{ranks}, or sizes that say how many rows go to each"
            )
        splits = [rows // ranks] * ranks
    if len(splits) != ranks or sum(splits) != rows:
        raise RoundelayError(
            f"split sizes {list(splits)} of a tensor of {rows} rows; expected {ranks} sizes, one "
            f"a rank, of {rows} rows together"
        )
    row = tensor.numel() // rows if rows else 0
    return [size * row for size in splits]
