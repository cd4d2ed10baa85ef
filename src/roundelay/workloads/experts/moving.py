"""Dispatch and combine as operations of torch's autograd, begun here and awaited there.

``wait(begin(x, ...))`` is one exchange. Its gradient is the exchange the other way: the gradient of
`wait` begins it, and that of `begin` waits for it, so what stands between the two in the backward
pass is computed in the meantime, too. What `begin` gives is not to be looked at before `wait`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from ...moe import Handle
from ...run.handles import Handle as UnderWay

Span = tuple[int, int]
"""Begin and end, ns of CLOCK_MONOTONIC."""


@dataclass(eq=False)
class Way:
    """One exchange, there or back, and what is under way on it.

    Attributes:
        handle: of the tokens' ways.
        back: whether it is a combine.
        fp8: whether a dispatch goes as FP8; gradients never do.
        waited: where spans are noted in which somebody waited for an exchange.
        gradient: of what was given, once the exchange of the backward pass has ended.
    """

    handle: Handle
    back: bool
    fp8: bool = False
    waited: deque[Span] = field(default_factory=deque)
    gradient: torch.Tensor | None = None
    _under_way: UnderWay | None = None

    def begin(self, x: torch.Tensor, back: bool) -> torch.Tensor:
        """Begin an exchange by the communicator's own thread; the tensor that will hold it."""
        handle, given = self.handle, x.detach().contiguous().numpy()
        do: Callable[[], Any]
        if back:
            rows, do = handle.tokens, lambda: handle.combine(given)
        elif self.fp8 and not self.back:
            rows, do = handle.received, lambda: handle.dispatch(given, fp8=True)
        else:
            rows, do = handle.received, lambda: handle.dispatch(given)
        out = x.new_empty(rows, x.shape[1])
        room = out.numpy()

        def fill() -> None:
            room[...] = do()

        self._under_way = handle.comm.later(fill)
        return out

    def wait(self) -> None:
        """Until the exchange begun last has ended.

        Raises:
            ExchangeError: it failed.
        """
        under_way, self._under_way = self._under_way, None
        assert under_way is not None
        began = time.monotonic_ns()
        under_way.wait()
        self.waited.append((began, time.monotonic_ns()))


class _Begin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, way: Way) -> torch.Tensor:
        ctx.way = way
        return way.begin(x, way.back)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.way.wait()
        gradient, ctx.way.gradient = ctx.way.gradient, None
        return gradient, None


class _Wait(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, way: Way) -> torch.Tensor:
        ctx.way = way
        way.wait()
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        # Of another shape than what is asked for here, so it goes by the way, not by autograd.
        ctx.way.gradient = ctx.way.begin(grads[0], not ctx.way.back)
        return grads[0], None


def begin(x: torch.Tensor, way: Way) -> torch.Tensor:
    """Begin an exchange of rows.

    Args:
        x: [row, column], on the CPU, float32 or float64.
        way: there or back.
    """
    found: torch.Tensor = _Begin.apply(x, way)
    return found


def wait(x: torch.Tensor, way: Way) -> torch.Tensor:
    """What `begin` promised."""
    found: torch.Tensor = _Wait.apply(x, way)
    return found
