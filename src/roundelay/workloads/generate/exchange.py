"""What ranks exchange for a step: over Roundelay, or for comparison over torch's Gloo."""

from __future__ import annotations

from time import monotonic_ns
from typing import Any, Final, Protocol

import numpy as np
import torch

from ...arrays import Array
from ...communicator import Communicator, init
from ...errors import ExchangeError, RoundelayError

BACKENDS: Final = ("roundelay", "gloo")
PATIENCE: Final = 30.0
"""Seconds that ranks wait for one another. When there is nothing to do they still meet."""


class Exchange(Protocol):
    """Every rank makes the same calls, in the same order.

    Attributes:
        rank, ranks: this one, and how many.
        spans: when all-reduces began and ended, in ns of CLOCK_MONOTONIC, while it is a list.
    """

    rank: int
    ranks: int
    spans: list[tuple[int, int]] | None

    def buffer(self, *shape: int) -> torch.Tensor:
        """Memory for float32 that `add` and `gather` take fastest."""

    def add(self, x: torch.Tensor) -> None:
        """Sum over all ranks, in place; `x` is the beginning of a `buffer`."""

    def gather(self, x: torch.Tensor) -> torch.Tensor | None:
        """[rank, ...] on rank 0, of the beginning of a `buffer`."""

    def tell(self, data: Array) -> None:
        """Rank 0's bytes to all, in place."""

    def every(self, numbers: Array) -> Array:
        """[rank, ...], of int64; seldom used."""

    def close(self) -> None:
        """Says farewell."""


class OverRoundelay:
    """By a communicator, on arrays that all ranks of the machine see.

    The calls take NumPy arrays: torch tensors on the same memory cost more to look at than a small
    exchange takes.
    """

    def __init__(self, comm: Communicator | None = None) -> None:
        """Meet the other ranks."""
        self._comm = comm or init(PATIENCE)
        self.rank, self.ranks = self._comm.rank, self._comm.ranks
        self.spans: list[tuple[int, int]] | None = None
        self._buffers: dict[int, Array] = {}  # [address]
        self._parts: dict[tuple[int, int], Array] = {}  # [address, numbers]

    def buffer(self, *shape: int) -> torch.Tensor:
        """See `Exchange`."""
        array = self._comm.empty(shape)
        tensor = torch.from_numpy(array)
        self._buffers[tensor.data_ptr()] = array.reshape(-1)
        return tensor

    def add(self, x: torch.Tensor) -> None:
        """See `Exchange`."""
        part = self._part(x)
        if self.spans is None:
            self._comm.all_reduce(part, out=part)
            return
        begun = monotonic_ns()
        self._comm.all_reduce(part, out=part)
        self.spans.append((begun, monotonic_ns()))

    def gather(self, x: torch.Tensor) -> torch.Tensor | None:
        """See `Exchange`."""
        found = self._comm.gather(self._part(x))
        return None if found is None else torch.from_numpy(found).view(self.ranks, *x.shape)

    def _part(self, x: torch.Tensor) -> Array:
        key = x.data_ptr(), x.numel()
        part = self._parts.get(key)
        if part is None:
            if len(self._parts) > 4096:
                self._parts.clear()
            part = self._parts[key] = self._buffers[key[0]][: key[1]]
        return part

    def tell(self, data: Array) -> None:
        """See `Exchange`."""
        self._comm.broadcast(data, out=data)

    def every(self, numbers: Array) -> Array:
        """See `Exchange`."""
        found: Array = self._comm.all_gather(numbers.ravel())
        return found.reshape(self.ranks, *numbers.shape)

    def close(self) -> None:
        """See `Exchange`."""
        self._parts.clear()
        self._buffers.clear()
        self._comm.close()


class OverGloo:
    """By torch.distributed and Gloo, to compare with."""

    def __init__(self) -> None:
        """Meet the other ranks by MASTER_ADDR and MASTER_PORT."""
        from datetime import timedelta

        import torch.distributed as dist

        self._dist = dist
        dist.init_process_group("gloo", timeout=timedelta(seconds=PATIENCE))
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.spans: list[tuple[int, int]] | None = None

    def buffer(self, *shape: int) -> torch.Tensor:
        """See `Exchange`."""
        return torch.empty(shape)

    def add(self, x: torch.Tensor) -> None:
        """See `Exchange`."""
        begun = monotonic_ns()
        self._call(self._dist.all_reduce, x)
        if self.spans is not None:
            self.spans.append((begun, monotonic_ns()))

    def gather(self, x: torch.Tensor) -> torch.Tensor | None:
        """See `Exchange`."""
        found = [torch.empty_like(x) for _ in range(self.ranks)] if self.rank == 0 else None
        self._call(self._dist.gather, x, found)
        return None if found is None else torch.stack(found)

    def tell(self, data: Array) -> None:
        """See `Exchange`."""
        self._call(self._dist.broadcast, torch.from_numpy(data), 0)

    def every(self, numbers: Array) -> Array:
        """See `Exchange`."""
        mine = torch.from_numpy(np.ascontiguousarray(numbers))
        found = [torch.empty_like(mine) for _ in range(self.ranks)]
        self._call(self._dist.all_gather, found, mine)
        together: Array = torch.stack(found).numpy()
        return together

    def close(self) -> None:
        """See `Exchange`."""
        self._dist.destroy_process_group()

    @staticmethod
    def _call(call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except RuntimeError as error:
            raise ExchangeError(f"gloo: {error}") from None


def meet(backend: str) -> Exchange:
    """The exchange of this job's ranks.

    Args:
        backend: one of `BACKENDS`.

    Raises:
        RoundelayError: no such backend, or ranks are missing.
    """
    if backend not in BACKENDS:
        raise RoundelayError(f"backend {backend!r}; expected one of {', '.join(BACKENDS)}")
    return OverRoundelay() if backend == "roundelay" else OverGloo()
