"""The loop of an instance: rank 0 plans a step and tells it, and every rank does it.

Where there is nothing to do, the ranks meet once a second, so that a dead one is noticed.
"""

from __future__ import annotations

from time import monotonic_ns
from typing import Final

import msgspec
import numpy as np
import torch

from .batch import Batch, Step
from .exchange import Exchange
from .line import Line
from .messages import Ask, Cancel, Moment
from .model import Cache, Model, Span
from .sampling import draw

TICK: Final = 1.0
"""Seconds between meetings when there is nothing to do."""
_ROOM: Final = 2048
"""Bytes of a step that are told at once."""


class Runner:
    """What every rank has: its part of the model, and the caches of sequences."""

    def __init__(self, model: Model, exchange: Exchange) -> None:
        """For one rank."""
        self._model, self._exchange = model, exchange
        self._caches: dict[int, Cache] = {}
        self._room = np.zeros(_ROOM, np.uint8)
        self._told = 0

    def tell(self, step: Step | None) -> Step:
        """The step that rank 0 has; the others give None."""
        data = msgspec.msgpack.encode(step) if step else b""
        room, head = self._room, self._room[:8].view(np.int64)
        if step:
            head[0] = len(data)
            short = data[: _ROOM - 8]
            room[8 : 8 + len(short)] = np.frombuffer(short, np.uint8)
        self._exchange.tell(room)
        length = int(head[0])
        if length > _ROOM - 8:
            whole = np.frombuffer(data, np.uint8).copy() if step else np.empty(length, np.uint8)
            self._exchange.tell(whole)
            data = whole.tobytes()
        self._told = monotonic_ns()
        if step:
            return step
        return msgspec.msgpack.decode(data or room[8 : 8 + length].tobytes(), type=Step)

    def do(self, step: Step, taken: int = 0) -> tuple[torch.Tensor | None, Moment | None]:
        """Do a step.

        Args:
            step: that all ranks know.
            taken: when rank 0 began to plan it.

        Returns:
            the logits on rank 0; and its times, where it is watched.
        """
        for number in step.closed:
            del self._caches[number]
        for number, length in step.opened:
            self._caches[number] = self._model.cache(length)
        if not step.spans:
            return None, None
        self._exchange.spans = [] if step.watch else None
        spans = [Span(self._caches[number], tokens, last) for number, tokens, last in step.spans]
        begun = monotonic_ns()
        logits = self._model.step(spans)
        ended = monotonic_ns()
        return logits, self._moment(step, taken, begun, ended) if step.watch else None

    def _moment(self, step: Step, taken: int, begun: int, ended: int) -> Moment:
        """Where this rank's time went; in exchanges, by when all ranks came.

        Their clocks are those of one machine.
        """
        mine = np.array(self._exchange.spans, np.int64)
        arrivals = self._exchange.every(mine)[:, :, 0].max(axis=0)
        came, gone = mine.T
        return Moment(
            taken=taken,
            told=self._told,
            begun=begun,
            ended=ended,
            first=int(came[0]),
            exchanges=len(came),
            inside=int((gone - arrivals).clip(0).sum()),
            waited=int((np.minimum(arrivals, gone) - came).sum()),
            tokens=sum(len(tokens) for _, tokens, _ in step.spans),
        )


def lead(runner: Runner, batch: Batch, line: Line) -> None:
    """Rank 0: plan, tell, do, draw and say, until the front has enough or goes."""
    ending = False
    while True:
        ending |= _listen(batch, line, 0.0 if batch or ending else TICK)
        taken = monotonic_ns()
        if not line.open or (ending and not batch):
            runner.tell(Step(end=True))
            return
        step = runner.tell(batch.plan())
        logits, moment = runner.do(step, taken)
        tokens = draw(batch.drawing(step), logits) if logits is not None else []
        if moment:
            moment.out = monotonic_ns()
        if tokens:
            line.send([*batch.take(step, tokens, moment)])


def follow(runner: Runner) -> None:
    """The other ranks: do what is told."""
    while not (step := runner.tell(None)).end:
        runner.do(step)


def _listen(batch: Batch, line: Line, seconds: float) -> bool:
    """Take what the front says; whether it wants an end."""
    ending = False
    for message in line.receive(seconds):
        if isinstance(message, Ask):
            batch.add(message)
        elif isinstance(message, Cancel):
            batch.cancel(message.id)
        else:
            ending = True
    return ending
