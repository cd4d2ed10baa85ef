"""One rank's instructions, data only: what it reads and writes, and what each must wait for.

A `Program` is compact and says what must wait for what, for proofs and for the clock; a `Plan`
is spelt out, in an order that keeps all of that, for the engine.

An instruction is a half-move with its repetitions: a send reads a place of this rank for a
peer, a copy or reduce writes what a peer sent into a place. Repetition k of an instruction may
run when, for each of its waits, ``done[instruction] >= min(times, k + lag)``, where `done`
counts finished repetitions and `times` is that instruction's own. Between two ranks messages go
and are taken in one order, `turn`, so they need no tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

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


OWN: Final = -1
"""Among the sources of an entry: the rank's own value of the chunks."""


class Space(IntEnum):
    """Memory of a rank in which a chunk may lie."""

    NONE, INPUT, OUTPUT, SCRATCH = range(4)


class Bounce(IntEnum):
    """Whether what is sent is overwritten in the same step."""

    NO, IN_PLACE, ALWAYS = range(3)


class Segment(NamedTuple):
    """Chunks `first` to ``first + chunks - 1``: where their value lies, where one is written."""

    first: int
    chunks: int
    space: Space
    home: Space


class Entry(NamedTuple):
    """One thing to do: send chunks to all `peers`, or set chunks to the sum of all `peers`.

    Attributes:
        send: whether it sends.
        step: step of the schedule.
        peers: readers; or sources, in the order in which they are added up, OWN among them.
        segments: the chunks, in the order in which a message carries them.
        after: earlier sends that read what this overwrites, as (entry, only when the output is
            the input).
        bounce: whether the chunks of a send are overwritten in the same step.
    """

    send: bool
    step: int
    peers: tuple[int, ...]
    segments: tuple[Segment, ...]
    after: tuple[tuple[int, bool], ...] = ()
    bounce: Bounce = Bounce.NO


@dataclass(frozen=True, slots=True)
class Plan:
    """What the engine of one rank does, in order.

    Between two ranks the messages of a step go and are taken by their first chunk, so they need
    no tags.
    """

    rank: int
    chunks: int
    steps: int
    entries: tuple[Entry, ...]
