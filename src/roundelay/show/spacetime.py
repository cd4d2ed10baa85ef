"""The picture of a larger schedule: ranks are lines, steps are columns, moves are arrows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from ..i18n import Translate
from ..schedule import Schedule
from . import words
from .draw import (
    MARGIN,
    PALETTE,
    WIDTH,
    Picture,
    arrow,
    label,
    leading,
    num,
    paragraph,
    stroke,
    tag,
    titled,
    wrapped,
)
from .frames import Frame
from .text import stretches

PITCHES: Final = (64.0, 190.0)
"""Least and most distance from one state to the next."""
SIZE: Final = 12.0
DOT: Final = 9.0
COLOURS: Final = (PALETTE[3], PALETTE[0])
"""Of moves that are copied, and of those that are added."""
MOST_LINES: Final = 24
"""Lines of what the steps do that stand below the diagram."""


class Spacetime(Picture):
    """A diagram of who sends to whom in which step; how full a dot is says what a rank holds."""

    name_gap = 20
    colours = COLOURS

    def __init__(self, schedule: Schedule, seen: list[Frame], tell: Translate):
        super().__init__(schedule, seen, tell)
        places = len(self.names)
        self.row = 22.0 if places <= 24 else 15.0
        self.grid = self.y(places - 1)
        steps = len(seen) - 1
        room = WIDTH - self.left - MARGIN
        most = int(room // PITCHES[0])
        lines = max(1, -(-steps // most))
        self.each = max(1, -(-steps // lines))
        self.pitch = min(PITCHES[1], max(PITCHES[0], room / self.each))
        self.shares = _shares(schedule, seen)

    def x(self, step: int) -> float:
        """Where a state stands, counted from the first of its line."""
        return self.left + step * self.pitch

    def y(self, place: int) -> float:
        """Where a rank's line runs; switches stand apart."""
        return place * self.row + (14 if place >= self.schedule.ranks else 0)

    def right(self) -> float:
        """Right end of a full line, with room for what the steps do below."""
        return max(self.x(self.each) + 8, 760)

    def drawn(self, right: float) -> tuple[list[str], float]:
        """The lines of the diagram, and what the steps do."""
        body: list[str] = []
        top = 134.0
        for first in range(0, max(len(self.seen) - 1, 1), self.each):
            body += self._line(first, min(first + self.each, len(self.seen) - 1), top)
            top += self.grid + 62
        lines = [line for t in self.told() for line in wrapped(t, right - MARGIN, SIZE)]
        shown = [*lines[:MOST_LINES], *["..."] * (len(lines) > MOST_LINES)]
        body.append(paragraph(MARGIN, top - 24, shown, SIZE))
        return body, top - 12 + len(shown) * leading(SIZE)

    def told(self) -> list[str]:
        """Steps that do the same taken together."""

        def action(frame: Frame) -> str:
            return frame.action.tell(self.tell)

        return [
            which + action(run[0]) for which, run in stretches(self.seen[1:], action, self.tell)
        ]

    def keys(self) -> Iterator[tuple[tuple[str, float], str]]:
        """Moves, and dots half full and full."""
        yield from super().keys()
        for share, said in (
            (0.5, self.tell("holds a part of what it needs")),
            (1, self.tell("holds all it needs, complete")),
        ):
            yield (_dots([(5.0, 0.0)], share), 10), said

    def _line(self, first: int, last: int, top: float) -> Iterator[str]:
        """The states from `first` to `last`, side by side."""
        right = self.x(last - first)
        yield label(MARGIN, top - 26, self.tell("step"), SIZE, look="rl-soft")
        for place, name in enumerate(self.names):
            y = top + self.y(place)
            yield label(MARGIN, y, name, min(SIZE, self.row - 4))
            yield tag("path", d=f"M{num(self.left)} {num(y)}H{num(right)}", class_="rl-line")
        for step in range(first + 1, last + 1):
            x = self.x(step - first - 1)
            said = self.seen[step].sentence.tell(self.tell)
            name = label(x + self.pitch / 2, top - 26, str(step), SIZE, "middle",
                         font_weight="bold")  # fmt: skip
            yield titled(said, name + "".join(self._moves(self.seen[step], x, top)))
        for step in range(first, last + 1):
            yield from self._states(step, self.x(step - first), top)

    def _moves(self, frame: Frame, x: float, top: float) -> Iterator[str]:
        """All moves of a step, as one path for each kind."""
        for add in (True, False):
            ends = [(move.src, move.dst) for move in frame.moves if move.add == add]
            turn, right = (x + 6, x + self.pitch - 12), x + self.pitch - DOT / 2
            drawn = [arrow(x, top + self.y(a), turn, right, top + self.y(b)) for a, b in ends]
            if drawn:
                lines, heads = ("".join(part) for part in zip(*drawn, strict=True))
                yield stroke(lines, COLOURS[add], 1.3, add)
                yield tag("path", d=heads, fill=COLOURS[add])

    def _states(self, step: int, x: float, top: float) -> Iterator[str]:
        """A dot for every rank and a square for every switch, as full as the rank's pieces are."""
        shares = self.shares[step]
        for boxes in (False, True):
            for share in np.unique(shares):
                at = [
                    (x, top + self.y(int(place)))
                    for place in np.flatnonzero(shares == share)
                    if (place >= self.schedule.ranks) == boxes
                ]
                if at:
                    yield _dots(at, float(share), boxes)


def _dots(at: list[tuple[float, float]], share: float, boxes: bool = False) -> str:
    """Dots or boxes, filled to a share of their area.

    A dot is a line of no length with round ends, a box a line as long as it is wide: in one path
    there is room for many.
    """
    drawn = [("rl-rim", DOT + 2), ("rl-hole", DOT)]
    if share:
        drawn.append(("rl-full" if share == 1 else "rl-part", DOT * share**0.5))
    parts = ""
    for kind, width in drawn:
        long = width if boxes else 0
        path = "".join(f"M{num(x - long / 2)} {num(y)}h{num(long)}" for x, y in at)
        look = kind if boxes else f"rl-dot {kind}"
        parts += tag("path", d=path, fill="none", stroke_width=width, class_=look)
    return parts


def _shares(schedule: Schedule, seen: list[Frame]) -> list[npt.NDArray[np.float64]]:
    """How much of what it needs every place holds, in eighths; 1 only where all is complete."""
    need, wanted = words.measured(schedule), words.contributors(schedule).sum(axis=1)
    found = []
    for frame in seen:
        held = np.minimum(frame.holds.sum(axis=-1) / wanted, 1)
        share = (held * need).sum(axis=1) / need.sum(axis=1)
        eighths = np.ceil(8 * share) / 8
        complete = (frame.complete | ~need).all(axis=1)
        found.append(np.where(complete, 1.0, np.minimum(eighths, 7 / 8)))
    return found
