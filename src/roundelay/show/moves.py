"""Moves as a reader sees them: what goes from one place to another in a step, and its names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ..i18n import Translate, message
from ..schedule import REDUCE, Schedule, Step


class Move(NamedTuple):
    """What one rank (or helper) sends another in a step, to be added or to be copied."""

    src: int
    dst: int
    chunks: list[int]
    add: bool


def merged(steps: Iterable[Step]) -> tuple[Move, ...]:
    """The moves of some steps in listed order, one for each source, destination and kind."""
    found: dict[tuple[int, int, bool], list[int]] = {}
    for step in steps:
        add = np.broadcast_to(np.equal(step.op, REDUCE), step.src.shape)
        rows = (step.src.tolist(), step.dst.tolist(), add.tolist(), step.col.tolist())
        for src, dst, adds, chunk in zip(*rows, strict=True):
            found.setdefault((src, dst, adds), []).append(chunk)
    return tuple(Move(src, dst, sorted(c), add) for (src, dst, add), c in found.items())


def runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Rising numbers as (first, last) of every unbroken run."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def spans(numbers: Sequence[int], most: int = 4) -> str:
    """Rising numbers as text, ``0-3, 8``, with an ellipsis after `most` runs."""
    parts = [str(a) if a == b else f"{a}-{b}" for a, b in runs(numbers)]
    return ", ".join(parts[:most] + ["..."] * (len(parts) > most))


def piece_name(schedule: Schedule, chunk: int) -> str:
    """A chunk's number, or ``i>j`` where the collective moves a piece from i to j."""
    if schedule.kind.pieces < 2:
        return str(chunk)
    piece, part = divmod(chunk, schedule.chunks // schedule.ranks**2)
    pair = "{}>{}".format(*divmod(piece, schedule.ranks))
    return pair if schedule.chunks == schedule.ranks**2 else f"{pair}.{part}"


def named_pieces(schedule: Schedule, chunks: list[int], translate: Translate) -> str:
    """The pieces of one move: ``piece 0``, ``pieces 0-3`` or, where that is long, their number."""
    if len(chunks) == 1:
        return message("piece {name}", name=piece_name(schedule, chunks[0])).tell(translate)
    if schedule.kind.pieces < 2 and len(runs(chunks)) <= 4:
        return message("pieces {names}", names=spans(chunks)).tell(translate)
    if schedule.kind.pieces == 2 and len(chunks) <= 4:
        names = ", ".join(piece_name(schedule, c) for c in chunks)
        return message("pieces {names}", names=names).tell(translate)
    return message("{k} pieces", k=len(chunks)).tell(translate)


def place_name(schedule: Schedule, place: int, translate: Translate) -> str:
    """``rank 0``, or ``switch 0`` for the first helper."""
    if place < schedule.ranks:
        return message("rank {rank}", rank=place).tell(translate)
    return message("switch {switch}", switch=place - schedule.ranks).tell(translate)


def endpoints(schedule: Schedule, move: Move, translate: Translate) -> str:
    """``0 -> 1``, with a switch by its name."""
    ends = (
        str(end) if end < schedule.ranks else place_name(schedule, end, translate)
        for end in (move.src, move.dst)
    )
    return " -> ".join(ends)
