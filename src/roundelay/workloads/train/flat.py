"""Parameters and gradients that lie in one row, in the order in which backward comes to them."""

from __future__ import annotations

import torch
from torch import nn

from .shares import shares


class Flat:
    """A model's parameters as one row; what the model computes with are views of it.

    Attributes:
        values, grads: [element], one after another, the last layer first.
        buckets: runs of elements whose gradients are exchanged together.
        bucket_of: [parameter] in which bucket it is; `parameters` has them in the same order.
    """

    def __init__(self, model: nn.Module, bucket: int) -> None:
        """Move the parameters.

        Args:
            model: all of whose parameters are learnt.
            bucket: bytes of a bucket at least, but for the last.
        """
        self.parameters = list(model.parameters())[::-1]
        self.values = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        self.grads = torch.zeros_like(self.values)
        self.buckets: list[slice] = []
        self.bucket_of: list[int] = []
        first = at = 0
        for p in self.parameters:
            end = at + p.numel()
            p.data, p.grad = (row[at:end].view_as(p) for row in (self.values, self.grads))
            self.bucket_of.append(len(self.buckets))
            at = end
            if (at - first) * self.values.itemsize >= bucket:
                self.buckets.append(slice(first, at))
                first = at
        if at > first:
            self.buckets.append(slice(first, at))

    def pieces(self, bucket: int, ranks: int) -> list[slice]:
        """[rank] the share of a bucket that each has; they differ by one element at most."""
        run = self.buckets[bucket]
        return [slice(run.start + s.start, run.start + s.stop)
                for s in shares(run.stop - run.start, ranks)]  # fmt: skip
