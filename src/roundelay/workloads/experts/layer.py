"""A mixture of experts over the ranks of a communicator."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from ...communicator import Communicator
from ...errors import RoundelayError
from ...moe import Handle, Placement, choose, exchange
from .moving import Span, Way, begin, wait

TYPES = (torch.float32, torch.float64)
NOTED = 1 << 16
"""Waits that are kept."""


class _Part(NamedTuple):
    """Some tokens with some of their experts, which go and come together."""

    rows: slice
    handle: Handle
    weights: torch.Tensor


class Experts(nn.Module):
    """Tokens to their experts and back, forward and backward.

    Every rank has some of the experts and tokens of its own, any number or none. The gate's
    parameters are everybody's, at first those of rank 0: their gradients are to be added up over
    ranks, those of experts not, but for an expert that is on several.

    Attributes:
        gate: scores of experts, before softmax.
        experts: those of this rank, one a slot.
        waited: spans in ns in which the layer waited for exchanges, those of counts and targets
            among them, since it was last emptied, the newest `NOTED`; see `hidden`.
    """

    def __init__(
        self,
        comm: Communicator,
        hidden: int,
        experts: int | Placement,
        top_k: int,
        make: Callable[[int], nn.Module],
        *,
        scheme: str = "two_hop",
        group: int | None = None,
        max_nodes: int | None = None,
        fp8: bool = False,
        micro_batches: int = 2,
        waves: int = 1,
    ) -> None:
        """A layer; every rank makes it, at the same time and with the same arguments.

        Args:
            comm: the ranks.
            hidden: numbers of a token.
            experts: how many in all, or where they are.
            top_k: experts of a token.
            make: gives the module of an expert by its number, from and to [row, hidden]. Ranks draw
                the same random numbers unless it seeds them by the number.
            scheme: flat_expert, flat_card or two_hop.
            group: ranks that are a node; without it, as the communicator's nodes are.
            max_nodes: nodes that a token may go to at most; experts are in as many groups.
            fp8: send tokens as FP8 with scales.
            micro_batches: parts of the tokens; while one is computed, others are under way.
            waves: parts of each rank's experts, which follow one another in the same way.

        Raises:
            RoundelayError: numbers that do not go together.
        """
        super().__init__()
        for name, value in (("micro_batches", micro_batches), ("waves", waves)):
            if value < 1:
                raise RoundelayError(f"{name} = {value}; expected 1 or more")
        placed = experts if isinstance(experts, Placement) else Placement.even(experts, comm.ranks)
        if placed.ranks != comm.ranks:
            raise RoundelayError(f"experts on {placed.ranks} ranks; expected {comm.ranks}")
        self.comm, self.placement, self.top_k = comm, placed, top_k
        self.scheme, self.max_nodes, self.fp8 = scheme, max_nodes, fp8
        self.group = group or len(comm.nodes[0])
        self.micro_batches, self.waves = micro_batches, waves
        self.gate = nn.Linear(hidden, placed.experts, bias=False)
        comm.broadcast(self.gate.weight.detach())
        self.experts = nn.ModuleList(make(int(e)) for e in placed.slots[comm.rank])
        self.waited: deque[Span] = deque(maxlen=NOTED)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[token, hidden] to the same: the sum of the experts' outputs, weighted by the gate.

        Raises:
            RoundelayError: another shape, type or device.
            ExchangeError: an exchange failed.
        """
        if x.dim() != 2 or x.dtype not in TYPES or x.device.type != "cpu":
            raise RoundelayError(
                f"x is of {x.dtype}, shape {tuple(x.shape)}, on {x.device}; expected float32 or "
                "float64 of shape (tokens, hidden) on the CPU"
            )
        parts = self._parts(x)
        coming, results = [self._send(x, parts[0])], []
        for i, part in enumerate(parts):
            if i + 1 < len(parts):
                coming.append(self._send(x, parts[i + 1]))
            way = self._way(part, back=True)
            results.append((begin(self._compute(part, coming[i]()), way), way))
        sums = [torch.zeros_like(x[p.rows]) for p in parts[:: self.waves]]
        for i, (y, way) in enumerate(results):
            sums[i // self.waves] = sums[i // self.waves] + wait(y, way)
        return torch.cat(sums)

    def _parts(self, x: torch.Tensor) -> list[_Part]:
        """Micro-batch by micro-batch, wave by wave; the ways of all tokens are settled here."""
        scores = self.gate(x).softmax(dim=-1)
        nodes = self.comm.ranks // self.group
        chosen = choose(
            scores.detach().numpy(), self.top_k, nodes if self.max_nodes else 1, self.max_nodes
        ).experts
        weights = scores.gather(1, torch.from_numpy(chosen))
        weights = weights / weights.sum(dim=1, keepdim=True)
        home = np.full(len(chosen), self.comm.rank)
        targets = self.placement.targets(chosen, home)
        slots = self.placement.slots.shape[1]
        wave = targets % slots * self.waves // slots
        edges = np.linspace(0, len(x), self.micro_batches + 1).astype(int).tolist()
        parts = []
        for first, last in pairwise(edges):
            for w in range(self.waves):
                rows = slice(first, last)
                here = np.where(wave[rows] == w, targets[rows], -1)
                began = time.monotonic_ns()
                handle = exchange(self.comm, here, slots, self.scheme, group=self.group,
                                  max_nodes=self.max_nodes)  # fmt: skip
                self.waited.append((began, time.monotonic_ns()))
                parts.append(_Part(rows, handle, weights[rows]))
        return parts

    def _way(self, part: _Part, *, back: bool = False, fp8: bool = False) -> Way:
        return Way(part.handle, back, fp8, self.waited)

    def _send(self, x: torch.Tensor, part: _Part) -> Callable[[], tuple[torch.Tensor, ...]]:
        """Begin to dispatch a part; what it returns waits for the tokens and their weights."""
        tokens, columns = x[part.rows], x.shape[1]
        if not self.fp8:  # one exchange for both
            way = self._way(part)
            both = begin(torch.cat([tokens, part.weights], dim=1), way)
            return lambda: wait(both, way).split([columns, self.top_k], dim=1)
        ways = self._way(part, fp8=True), self._way(part)
        sent = begin(tokens, ways[0]), begin(part.weights, ways[1])
        return lambda: tuple(wait(s, w) for s, w in zip(sent, ways, strict=True))

    def _compute(self, part: _Part, came: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Each row through the experts here that it wants, weighted and added up."""
        rows, weights = came
        # No row is added here, but even where none has come the backward pass goes this way.
        nothing = torch.empty(0, dtype=torch.int64)
        out = torch.zeros_like(rows).index_add(0, nothing, rows[:0] * weights[:0, :1])
        slots = torch.from_numpy(part.handle.slots)
        for slot, expert in enumerate(self.experts):
            which, choice = torch.nonzero(slots == slot, as_tuple=True)
            if len(which):
                y = expert(rows[which]) * weights[which, choice, None]
                out = out.index_add(0, which, y)
        return out
