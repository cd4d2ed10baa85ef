"""AdamW on parts of a row."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from .flat import Flat

BETA, SQUARES, TINY, DECAY = 0.9, 0.95, 1e-8, 0.01


class Adam:
    """Loshchilov and Hutter, Decoupled weight decay regularization, 2019, algorithm 2.

    Attributes:
        owned: the runs of elements that it updates.
        mean, square: of their gradients, one run after another.
    """

    def __init__(self, flat: Flat, owned: Sequence[slice], rate: float) -> None:
        self._flat, self._rate, self.owned = flat, rate, owned
        size = sum(run.stop - run.start for run in owned)
        self.mean, self.square = (torch.zeros(size, dtype=flat.values.dtype) for _ in range(2))

    def parts(self, row: torch.Tensor) -> list[torch.Tensor]:
        """[run] its part of a row such as `mean`."""
        return list(row.split([run.stop - run.start for run in self.owned]))

    def step(self, run: int, number: int) -> None:
        """Update a run, for the so-manieth time."""
        values, grads = (row[self.owned[run]] for row in (self._flat.values, self._flat.grads))
        mean, square = self.parts(self.mean)[run], self.parts(self.square)[run]
        mean.lerp_(grads, 1 - BETA)
        square.mul_(SQUARES).addcmul_(grads, grads, value=1 - SQUARES)
        scale = (square / (1 - SQUARES**number)).sqrt_().add_(TINY)
        values.mul_(1 - self._rate * DECAY)
        values.addcdiv_(mean, scale, value=-self._rate / (1 - BETA**number))
