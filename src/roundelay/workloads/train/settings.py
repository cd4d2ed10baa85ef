"""What a training is told, by the one who starts it and to every rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from ...errors import RoundelayError

PHASES: Final = ("forward", "backward", "exchange", "optimizer", "checkpoint")
MOST_RANKS: Final = 64
TOKENS: Final = 256
"""Bytes that there are."""
_KILL: Final = re.compile(r"rank=(\d{1,9})@step=(\d{1,9})(?::(\w+))?", re.ASCII)
_SLOW: Final = re.compile(r"rank=(\d{1,9}):(\d{1,4}(?:\.\d{1,6})?)", re.ASCII)


class Slow(msgspec.Struct, frozen=True):
    """A rank that computes so many times longer."""

    rank: int
    times: float

    @classmethod
    def parse(cls, text: str) -> Slow:
        """Of ``rank=2:1.5``.

        Raises:
            RoundelayError: it cannot be understood.
        """
        found = _SLOW.fullmatch(text)
        if not found or not 1 <= float(found[2]) <= 100:
            raise RoundelayError(
                f"{text!r} is no slow rank; expected which and how many times slower, 1 to 100, "
                "such as rank=2:1.5"
            )
        return cls(int(found[1]), float(found[2]))


class Kill(msgspec.Struct, frozen=True):
    """A rank that is killed in a phase of a step, which are counted from 1."""

    rank: int
    step: int
    phase: str = "backward"

    @classmethod
    def parse(cls, text: str) -> Kill:
        """Of ``rank=1@step=50`` or ``rank=1@step=50:optimizer``.

        Raises:
            RoundelayError: it cannot be understood.
        """
        found = _KILL.fullmatch(text)
        if not found or (found[3] or PHASES[0]) not in PHASES:
            raise RoundelayError(
                f"{text!r} says of no rank when to kill it; expected such as rank=1@step=50 or "
                f"rank=1@step=50:optimizer, and of the phases {', '.join(PHASES)}"
            )
        return cls(int(found[1]), int(found[2]), found[3] or "backward")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A training.

    Attributes:
        text: the file that is learnt.
        batch: sequences of a step, of all ranks together.
        context: bytes of a sequence.
        rate: of learning.
        bucket: bytes of gradients that are exchanged together.
        zero: 1 where each rank has a share of the optimizer's state alone.
        on_failure: what the others do when a rank has gone.
        checkpoint: file; None to keep none.
        every: steps from one checkpoint to the next.
        resume: whether to go on from the checkpoint.
        patience: seconds that an exchange may wait.
    """

    text: str
    ranks: int = 4
    steps: int = 100
    batch: int = 16
    dtype: Literal["float32", "float64"] = "float32"
    layers: int = 2
    width: int = 64
    heads: int = 4
    context: int = 64
    rate: float = 3e-3
    seed: int = 1
    bucket: int = 128 << 10
    zero: Literal[0, 1] = 0
    backend: Literal["roundelay", "gloo"] = "roundelay"
    slow: Sequence[Slow] = ()
    kill: Sequence[Kill] = ()
    on_failure: Literal["stop", "shrink", "restart"] = "shrink"
    checkpoint: str | None = None
    every: int = 20
    resume: bool = False
    patience: float = 60.0

    @property
    def parameters(self) -> int:
        """Numbers that are learnt: those of `model.Transformer`."""
        w = self.width
        return self.layers * (12 * w + 13) * w + (2 * TOKENS + self.context + 2) * w + TOKENS

    def check(self) -> None:
        """See that it can be done.

        Raises:
            RoundelayError: what was found, and what was expected.
        """
        _between("ranks", self.ranks, 1, MOST_RANKS)
        for name in ("steps", "layers", "width", "heads", "context", "every", "bucket"):
            _between(name, getattr(self, name), 1, 10**9)
        _between("seed", self.seed, 0, 2**63 - 1)
        _between("batch", self.batch, self.ranks, 10**6, "a sequence for every rank at least")
        if self.width % self.heads:
            raise RoundelayError(
                f"a width of {self.width} for {self.heads} heads; expected a multiple of the heads"
            )
        if not 0 < self.rate < 10:
            raise RoundelayError(
                f"a rate of {self.rate:g}; expected more than 0 and less than 10, such as 3e-3"
            )
        for slow in self.slow:
            _known("--slow", slow.rank, self.ranks)
        for kill in self.kill:
            self._check_kill(kill)
        self._check_backend()

    def _check_kill(self, kill: Kill) -> None:
        _known("--kill", kill.rank, self.ranks)
        _between("the step of --kill", kill.step, 1, self.steps)
        if kill.phase == "checkpoint" and (not self.checkpoint or kill.step % self.every):
            raise RoundelayError(
                f"no checkpoint is written after step {kill.step}; expected --checkpoint FILE and "
                f"a multiple of --every, which is {self.every}"
            )

    def _check_backend(self) -> None:
        if self.backend == "roundelay":
            return
        if self.zero:
            raise RoundelayError(
                "--zero 1 over gloo, whose all_gather takes equal shares only; expected --backend "
                "roundelay"
            )
        if self.on_failure == "shrink":
            raise RoundelayError(
                "gloo cannot go on without a rank; expected --on-failure restart or stop"
            )


def _between(name: str, value: int, least: int, most: int, why: str = "") -> None:
    if not least <= value <= most:
        reason = f": {why}" if why else ""
        raise RoundelayError(f"{name} = {value:,}; expected {least:,} to {most:,}{reason}")


def _known(option: str, rank: int, ranks: int) -> None:
    if rank >= ranks:
        raise RoundelayError(f"{option} names rank {rank}; expected 0 to {ranks - 1}")
