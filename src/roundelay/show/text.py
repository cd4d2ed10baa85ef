"""A schedule as text for a terminal: step by step, what moves and who holds what."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from ..i18n import Translate, message, translator
from ..schedule import Schedule
from . import words
from .frames import Frame, contributors, frames
from .moves import endpoints, named_pieces, piece_name, place_name
from .summary import grouped_moves, progress

MOST_CHUNKS: Final = 16
"""Pieces up to which a step gets a table with one column for each."""
MOST_ROWS: Final = 32
"""Ranks and switches up to which a step gets a table with one row for each."""
MOST_MOVES: Final = 64
"""Moves up to which those of a step are listed one by one."""
WIDEST: Final = 96
"""Columns of the terminal that a table keeps within, if it can."""
WIDTH: Final = 80
"""Columns that the moves of a step may take side by side."""


def text(schedule: Schedule, lang: str = "en") -> str:
    """The schedule for a terminal: what every step does, and who holds what after it.

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
    lines += ["", words.outcome(schedule, seen[-1]).tell(tell)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _in_full(schedule: Schedule, seen: list[Frame], tell: Translate) -> Iterator[str]:
    """Every step by itself, with its moves and a table."""
    table = _Table(schedule, seen, tell)
    yield from ["", *table.legend(), "", tell("Before the first step"), "", *table.rows(seen[0])]
    for frame in seen[1:]:
        step = message("Step {k}: ", k=frame.step).tell(tell)
        yield from ["", step + frame.action.tell(tell)]
        if frame.progress:
            yield " " * _width(step) + frame.progress.tell(tell)
        if len(frame.moves) <= MOST_MOVES:
            yield from ["", *_in_columns(_listed(schedule, frame, tell)), "", *table.rows(frame)]
        else:
            yield from ["", *grouped_moves(schedule, frame.moves, tell), "", *table.rows(frame)]


def _in_brief(schedule: Schedule, seen: list[Frame], tell: Translate) -> Iterator[str]:
    """Steps that do the same as one, with their moves in groups."""

    def alike(frame: Frame) -> tuple[str, list[str]]:
        return frame.action.tell(tell), grouped_moves(schedule, frame.moves, tell)

    known: list[str] = []
    for (action, moves), run in groupby(seen[1:], alike):
        first, *others = run
        last = others[-1] if others else first
        which = (
            message("Steps {a} to {b}: ", a=first.step, b=last.step)
            if others
            else message("Step {k}: ", k=first.step)
        )
        yield from ["", which.tell(tell) + action, "", *moves]
        if others:
            yield from ["", message("After step {k}:", k=last.step).tell(tell)]
        reached = progress(schedule, last, tell)
        if last.progress and reached == known:
            yield "  " + last.progress.tell(tell)
        yield from reached
        known = reached


class _Table:
    """The table of what every rank holds of every piece, in one form for all steps."""

    def __init__(self, schedule: Schedule, seen: list[Frame], tell: Translate):
        self.schedule, self.tell = schedule, tell
        self.sums = schedule.kind.sums
        self.dots = self.sums and schedule.ranks <= 8 and schedule.ranks * schedule.chunks <= 64
        widest = len(f"[{schedule.ranks}/{schedule.ranks}]✓")
        self.narrow = not self.dots and widest * schedule.chunks + 10 > WIDEST
        self.wanted = contributors(schedule).sum(axis=1).tolist()
        self.repeats = any(frame.twice.any() for frame in seen)
        self.ticks = any(words.ticks(schedule, frame).any() for frame in seen)
        self.columns = [piece_name(schedule, c) for c in range(schedule.chunks)]
        last = schedule.ranks + schedule.helpers
        self.names = [place_name(schedule, p, tell) for p in range(last)]

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
        left = max(_width(sign) for sign, _ in signs)
        return [f"  {_pad(sign, left)}  {meaning}" for sign, meaning in signs]

    def rows(self, frame: Frame) -> list[str]:
        """One line for the pieces' names, then one for every rank and switch."""
        body = self._cells(frame)
        corner = self.tell("piece")
        left = max(_width(name) for name in [corner, *self.names])
        widths = [
            max(_width(row[c]) for row in [*body, [f" {h} " for h in self.columns]])
            for c in range(self.schedule.chunks)
        ]
        if self.dots:
            widths = [self.schedule.ranks + 3] * len(widths)
        gap = " " if left + sum(widths) + len(widths) <= WIDEST else ""
        head = (_centre(h, w - 1) + " " for h, w in zip(self.columns, widths, strict=True))
        lines = [f"  {_pad(corner, left)}  {gap.join(head)}"]
        for name, row in zip(self.names, body, strict=True):
            cells = (
                _centre(cell[:-1], w - 1) + cell[-1] for cell, w in zip(row, widths, strict=True)
            )
            lines.append(f"  {_pad(name, left)}  {gap.join(cells)}")
        return lines

    def _cells(self, frame: Frame) -> list[list[str]]:
        done, twice = words.ticks(self.schedule, frame), frame.twice
        return [
            [
                _framed(
                    self._content(frame, place, chunk),
                    bool(frame.changed[place, chunk]),
                    "!" if twice[place, chunk] else "✓" if done[place, chunk] else " ",
                )
                for chunk in range(self.schedule.chunks)
            ]
            for place in range(len(self.names))
        ]

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


def _framed(content: str, changed: bool, mark: str) -> str:
    """A cell: in brackets where it has changed, then its mark."""
    return f"[{content}]{mark}" if changed else f" {content} {mark}"


def _listed(schedule: Schedule, frame: Frame, tell: Translate) -> list[tuple[str, str, str]]:
    add, copy = tell("add"), tell("copy")
    return [
        (
            endpoints(schedule, move, tell),
            named_pieces(schedule, move.chunks, tell),
            add if move.add else copy,
        )
        for move in frame.moves
    ]


def _in_columns(moves: list[tuple[str, str, str]]) -> Iterator[str]:
    """The moves, side by side as far as they fit."""
    if not moves:
        return
    widths = [max(_width(move[i]) for move in moves) for i in range(3)]
    cells = ["  ".join(map(_pad, move, widths)) for move in moves]
    most = max(1, WIDTH // (sum(widths) + 8))
    lines = -(-len(cells) // most)
    for i in range(lines):
        yield "  " + "    ".join(cells[i::lines])


def _width(text: str) -> int:
    """Columns the text takes in a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, width: int) -> str:
    return text + " " * (width - _width(text))


def _centre(text: str, width: int) -> str:
    left = max(0, width - _width(text)) // 2
    return _pad(" " * left + text, width)
