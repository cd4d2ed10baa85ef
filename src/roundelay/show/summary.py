"""A step of a large schedule in a few lines: its moves in groups, and how far everybody is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np

from ..i18n import Translate, message
from ..schedule import Schedule
from . import words
from .frames import Frame
from .moves import Move, spans

MOST_LINES: Final = 6


def grouped_moves(schedule: Schedule, moves: Iterable[Move], tell: Translate) -> list[str]:
    """The moves by how far they go, how much they carry and what becomes of it."""
    groups = Counter((_route(schedule, m, tell), len(m.chunks), m.add) for m in moves)
    lines = []
    for (route, k, add), times in groups.most_common(MOST_LINES):
        what = message("1 piece") if k == 1 else message("{k} pieces", k=k)
        times_ = message("1 move") if times == 1 else message("{k} moves", k=times)
        act = tell("add") if add else tell("copy")
        lines.append(f"  {route}  {times_.tell(tell)}, {what.tell(tell)}, {act}")
    rest = sum(groups.values()) - sum(times for _, times in groups.most_common(MOST_LINES))
    if rest:
        lines.append("  " + message("and {k} more moves", k=rest).tell(tell))
    return lines


def progress(schedule: Schedule, frame: Frame, tell: Translate) -> list[str]:
    """How many pieces are complete on which ranks, of those they need where they need some."""
    need = words.needed(schedule)
    need = np.where(need.any(axis=1, keepdims=True), need, True)
    done, of = (need & frame.complete[: schedule.ranks]).sum(axis=1), need.sum(axis=1)
    states = sorted(set(zip(done.tolist(), of.tolist(), strict=True)))
    if len(states) > MOST_LINES:
        least, most = int(done.argmin()), int(done.argmax())
        said = message("pieces complete: from {low} of {m} (rank {a}) to {high} of {m2} (rank {b})",
                       low=int(done[least]), m=int(of[least]), a=least,
                       high=int(done[most]), m2=int(of[most]), b=most)  # fmt: skip
        return ["  " + said.tell(tell)]
    lines = []
    for k, m in states:
        holders = np.flatnonzero((done == k) & (of == m)).tolist()
        if len(states) == 1:
            said = message("every rank: {k} of {m} pieces complete", k=k, m=m)
        elif len(holders) == 1:
            said = message("rank {rank}: {k} of {m} pieces complete", rank=holders[0], k=k, m=m)
        else:
            said = message("ranks {ranks}: {k} of {m} pieces complete",
                           ranks=spans(holders, most=8), k=k, m=m)  # fmt: skip
        lines.append("  " + said.tell(tell))
    return lines


def _route(schedule: Schedule, move: Move, tell: Translate) -> str:
    n = schedule.ranks
    if move.src >= n and move.dst >= n:
        return tell("switch -> switch")
    if move.dst >= n:
        return tell("rank -> switch")
    if move.src >= n:
        return tell("switch -> rank")
    far = (move.dst - move.src) % n
    if far == 0:
        return "r -> r"
    return f"r -> r + {far}" if 2 * far <= n else f"r -> r - {n - far}"
