"""Tensors as memory that Roundelay exchanges, and torch's names as Roundelay's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
import torch.distributed as dist

from ..arrays import CARRIERS, KINDS, Array, of_tensor
from ..errors import RoundelayError

_KINDS: Final = {
    getattr(torch, name): (kind, name if name in CARRIERS else None) for name, kind in KINDS.items()
}
"""Types that can be exchanged: as NumPy writes them, and the names of those that it lacks."""

_SCALED: Final = "premul_sum"
_OPS: Final = {
    hash(dist.ReduceOp(getattr(dist.ReduceOp, name.upper()))): name
    for name in ("sum", "product", "min", "max", "avg", "band", "bor", "bxor")
} | {hash(dist._make_nccl_premul_sum(1.0)): _SCALED}
"""By their hashes, which are different numbers; to compare them takes twice as long."""


class Elsewhere(Exception):
    """A tensor is not on the CPU."""

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        self.device = device


def memory(tensor: torch.Tensor) -> tuple[Array, str | None]:
    """The tensor's memory: an array, and how its bits are read where NumPy has no such type.

    Raises:
        Elsewhere: it is on another device.
        RoundelayError: it has none that could be exchanged.
    """
    if not tensor.is_cpu:
        raise Elsewhere(tensor.device)
    kind, dtype = _KINDS.get(tensor.dtype, (None, None))
    return of_tensor(tensor, kind, "a tensor"), dtype


def pair(x: torch.Tensor, y: torch.Tensor) -> tuple[Array, Array, str | None]:
    """The memory of an input and an output, and how their bits are read.

    Raises:
        RoundelayError: as `memory`, and where they are of two types.
    """
    (ours, dtype), (theirs, _) = memory(x), memory(y)
    if x.dtype != y.dtype:
        raise _two_types(x.dtype, y.dtype)
    return ours, theirs, dtype


def _two_types(a: torch.dtype, b: torch.dtype) -> RoundelayError:
    return RoundelayError(f"tensors of {a} and {b} in one call; expected one dtype")


def only(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The one tensor of a list."""
    if len(tensors) != 1:
        raise RoundelayError(f"a list of {len(tensors)} tensors; expected one tensor")
    return tensors[0]


def operation(op: Any) -> tuple[str, float | None]:
    """Roundelay's name of torch's reduce operation, and its factor if it has one.

    Raises:
        RoundelayError: there is no such operation.
    """
    name = _OPS.get(hash(op))
    if name is None:
        raise RoundelayError(f"reduce operation {op}; expected one of {', '.join(_OPS.values())}")
    return name, float(op.factor) if name is _SCALED else None


class Row:
    """Tensors of a list as one row of memory: their own where they lie side by side, or a copy.

    Attributes:
        array, dtype: the row's `memory`.
        sizes: elements of each tensor.
        counts: the same, or None where all have as many.
    """

    def __init__(self, tensors: Sequence[torch.Tensor], like: torch.Tensor, expected: int) -> None:
        """See the class.

        Args:
            tensors: one a rank.
            like: what their types must be equal to.
            expected: how many there must be.

        Raises:
            RoundelayError: there are more or fewer, or they are of several types.
        """
        if len(tensors) != expected:
            raise RoundelayError(
                f"a list of {len(tensors)} tensors; expected {expected}, one a rank"
            )
        for tensor in tensors:
            if not tensor.is_cpu:
                raise Elsewhere(tensor.device)
            if tensor.dtype != like.dtype:
                raise _two_types(like.dtype, tensor.dtype)
        self.sizes = [tensor.numel() for tensor in tensors]
        self.counts = None if len(set(self.sizes)) == 1 else self.sizes
        self._tensors, whole = tensors, sum(self.sizes)
        self._side_by_side = _side_by_side(tensors)
        first = tensors[0].detach()
        if self._side_by_side:
            self._row = first.as_strided((whole,), (1,))
        else:
            self._row = torch.empty(whole, dtype=first.dtype)
        self.array, self.dtype = memory(self._row)

    def expect_equal(self, call: str) -> None:
        """Refuse tensors of different sizes, of which the other ranks know nothing."""
        if self.counts is not None:
            raise RoundelayError(
                f"{call} of tensors of {self.counts} elements; expected one size. Pad them, or use "
                "all_gather or all_to_all, which take different sizes"
            )

    def fill(self) -> None:
        """Put the tensors into the row."""
        if not self._side_by_side:
            torch.cat([t.detach().reshape(-1) for t in self._tensors], out=self._row)

    def spread(self) -> None:
        """Put the row into the tensors."""
        if not self._side_by_side:
            parts = self._row.split(self.sizes)
            for tensor, part in zip(self._tensors, parts, strict=True):
                tensor.detach().copy_(part.view(tensor.shape))


def _side_by_side(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether each begins where the one before it ends."""
    at = tensors[0].data_ptr()
    storage = tensors[0].untyped_storage().data_ptr()
    for tensor in tensors:
        here = tensor.data_ptr() == at and tensor.untyped_storage().data_ptr() == storage
        if not here or not tensor.is_contiguous():
            return False
        at += tensor.nbytes
    return True
