"""A schedule with one move left out, and what the verifier finds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np

from ...errors import RoundelayError
from ...i18n import Message, message
from ...rounds import Round
from ...schedule import Schedule
from ...show import Frame, words
from ...verify import verify

Drop = tuple[int, int, int, int]
"""A move: its step from 1, source, destination, piece."""
_DROP: Final = re.compile(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})\.(\d{1,6})", re.A)


def read_drop(text: str) -> Drop:
    """A move, as ``3.0.1.2``: in step 3, from rank 0 to rank 1, piece 2."""
    found = _DROP.fullmatch(text)
    if not found:
        raise RoundelayError(
            f"drop = {text!r:.40}; expected step.source.destination.piece, such as 1.0.1.0"
        )
    step, src, dst, piece = map(int, found.groups())
    return step, src, dst, piece


def without(schedule: Schedule, drop: Drop) -> Schedule:
    """The schedule without a move, spelt out: a round a step.

    Raises:
        RoundelayError: there is no such move.
    """
    at, src, dst, piece = drop
    rounds, found = [], False
    for step in schedule.moves():
        kept = np.ones(len(step.src), bool)
        if step.at == at - 1:
            gone = (step.src == src) & (step.dst == dst) & (step.col == piece)
            kept, found = ~gone, found or bool(gone.any())
        op = step.op[kept] if isinstance(step.op, np.ndarray) else step.op
        fields = (step.src[kept], step.dst[kept], step.col[kept])
        rounds.append(Round(*fields, op, begin=step.at))
    if not found:
        raise RoundelayError(
            f"no move of piece {piece} from {src} to {dst} in step {at}; expected one of the "
            "schedule's moves, such as the table below the picture lists"
        )
    return replace(schedule, rounds=rounds)


def verdict(schedule: Schedule, last: Frame | None) -> Message:
    """What the verifier finds, in the page's words: pieces and steps.

    Args:
        schedule: one whose every step is possible.
        last: its last state.
    """
    if last is None or verify(schedule).ok:
        return message("Every place holds what it must all the same.")
    return words.outcome(schedule, last.counts)


def impossible(step: int) -> Message:
    """What the verifier finds where a step has nothing to work on."""
    return message(
        "Step {step} becomes impossible: a piece is sent from, or added to, a place that has "
        "nothing of it.", step=step,
    )  # fmt: skip
