"""Exchanges of a step that go on while the rank computes."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

import torch
import torch.distributed as dist

from .flat import Flat
from .stamps import Exchanged, Span


class Exchanges:
    """The exchanges of one step: each is noted as it is issued and as it ends.

    Attributes:
        done: what was noted.
        blocked: when the rank waited for them.
    """

    def __init__(self) -> None:
        self.done: list[Exchanged] = []
        self.blocked: list[Span] = []
        self._works: list[Any] = []

    def begin(self, collective: str, tensor: torch.Tensor, call: Callable[[], Any]) -> None:
        """Issue one.

        Args:
            collective: its name.
            tensor: what is exchanged, whole.
            call: of torch.distributed, asynchronous.
        """
        noted = Exchanged(collective, tensor.nbytes, monotonic_ns())
        work = call()

        def ended(future: Any) -> None:
            noted.ended = monotonic_ns()
            future.value()  # or what went wrong

        self.done.append(noted)
        self._works.append((work, work.get_future().then(ended)))

    def sum(self, tensor: torch.Tensor) -> None:
        """Add it up over all ranks, in place."""
        self.begin("all_reduce", tensor, lambda: dist.all_reduce(tensor, async_op=True))

    def wait(self) -> None:
        """Until all that were issued have ended.

        Raises:
            ExchangeError: one has failed; over Gloo, a RuntimeError.
        """
        begun = monotonic_ns()
        try:
            for work, future in self._works:
                work.wait()
                future.wait()  # after which it is noted
        finally:  # an error would keep them, and they the error
            work = future = None
            self._works.clear()
        self.blocked.append((begun, monotonic_ns()))


class Gradients:
    """Adds up gradients bucket by bucket while backward still runs.

    Buckets are issued in one order on all ranks: each as soon as it and all before it are ready.
    With shares, each rank gets the sums of its own piece of every bucket alone (ZeRO, stage 1:
    Rajbhandari et al., 2020), and the values that others have updated by `spread`.
    """

    def __init__(self, flat: Flat, rank: int, ranks: int, shared: bool) -> None:
        """For a rank of so many."""
        self._flat, self._rank, self._shared = flat, rank, shared
        self._pieces = [flat.pieces(b, ranks) for b in range(len(flat.buckets))]
        self.owned = [p[rank] for p in self._pieces] if shared else flat.buckets

    def begin(self, exchanges: Exchanges) -> None:
        """A step, before backward."""
        self._exchanges, self._next = exchanges, 0
        buckets = self._flat.bucket_of
        self._missing = [buckets.count(b) for b in range(len(self._flat.buckets))]
        self._flat.grads.zero_()

    def ready(self, parameter: int) -> None:
        """Backward has this parameter's gradient."""
        self._missing[self._flat.bucket_of[parameter]] -= 1
        while self._next < len(self._missing) and not self._missing[self._next]:
            self._issue(self._next)
            self._next += 1

    def _issue(self, bucket: int) -> None:
        whole = self._flat.grads[self._flat.buckets[bucket]]
        if not self._shared:
            self._exchanges.sum(whole)
            return
        parts = [self._flat.grads[p] for p in self._pieces[bucket]]
        mine = parts[self._rank]
        self._exchanges.begin("reduce_scatter", whole,
                              lambda: dist.reduce_scatter(mine, parts, async_op=True))  # fmt: skip

    def spread(self, bucket: int, exchanges: Exchanges) -> None:
        """All ranks get the values that each has updated."""
        if self._shared:
            self.gather(bucket, self._flat.values, exchanges)

    def gather(self, bucket: int, row: torch.Tensor, exchanges: Exchanges) -> None:
        """All ranks get the pieces of a row that each has."""
        parts = [row[p] for p in self._pieces[bucket]]
        mine = parts[self._rank]
        exchanges.begin("all_gather", row[self._flat.buckets[bucket]],
                        lambda: dist.all_gather(parts, mine, async_op=True))  # fmt: skip
