"""A schedule as text for a terminal: step by step, what moves and who holds what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final

import numpy as np

from ..i18n import Translate, message, translator
from ..schedule import Schedule
from . import words
from .columns import pad, width
from .frames import Frame, Move, frames

MOST_CHUNKS: Final = 16
"""Pieces up to which a step gets a table with one column for each."""
MOST_ROWS: Final = 32
"""Ranks and switches up to which a step gets a table with one row for each."""
MOST_MOVES: Final = 64
"""Moves up to which those of a step are listed one by one."""
MOST_LINES: Final = 6
"""Lines that the moves of a step take in groups, and then how far the ranks are."""
WIDEST: Final = 96
"""Columns of the terminal that a table keeps within, if it can."""
WIDTH: Final = 80
"""Columns that the moves of a step may take side by side."""


def show(schedule: Schedule, *, lang: str = "en") -> str:
    """The schedule as text for a terminal: what every step does, and who holds what after it.

    Up to 16 pieces and 32 ranks and switches, every step has a table; above, a summary.

    Raises:
        RoundelayError: the schedule is too large to show, or there is no such language.
        ScheduleError: the schedule is illegal.
    """
    tell = translator(lang)
    seen = frames(schedule)
    lines = [words.title(schedule).tell(tell), words.purpose(schedule).tell(tell)]
    if schedule.chunks <= MOST_CHUNKS and schedule.ranks + schedule.helpers <= MOST_ROWS:
        lines += _in_full(schedule, seen, tell)
    else:
        lines += _in_brief(schedule, seen, tell)
    lines += ["", words.outcome(schedule, seen[-1].counts).tell(tell)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def stretches(
    seen: list[Frame], alike: Callable[[Frame], Any], tell: Translate
) -> Iterator[tuple[str, list[Frame]]]:
    """States in which `alike` is the same taken together, each with a ``Steps 1 to 3: ``."""
    for _, run in groupby(seen, alike):
        states = list(run)
        a, b = states[0].step, states[-1].step
        which = message("Step {k}: ", k=a) if a == b else message("Steps {a} to {b}: ", a=a, b=b)
        yield which.tell(tell), states


def _in_full(schedule: Schedule, seen: list[Frame], tell: Translate) -> Iterator[str]:
    """Every step by itself, with its moves and a table."""
    table = _Table(schedule, seen, tell)
    yield from ["", *table.legend(), "", tell("Before the first step"), "", *table.rows(seen[0])]
    for step, (frame,) in stretches(seen[1:], lambda frame: frame.step, tell):
        yield from ["", step + frame.action.tell(tell)]
        if frame.progress:
            yield " " * width(step) + frame.progress.tell(tell)
        if len(frame.moves) <= MOST_MOVES:
            moves = [words.move(schedule, *move, tell) for move in frame.moves]
            yield from ["", *_in_columns(moves), "", *table.rows(frame)]
        else:
            yield from ["", *_grouped(schedule, frame.moves, tell), "", *table.rows(frame)]


def _in_brief(schedule: Schedule, seen: list[Frame], tell: Translate) -> Iterator[str]:
    """Steps that do the same as one, with their moves in groups."""

    def alike(frame: Frame) -> tuple[str, list[str]]:
        return frame.action.tell(tell), _grouped(schedule, frame.moves, tell)

    known: list[str] = []
    for which, run in stretches(seen[1:], alike, tell):
        action, moves = alike(run[0])
        yield from ["", which + action, "", *moves]
        last = run[-1]
        if len(run) > 1:
            yield from ["", message("After step {k}:", k=last.step).tell(tell)]
        reached = _progress(schedule, last, tell)
        if last.progress and reached == known:
            yield "  " + last.progress.tell(tell)
        yield from reached
        known = reached


def _grouped(schedule: Schedule, moves: Iterable[Move], tell: Translate) -> list[str]:
    """The moves by how far they go, how much they carry and what becomes of it."""
    groups = Counter((_distance(schedule.ranks, m, tell), len(m.chunks), m.add) for m in moves)
    lines = []
    for (route, k, add), times in groups.most_common(MOST_LINES):
        what = message("1 piece") if k == 1 else message("{k} pieces", k=k)
        often = message("1 move") if times == 1 else message("{k} moves", k=times)
        act = tell("add") if add else tell("copy")
        lines.append(f"  {route}  {often.tell(tell)}, {what.tell(tell)}, {act}")
    rest = sum(groups.values()) - sum(times for _, times in groups.most_common(MOST_LINES))
    if rest:
        lines.append("  " + message("and {k} more moves", k=rest).tell(tell))
    return lines


def _distance(n: int, move: Move, tell: Translate) -> str:
    if max(move.src, move.dst) >= n:
        return " -> ".join(
            tell("rank") if end < n else tell("switch") for end in (move.src, move.dst)
        )
    far = (move.dst - move.src) % n
    if far == 0:
        return "r -> r"
    return f"r -> r + {far}" if 2 * far <= n else f"r -> r - {n - far}"


def _progress(schedule: Schedule, frame: Frame, tell: Translate) -> list[str]:
    """How many pieces are complete on which ranks, of those they need where they need some."""
    need = words.measured(schedule)[: schedule.ranks]
    done, of = (need & frame.complete[: schedule.ranks]).sum(axis=1), need.sum(axis=1)
    states = sorted(set(zip(done.tolist(), of.tolist(), strict=True)))
    lines = []
    for k, m in states:
        holders = np.flatnonzero((done == k) & (of == m)).tolist()
        if len(states) == 1:
            said = message("every rank: {k} of {m} pieces complete", k=k, m=m)
        elif len(holders) == 1:
            said = message("rank {rank}: {k} of {m} pieces complete", rank=holders[0], k=k, m=m)
        else:
            said = message("ranks {ranks}: {k} of {m} pieces complete",
                           ranks=words.spans(holders, most=8), k=k, m=m)  # fmt: skip
        lines.append("  " + said.tell(tell))
    return lines if len(lines) <= MOST_LINES else [*lines[:2], "  ...", *lines[-2:]]


class _Table:
    """The table of what every rank holds of every piece, in one form for all steps."""

    def __init__(self, schedule: Schedule, seen: list[Frame], tell: Translate):
        self.schedule, self.tell = schedule, tell
        self.sums = schedule.kind.sums
        self.dots = self.sums and schedule.ranks <= 8 and schedule.ranks * schedule.chunks <= 64
        widest = len(f"[{schedule.ranks}/{schedule.ranks}]✓")
        self.narrow = not self.dots and widest * schedule.chunks + 10 > WIDEST
        self.wanted = words.contributors(schedule).sum(axis=1).tolist()
        self.repeats = any(frame.twice.any() for frame in seen)
        self.ticks = any(words.ticks(schedule, frame.complete).any() for frame in seen)
        self.columns = [words.piece_name(schedule, c) for c in range(schedule.chunks)]
        self.names = words.places(schedule, tell)

    def legend(self) -> list[str]:
        """What the signs in the table mean."""
        tell, n = self.tell, self.schedule.ranks
        if self.dots:
            some = "".join("●" if r < (n + 1) // 2 else "○" for r in range(n))
            signs = [(some, tell("one dot a rank: ● where its numbers are in the sum so far"))]
        elif self.sums:
            sign = "1" if self.narrow else f"1/{n}"
            said = message("how many of the {n} ranks have their numbers in the sum so far", n=n)
            signs = [(sign, said.tell(tell))]
        else:
            signs = [("●", tell("the rank holds the piece"))]
        signs.append(("·", tell("nothing there")))
        if self.ticks and self.sums:
            signs.append(("✓", tell("the sum is complete")))
        elif self.ticks:
            signs.append(("✓", tell("the piece is where it is wanted")))
        if self.repeats:
            signs.append(("!", tell("some rank's numbers are in the sum more than once")))
        if self.schedule.steps:
            signs.append(("[ ]", tell("changed in this step")))
        left = max(width(sign) for sign, _ in signs)
        return [f"  {pad(sign, left)}  {meaning}" for sign, meaning in signs]

    def rows(self, frame: Frame) -> list[str]:
        """One line for the pieces' names, then one for every rank and switch."""
        body = self._cells(frame)
        corner, head = self.tell("piece"), [f"{h} " for h in self.columns]
        left = max(width(name) for name in [corner, *self.names])
        widths = [max(map(width, (f" {h}", *held))) for h, *held in zip(head, *body, strict=True)]
        if self.dots:
            widths = [self.schedule.ranks + 3] * len(widths)
        gap = " " if left + sum(widths) + len(widths) <= WIDEST else ""
        lines = []
        for name, row in zip([corner, *self.names], [head, *body], strict=True):
            cells = (_centre(c[:-1], w - 1) + c[-1] for c, w in zip(row, widths, strict=True))
            lines.append(f"  {pad(name, left)}  {gap.join(cells)}")
        return lines

    def _cells(self, frame: Frame) -> list[list[str]]:
        """What every place holds: in brackets where it has changed, then a mark."""
        done, twice = words.ticks(self.schedule, frame.complete), frame.twice
        cells = [[""] * self.schedule.chunks for _ in self.names]
        for at in np.ndindex(done.shape):
            content = self._content(frame, *at)
            mark = "!" if twice[at] else "✓" if done[at] else " "
            cells[at[0]][at[1]] = (
                f"[{content}]{mark}" if frame.changed[at] else f" {content} {mark}"
            )
        return cells

    def _content(self, frame: Frame, place: int, chunk: int) -> str:
        counts = frame.counts[place, chunk]
        if not counts.any():
            return "·"
        if self.dots:
            return "".join("●" if count else "○" for count in counts.tolist())
        if self.sums:
            share = int((counts > 0).sum())
            return str(share) if self.narrow else f"{share}/{self.wanted[chunk]}"
        return "●"


def _in_columns(moves: list[tuple[str, str, str]]) -> Iterator[str]:
    """The moves, side by side as far as they fit."""
    if not moves:
        return
    widths = [max(width(move[i]) for move in moves) for i in range(3)]
    cells = ["  ".join(map(pad, move, widths)) for move in moves]
    most = max(1, WIDTH // (sum(widths) + 8))
    lines = -(-len(cells) // most)
    for i in range(lines):
        yield "  " + "    ".join(cells[i::lines])


def _centre(text: str, columns: int) -> str:
    return pad(" " * ((columns - width(text)) // 2) + text, columns)
