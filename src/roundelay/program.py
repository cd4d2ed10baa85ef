"""One rank's instructions, data only: what it reads and writes, and what each must wait for.

An instruction is a half-move with its repetitions: a send reads a place of this rank for a
peer, a copy or reduce writes what a peer sent into a place. Repetition k of an instruction may
run when, for each of its waits, ``done[instruction] >= min(times, k + lag)``, where `done`
counts finished repetitions and `times` is that instruction's own. Between two ranks messages go
and are taken in one order, `turn`, so they need no tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SEND: Final = "send"
COPY_IN: Final = "copy"
REDUCE_IN: Final = "reduce"


@dataclass(frozen=True, slots=True)
class Wait:
    """Repetition k waits until `min(times, k + lag)` repetitions of the instruction are done."""

    instruction: int
    lag: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """What one rank does with one peer, `times` times.

    Attributes:
        op: SEND, COPY_IN or REDUCE_IN.
        peer: the rank or helper at the other end; the rank itself for a move within a rank.
        chunk, count, stride, shift, unit, wrap: ids, as in `Round`.
        times: repetitions.
        round, start: place in the order of the schedule: repetition k stands at step
            ``start + k`` of the round.
        bounce: a send from a place that the same step writes, so that its value must be kept
            aside until the peer has it.
        waits: what each repetition waits for, all of it earlier in the schedule's order.
    """

    op: str
    peer: int
    chunk: int
    count: int
    stride: int
    times: int
    shift: int
    unit: int
    wrap: int
    round: int
    start: int
    bounce: bool
    waits: tuple[Wait, ...]

    def turn(self, k: int) -> tuple[int, int]:
        """When repetition k's message goes, among those between the same two ranks.

        Where two instructions have equal turns, the one listed first goes first.
        """
        return self.round, self.start + k


@dataclass(frozen=True, slots=True)
class Program:
    """The instructions of one rank of a schedule of `chunks` chunks, in its order."""

    rank: int
    chunks: int
    instructions: tuple[Instruction, ...]
