"""The collectives, as calls: what each takes and gives, and the short way for calls made before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from .requests import COLLECTIVES
from .schedule import Schedule

How = str | Schedule
"""An algorithm: "auto", a name, or a schedule of one's own."""

ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, GATHER, SCATTER, ALL_TO_ALL, BARRIER = (
    range(len(COLLECTIVES))
)
NOTHING: Final = np.empty(0, np.uint8)
"""What a barrier moves."""


class Calls(ABC):
    """The collectives of a communicator, which see.

    Attributes:
        rank: this process.
    """

    rank: int
    _call: Callable[..., bool]
    """Does a call that has been made before, and says so; else it does nothing."""

    @abstractmethod
    def _do(self, *call: Any, **more: Any) -> Any:
        """A call for the first time, or one that takes more than the engine."""

    def all_reduce(self, x: Any, out: Any = None, op: str = "sum", *, algorithm: How = "auto",
                   async_op: bool = False, dtype: str | None = None,
                   scale: Any = None) -> Any:  # fmt: skip
        """Every rank gets the reduction of all ranks' `x`.

        Args:
            x: equal shapes on all ranks; overwritten when there is no `out`.
            out: the result, as long as `x`.
            op: sum, product, min, max, avg, band, bor, bxor, or premul_sum.
            scale: the factor of each contribution, for premul_sum.
            algorithm: see the class.
            async_op: see the class.
            dtype: see the class.
        """
        y = x if out is None else out
        if not async_op and self._call(ALL_REDUCE, x, y, op, algorithm, dtype, 0):
            return y
        return self._do(ALL_REDUCE, x, y, op, 0, algorithm, async_op, dtype, scale)

    def reduce(self, x: Any, out: Any = None, op: str = "sum", root: int = 0, *,
               algorithm: How = "auto", async_op: bool = False, dtype: str | None = None,
               scale: Any = None) -> Any:  # fmt: skip
        """The root gets the reduction of all ranks' `x`; on other ranks `out` is left alone."""
        y = x if out is None else out
        if not async_op and self._call(REDUCE, x, y, op, algorithm, dtype, root):
            return y
        return self._do(REDUCE, x, y, op, root, algorithm, async_op, dtype, scale)

    def broadcast(self, x: Any, out: Any = None, root: int = 0, *, algorithm: How = "auto",
                  async_op: bool = False, dtype: str | None = None) -> Any:  # fmt: skip
        """Every rank gets the root's `x`, in `x` or in `out`."""
        y = x if out is None else out
        if not async_op and self._call(BROADCAST, x, y, None, algorithm, dtype, root):
            return y
        return self._do(BROADCAST, x, y, None, root, algorithm, async_op, dtype)

    def all_gather(self, x: Any, out: Any = None, *, counts: Sequence[int] | None = None,
                   algorithm: How = "auto", async_op: bool = False,
                   dtype: str | None = None) -> Any:  # fmt: skip
        """Every rank gets all ranks' `x`, one after another.

        Args:
            x: the rank's piece; in place where it is this piece of `out`.
            out: as long as all pieces together.
            counts: elements of each rank's piece, where they differ.
            algorithm: see the class.
            async_op: see the class.
            dtype: see the class.
        """
        short = out is not None and not async_op and counts is None
        if short and self._call(ALL_GATHER, x, out, None, algorithm, dtype, 0):
            return out
        return self._do(ALL_GATHER, x, out, None, 0, algorithm, async_op, dtype, counts=counts)

    def reduce_scatter(self, x: Any, out: Any = None, op: str = "sum", *,
                       counts: Sequence[int] | None = None, algorithm: How = "auto",
                       async_op: bool = False, dtype: str | None = None,
                       scale: Any = None) -> Any:  # fmt: skip
        """Every rank gets its piece of the reduction of all ranks' `x`.

        Args:
            x: all pieces, one after another.
            out: one piece; in place where it is this piece of `x`.
            op: see `all_reduce`.
            counts: elements of each rank's piece, where they differ.
            algorithm: see the class.
            async_op: see the class.
            dtype: see the class.
            scale: see `all_reduce`.
        """
        short = out is not None and not async_op and counts is None
        if short and self._call(REDUCE_SCATTER, x, out, op, algorithm, dtype, 0):
            return out
        return self._do(REDUCE_SCATTER, x, out, op, 0, algorithm, async_op, dtype, scale, counts)

    def gather(self, x: Any, out: Any = None, root: int = 0, *,
               counts: Sequence[int] | None = None, algorithm: How = "auto",
               async_op: bool = False, dtype: str | None = None) -> Any:  # fmt: skip
        """The root gets all ranks' `x`, one after another; the others get None."""
        short = not async_op and counts is None and (out is not None or self.rank != root)
        if short and self._call(GATHER, x, out, None, algorithm, dtype, root):
            return out
        return self._do(GATHER, x, out, None, root, algorithm, async_op, dtype, counts=counts)

    def scatter(self, x: Any, out: Any = None, root: int = 0, *,
                counts: Sequence[int] | None = None, algorithm: How = "auto",
                async_op: bool = False, dtype: str | None = None) -> Any:  # fmt: skip
        """Every rank gets its piece of the root's `x`.

        Ranks other than the root give `out`, for their `x` may be None.
        """
        short = out is not None and not async_op and counts is None
        if short and self._call(SCATTER, x, out, None, algorithm, dtype, root):
            return out
        return self._do(SCATTER, x, out, None, root, algorithm, async_op, dtype, counts=counts)

    def all_to_all(self, x: Any, out: Any = None, *, send_counts: Sequence[int] | None = None,
                   receive_counts: Sequence[int] | None = None, algorithm: How = "auto",
                   async_op: bool = False, dtype: str | None = None) -> Any:  # fmt: skip
        """Every rank sends its piece r to rank r, and gets one from every rank, in rank order.

        Args:
            x: the pieces to send, one after another.
            out: the pieces received; may be `x`.
            send_counts: elements of each piece to send, where they differ.
            receive_counts: elements of each piece received.
            algorithm: see the class.
            async_op: see the class.
            dtype: see the class.
        """
        short = out is not None and not async_op and send_counts is None and receive_counts is None
        if short and self._call(ALL_TO_ALL, x, out, None, algorithm, dtype, 0):
            return out
        plain = send_counts is None and receive_counts is None
        counts = None if plain else (send_counts, receive_counts)
        return self._do(ALL_TO_ALL, x, out, None, 0, algorithm, async_op, dtype, counts=counts)

    def barrier(self, *, algorithm: How = "auto", async_op: bool = False) -> Any:
        """Returns when all ranks have come."""
        if not async_op and self._call(BARRIER, NOTHING, NOTHING, None, algorithm, None, 0):
            return None
        return self._do(BARRIER, NOTHING, NOTHING, None, 0, algorithm, async_op, None)
