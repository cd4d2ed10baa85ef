"""The next token: the likeliest, or one drawn from the likely ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

SOME: Final = 512
"""Likely tokens that are looked at first."""


class Sampler:
    """Of one request, with its own random numbers: equal seeds draw equally."""

    def __init__(self, temperature: float, top_p: float, seed: int) -> None:
        """Args are those of the request.

        Args:
            temperature: 0 takes the likeliest.
            top_p: draws among the likeliest that have this probability together, more than 0.
            seed: of the random numbers.
        """
        self.greedy = temperature == 0
        self._temperature, self._top_p = temperature, top_p
        self._numbers = torch.Generator().manual_seed(seed)

    def draw(self, logits: torch.Tensor) -> int:
        """A token, by its logits, [vocabulary]."""
        if self.greedy:
            return int(logits.argmax())
        chances = torch.softmax((logits - logits.max()).double() / self._temperature, -1)
        point = torch.rand((), generator=self._numbers, dtype=torch.float64)
        likely, tokens = chances.topk(min(SOME, len(chances)))
        total = likely.cumsum(0)
        if total[-1] < self._top_p:
            likely, tokens = chances.sort(descending=True)
            total = likely.cumsum(0)
        kept = int(torch.searchsorted(total, min(self._top_p, float(total[-1])))) + 1
        kept = min(kept, len(total))
        at = int(torch.searchsorted(total[:kept], point * total[kept - 1], right=True))
        return int(tokens[min(at, kept - 1)])


def draw(samplers: Sequence[Sampler], logits: torch.Tensor) -> list[int]:
    """A token for each, from [sampler, vocabulary]."""
    best = logits.argmax(-1).tolist()
    return [best[i] if s.greedy else s.draw(logits[i]) for i, s in enumerate(samplers)]
