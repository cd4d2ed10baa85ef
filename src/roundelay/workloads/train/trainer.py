"""One rank's part of a training."""

from __future__ import annotations

import hashlib
from pathlib import Path
from time import monotonic_ns
from typing import Any

import torch
import torch.distributed as dist

from ...errors import RoundelayError
from .adam import Adam
from .checkpoint import load, not_whole
from .exchange import Exchanges, Gradients
from .faults import Deaths, Pace
from .flat import Flat
from .model import Transformer
from .settings import Settings
from .shares import shares
from .stamps import Noted
from .text import batch, read_text

ROWS = ("values", "mean", "square")
"""What a checkpoint has of each parameter."""
SHAPE = ("dtype", "layers", "width", "heads", "context", "batch", "seed", "rate")
"""What a training that goes on from a checkpoint must have in common with the one before."""


class Trainer:
    """A model, and how it learns together with those of the other ranks.

    Attributes:
        done: steps that have been made.
        round: how often the ranks have become others.
        parameters: how many numbers are learnt.
    """

    def __init__(self, settings: Settings, rank: int, deaths: Deaths) -> None:
        """As this rank is called at the start, and where it dies."""
        self._settings, self._name, self._deaths = settings, rank, deaths
        self._text = read_text(settings.text, settings.context)
        self._pace = Pace(settings, rank)
        self.done = self.round = 0
        self._build()

    def _build(self) -> None:
        """The model as it is at first, the same on all ranks."""
        settings = self._settings
        torch.manual_seed(settings.seed)
        self.model = Transformer(settings).to(getattr(torch, settings.dtype))
        self._flat = Flat(self.model, settings.bucket)
        self.parameters = len(self._flat.values)
        for index, parameter in enumerate(self._flat.parameters):
            parameter.register_post_accumulate_grad_hook(lambda _, i=index: self._ready(i))
        middle = self.model.blocks[len(self.model.blocks) // 2]
        middle.register_forward_hook(lambda *_: self._deaths.at("forward"))
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        shared = bool(settings.zero)
        self._gradients = Gradients(self._flat, self._rank, self._ranks, shared)
        self._adam = Adam(self._flat, self._gradients.owned, settings.rate)

    def _ready(self, parameter: int) -> None:
        self._pace.catch_up()
        if parameter == len(self._flat.parameters) // 2:
            self._deaths.at("backward")
        self._gradients.ready(parameter)

    def step(self) -> Noted:
        """Compute, exchange, add up, update.

        Raises:
            ExchangeError: another rank has gone; over Gloo, a RuntimeError.
        """
        begin, number, exchanges = monotonic_ns(), self.done + 1, Exchanges()
        self._deaths.step, computed = number, self._pace.computed
        self._pace.begin()
        loss = self._forward(number)
        self._pace.catch_up()
        forward = monotonic_ns()
        self._gradients.begin(exchanges)
        whole = loss.detach().double().reshape(1)
        exchanges.sum(whole)
        loss.backward()
        self._deaths.at("exchange")
        exchanges.wait()
        update = monotonic_ns()
        self._update(number, exchanges)
        self.done = number
        return Noted(
            rank=self._name, round=self.round, step=number, ranks=self._ranks, loss=float(whole),
            span=(begin, monotonic_ns()), forward=forward, update=update,
            computed=round((self._pace.computed - computed) * 1e9),
            blocked=exchanges.blocked, exchanges=exchanges.done,
        )  # fmt: skip

    def _forward(self, number: int) -> torch.Tensor:
        """This rank's part of the mean loss of the whole batch."""
        s = self._settings
        tokens = batch(self._text, number, s.batch, s.context, s.seed)
        mine = torch.from_numpy(tokens[shares(s.batch, self._ranks)[self._rank]])
        return self.model.loss(mine) / s.batch

    def _update(self, number: int, exchanges: Exchanges) -> None:
        self._pace.begin()
        for run in range(len(self._gradients.owned)):
            self._adam.step(run, number)
            if run == len(self._gradients.owned) // 2:
                self._deaths.at("optimizer")
            self._pace.catch_up()
            self._gradients.spread(run, exchanges)
        if self._settings.zero:
            exchanges.wait()

    def state(self) -> dict[str, Any]:
        """All that must be kept to go on bit for bit; all ranks must ask for it.

        What is drawn at random is drawn from the seed and the number of the step, so these two are
        the state of the data and of the random numbers.
        """
        mean, square = map(self._whole, (self._adam.mean, self._adam.square))
        return {"step": self.done, "values": self._flat.values, "mean": mean, "square": square,
                "shape": self._shape()}  # fmt: skip

    def _shape(self) -> dict[str, Any]:
        text = hashlib.sha256(self._text.tobytes()).hexdigest()
        return {**{name: getattr(self._settings, name) for name in SHAPE}, "text": text}

    def _whole(self, own: torch.Tensor) -> torch.Tensor:
        """A row of all elements, of which this rank has those that it updates."""
        row, exchanges = torch.empty_like(self._flat.values), Exchanges()
        for run, part in zip(self._adam.owned, self._adam.parts(own), strict=True):
            row[run] = part
        if self._settings.zero:
            for bucket in range(len(self._flat.buckets)):
                self._gradients.gather(bucket, row, exchanges)
            exchanges.wait()
        return row

    def restore(self, file: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            RoundelayError: it is none, or one of another training.
        """
        state = load(file)
        shape, saved = self._shape(), state.get("shape")
        if not isinstance(saved, dict) or saved.keys() != shape.keys():
            raise not_whole(file)
        for name, value in saved.items():
            if shape[name] != value:
                raise RoundelayError(
                    f"{file} was saved with {name} = {value}, and this training has "
                    f"{shape[name]}; expected the same"
                )
        if not all(alike(state.get(name), self._flat.values) for name in ROWS):
            raise not_whole(file)
        self._take(state)

    def _take(self, state: dict[str, Any]) -> None:
        self.done = state["step"]
        self._flat.values.copy_(state["values"])
        for name in ("mean", "square"):
            parts = self._adam.parts(getattr(self._adam, name))
            for run, part in zip(self._adam.owned, parts, strict=True):
                part.copy_(state[name][run])

    def agree(self, file: Path | None) -> None:
        """The ranks have become others: share the work anew, and go on from the same step.

        Some may have made the last step and others not; all take what the furthest has. With ZeRO
        a part of the optimizer's state has gone with its rank, so all go back to the checkpoint.
        """
        self.round += 1
        if self._settings.zero:
            self.done = 0
            self._build()
            if file is not None and file.exists():
                self.restore(file)
            return
        self._rank, self._ranks = dist.get_rank(), dist.get_world_size()
        steps = [torch.zeros(1, dtype=torch.int64) for _ in range(self._ranks)]
        dist.all_gather(steps, torch.tensor([self.done]))
        furthest = max(range(self._ranks), key=lambda r: int(steps[r]))
        rows = (self._flat.values, self._adam.mean, self._adam.square)
        taken = [row.clone() for row in rows]
        for row in taken:
            dist.broadcast(row, furthest)
        for row, new in zip(rows, taken, strict=True):  # all or, where that has failed, none
            row.copy_(new)
        self.done = int(steps[furthest])


def alike(a: Any, b: torch.Tensor) -> bool:
    """Whether it is a row of as many numbers, of the same type."""
    return isinstance(a, torch.Tensor) and a.shape == b.shape and a.dtype == b.dtype
