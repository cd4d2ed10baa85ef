"""The picture of a small schedule: every state as a panel, and every move as an arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..i18n import Translate, message
from ..schedule import Schedule
from . import words
from .draw import (
    HEAD,
    MARGIN,
    PALETTE,
    WIDTH,
    Picture,
    arrow,
    label,
    leading,
    measure,
    paragraph,
    stroke,
    tag,
    tick,
    titled,
    wrapped,
)
from .frames import Frame, Move

ROW, ROW_GAP = 30.0, 9.0
COLUMN_GAP: Final = 11.0
SENTENCE: Final = 11.0


@dataclass(frozen=True)
class _Line:
    """Panels side by side: where they are, and which states they show."""

    top: float
    first: int
    last: int
    sentences: tuple[tuple[list[str], list[str]], ...]
    height: float


class Panels(Picture):
    """A panel for every state, rows of ranks and columns of pieces, and the moves between."""

    name_gap = 14
    colours = (PALETTE[0], PALETTE[0])

    def __init__(self, schedule: Schedule, seen: list[Frame], tell: Translate):
        super().__init__(schedule, seen, tell)
        self.wanted = words.contributors(schedule).sum(axis=1).tolist()
        self.ticks = [words.ticks(schedule, frame.complete) for frame in seen]
        self.pieces = [words.piece_name(schedule, c) for c in range(schedule.chunks)]
        longest = f"{schedule.ranks}/{schedule.ranks}" if schedule.kind.sums else self.pieces[-1]
        self.size = 11.0 if schedule.chunks <= 5 else 9.0
        self.cell = max(26.0, measure(longest, self.size) + 10)
        self.panel = schedule.chunks * (self.cell + COLUMN_GAP) - COLUMN_GAP
        self.gap = max(60.0 + 4 * schedule.ranks, 210 - self.panel)
        self.grid = self.y(len(self.names) - 1) + ROW
        self.lines = list(self._lines(104))

    def x(self, panel: int, chunk: int) -> float:
        """Left edge of a cell, from the left of the picture."""
        return self.left + panel * (self.panel + self.gap) + chunk * (self.cell + COLUMN_GAP)

    def y(self, place: int) -> float:
        """Top edge of a row, from the top of the panel's grid; switches stand apart."""
        return place * (ROW + ROW_GAP) + (16 if place >= self.schedule.ranks else 0)

    def lane(self, place: int, chunk: int) -> float:
        """Height at which the moves of a chunk run along a row, from the top of the grid."""
        return self.y(place) + ROW * (0.16 + 0.68 * (chunk + 0.5) / self.schedule.chunks)

    def right(self) -> float:
        """Right end of the longest line of panels."""
        return self.x(max(line.last - line.first for line in self.lines), 0) + self.panel

    def drawn(self, right: float) -> tuple[list[str], float]:
        """All lines of panels."""
        end = self.lines[-1].top + self.lines[-1].height + 2
        return [part for line in self.lines for part in self._line(line)], end

    def told(self) -> list[str]:
        """Every step by itself."""
        return [f"{frame.step}. {frame.sentence.tell(self.tell)}" for frame in self.seen[1:]]

    def _lines(self, top: float) -> Iterator[_Line]:
        """The lines of panels, filled evenly; a line begins with the state the last ended in."""
        steps = len(self.seen) - 1
        most = max(1, int((WIDTH - self.left - self.panel - MARGIN) // (self.panel + self.gap)))
        lines = max(1, -(-steps // most))
        each = -(-steps // lines)
        for first in range(0, max(steps, 1), max(each, 1)):
            last = min(first + each, steps)
            sentences = tuple(self._sentence(step) for step in range(first + 1, last + 1))
            text = max((len(a) + len(b) for a, b in sentences), default=0) * leading(SENTENCE)
            line = _Line(top, first, last, sentences, 52 + self.grid + text + 30)
            yield line
            top += line.height

    def _sentence(self, step: int) -> tuple[list[str], list[str]]:
        """The lines of what a step does, and of what it brings."""
        frame, width = self.seen[step], self.panel + self.gap - 16
        progress = frame.progress.tell(self.tell) if frame.progress else ""
        action = wrapped(frame.action.tell(self.tell), width, SENTENCE)
        return action, wrapped(progress, width, SENTENCE) if progress else []

    def keys(self) -> Iterator[tuple[tuple[str, float], str]]:
        """Moves, finished cells, and cells that hold a part."""
        yield from super().keys()
        tell, sums = self.tell, self.schedule.kind.sums
        box: dict[str, str | float] = {"width": 16, "y": -8, "rx": 3}
        if any(done.any() for done in self.ticks):
            done = tag("rect", **box, height=16, class_="rl-done") + tick(8, 0, 0.8)
            whole, there = tell("the sum is complete"), tell("the piece is where it is wanted")
            yield (done, 16), whole if sums else there
        n = self.schedule.ranks
        if sums and n > 1:
            k = (n + 1) // 2
            low = {**box, "y": 8 - 16 * k / n}
            part = tag("rect", **box, height=16, class_="rl-cell")
            part += tag("rect", **low, height=16 * k / n, fill=PALETTE[0], class_="rl-held")
            said = message("{k}/{n}: the numbers of {k} of {n} ranks are in the sum", k=k, n=n)
            yield (part, 16), said.tell(tell)

    def _line(self, line: _Line) -> Iterator[str]:
        """A line of panels: names of ranks, arrows below the cells, cells, and what is said."""
        grid = line.top + 52
        yield self._row_names(line, grid)
        for step in range(line.first + 1, line.last + 1):
            panel = step - line.first - 1
            for move in self.seen[step].moves:
                yield self._move(move, panel, grid)
        for step in range(line.first, line.last + 1):
            yield from self._panel(step, step - line.first, grid)
        for i, (action, progress) in enumerate(line.sentences):
            x = self.x(i, 0) + self.panel + 20
            yield paragraph(x, grid + self.grid + 12, action, SENTENCE)
            below = grid + self.grid + 12 + len(action) * leading(SENTENCE)
            yield paragraph(x, below, progress, SENTENCE, look="rl-soft")

    def _row_names(self, line: _Line, grid: float) -> str:
        parts = ""
        for place, name in enumerate(self.names):
            y = grid + self.y(place)
            if place >= self.schedule.ranks:
                width = self.x(line.last - line.first, 0) + self.panel + 10 - MARGIN
                parts += tag("rect", x=MARGIN - 8, y=y - 4, width=width + 8, height=ROW + 8, rx=19,
                             class_="rl-band")  # fmt: skip
            parts += label(MARGIN, y + ROW / 2, name, 12)
        return parts

    def _panel(self, step: int, panel: int, grid: float) -> Iterator[str]:
        frame = self.seen[step]
        x = self.x(panel, 0)
        when = message("Step {k}", k=step).tell(self.tell) if step else self.tell("Start")
        again = bool(panel == 0 and step)
        name = message("after step {k}", k=step).tell(self.tell) if again else when
        heading = label(x + self.panel / 2, grid - 36, name, 13, "middle",
                        look="rl-soft" if again else "", font_weight="bold")  # fmt: skip
        yield titled(frame.sentence.tell(self.tell), heading)
        for chunk, piece in enumerate(self.pieces if len(self.pieces) > 1 else ()):
            yield label(self.x(panel, chunk) + self.cell / 2, grid - 14, piece, 11, "middle",
                        look="rl-soft")  # fmt: skip
        for place in range(len(self.names)):
            for chunk in range(self.schedule.chunks):
                y = grid + self.y(place)
                yield self._cell(frame, place, chunk, self.x(panel, chunk), y)

    def _cell(self, frame: Frame, place: int, chunk: int, x: float, y: float) -> str:
        """A cell, filled from below by the share of the total that it holds."""
        held = int(frame.holds[place, chunk].sum())
        switch = place >= self.schedule.ranks
        rx = ROW / 2 if switch else 5
        box: dict[str, str | float] = {"width": self.cell, "height": ROW, "rx": rx}
        parts = tag("rect", x=x, y=y, **box, class_="rl-cell")
        if held:
            empty = ROW * (1 - min(1.0, held / self.wanted[chunk]))
            fill = tag("rect", y=-empty, **box, fill=_colour(chunk), class_="rl-held")
            parts += tag("svg", fill, x=x, y=y + empty, width=self.cell, height=ROW - empty)
        done = bool(self.ticks[frame.step][place, chunk])
        if done:
            parts += tag("rect", x=x, y=y, **box, class_="rl-done")
        middle = x + self.cell / 2, y + ROW / 2
        share = f"{held}/{self.wanted[chunk]}"
        if frame.twice[place, chunk]:
            parts += label(*middle, f"{share} !", self.size, "middle")
        elif done:
            parts += tick(*middle)
        elif held:
            name = self.pieces[chunk] if len(self.pieces) > 1 else "●"
            text = share if self.schedule.kind.sums else name
            parts += label(*middle, text, self.size, "middle")
        return titled(self._who(frame, place, chunk), parts)

    def _who(self, frame: Frame, place: int, chunk: int) -> str:
        """Whose contributions a place holds."""
        ranks = np.flatnonzero(frame.counts[place, chunk]).tolist()
        where = {"place": self.names[place], "piece": self.pieces[chunk]}
        if not ranks:
            return message("{place}, piece {piece}: nothing", **where).tell(self.tell)
        return message("{place}, piece {piece}: from rank {ranks}", ranks=words.spans(ranks),
                       **where).tell(self.tell)  # fmt: skip

    def _move(self, move: Move, panel: int, grid: float) -> str:
        """An arrow for each piece of a move, running along its rows below the other cells."""
        turn = self.x(panel, 0) + self.panel + 4, self.x(panel + 1, 0) - HEAD - 3
        thick = max(0.9, min(1.9, ROW * 0.5 / self.schedule.chunks))
        parts = ""
        for chunk in move.chunks:
            start, end = self.x(panel, chunk) + self.cell, self.x(panel + 1, chunk)
            up, down = (grid + self.lane(place, chunk) for place in (move.src, move.dst))
            line, head = arrow(start, up, turn, end, down)
            parts += stroke(line, _colour(chunk), thick, move.add)
            parts += tag("path", d=head, fill=_colour(chunk))
        return titled("  ".join(words.move(self.schedule, *move, self.tell)), parts)


def _colour(chunk: int) -> str:
    return PALETTE[chunk % len(PALETTE)]
