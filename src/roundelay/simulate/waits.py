"""What the messages of a round wait for at their two ends, taken from the programs of some ranks.

The instructions of `lower` say it one by one. Ranks of one schedule have like programs,
so what holds between two rounds at some ranks is taken to hold at all ranks that take part in both;
up to `ALL_BELOW` participants every one is asked, above that a sample of them.

Waiting for a repetition long before the last one is left out: messages between two ranks go in
order, so it is over. So is waiting, piece by piece, for room at the destination: there are slots.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from ..lower import instructions
from ..program import SEND, Instruction
from ..schedule import HalfMoves, Schedule

ALL_BELOW: Final = 64
"""Participants up to which every one is asked."""
SAMPLE: Final = 12
"""Participants that are asked above that."""
DENSE: Final = 256
"""Rounds above which only two are asked."""
ENOUGH: Final = 2048
"""Half-moves of a participant that are looked at; of more, some of each round."""
LATEST: Final = -(1 << 62)
"""Lag of a wait for the repetitions done so far: those of earlier steps."""


class End(IntEnum):
    """An end of a message."""

    SOURCE, DESTINATION = range(2)


class RoundWait(NamedTuple):
    """Messages of one round wait for messages of another, or of the same, at one of their ends.

    Attributes:
        round: of the messages that wait.
        end: of theirs, the rank at which it holds.
        other: round waited for.
        side: whether that rank is the source or the destination of what is waited for.
        lag: repetition k waits for ``min(times, k + lag)`` repetitions, or `LATEST`.
    """

    round: int
    end: End
    other: int
    side: End
    lag: int


def asked(schedule: Schedule, rounds: int) -> list[int]:
    """The participants whose programs are looked at."""
    whole = schedule.ranks + schedule.helpers
    if whole <= ALL_BELOW and rounds <= DENSE:
        return list(range(whole))
    few = [0, schedule.ranks - 1]
    if rounds <= DENSE:
        few += [1, 2, schedule.ranks // 2, schedule.ranks // 2 + 1, schedule.ranks - 2]
        few += [schedule.root, whole - 1]
        rng = np.random.default_rng(whole)
        few += rng.integers(0, whole, SAMPLE - len(few)).tolist()
    return sorted(set(few))


def waits(schedule: Schedule, rounds: int, times: list[int]) -> list[RoundWait]:
    """What the rounds of a schedule wait for.

    Args:
        schedule: a whole one.
        rounds: how many rounds it has.
        times: [round], repetitions.
    """
    found: dict[tuple[int, End, int, End], int] = {}
    begins = [r.at for r in schedule]
    for participant in asked(schedule, rounds):
        program = instructions(_some(schedule.part(participant)), schedule.chunks)
        for instruction in program:
            for wait in instruction.waits:
                other = program[wait.instruction]
                if participant in (instruction.peer, other.peer):
                    continue
                lag = _lag(instruction, other, wait.lag, begins, times)
                if lag is not None:
                    key = (instruction.round, _end(instruction), other.round, _end(other))
                    found[key] = max(found.get(key, LATEST), lag)
    return [RoundWait(*key, lag) for key, lag in sorted(found.items())]


def _some(halves: list[HalfMoves]) -> list[HalfMoves]:
    """Some of a participant's half-moves, the first and the last of each round on each side.

    Those of one round are alike, as those of a leader who hears from everybody.
    """
    if len(halves) <= ENOUGH:
        return halves
    of_round: dict[tuple[int, bool], list[int]] = {}
    for i, half in enumerate(halves):
        of_round.setdefault((half.round, half.write), []).append(i)
    each = max(1, ENOUGH // len(of_round) // 2)
    kept = {i for places in of_round.values() for i in (*places[:each], *places[-each:])}
    return [halves[i] for i in sorted(kept)]


def _end(instruction: Instruction) -> End:
    return End.SOURCE if instruction.op == SEND else End.DESTINATION


def _lag(
    a: Instruction, j: Instruction, lag: int, begins: list[int], times: list[int]
) -> int | None:
    """The lag of a behind j as a `RoundWait` has it; None where it need not be looked at."""
    apart = begins[a.round] + a.start - begins[j.round] - j.start
    if apart >= j.times:  # all of j stands before all of a
        if lag >= j.times:
            return times[j.round]
        return lag if a.op == SEND and j.op != SEND else None
    return LATEST if lag - apart >= -1 else None
