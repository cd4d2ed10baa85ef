"""The table, laid out as nccl-tests does, with rivals, ping and prediction beside it."""

from __future__ import annotations

from collections.abc import Sequence

from .cells import Point, Request
from .figures import Figure, Line

_FORM = ("time", "algbw", "busbw", "#wrong")
_UNITS = ("(us)", "(GB/s)", "(GB/s)", "")


class Table:
    """Lines of text, a head before each collective and number of ranks."""

    def __init__(self, request: Request, ping: bool, predicted: bool = False) -> None:
        """Choose the columns: one a rival, the algorithm if one was asked for, ping, prediction."""
        self._algorithms = request.algorithm != "auto"
        self._rivals, self._ping, self._predicted = list(request.against), ping, predicted
        self._headed: tuple[str, int] | None = None

    def lines(self, line: Line) -> list[str]:
        """The line, and before it the head if a new collective or number of ranks begins."""
        point = line.point
        head = []
        if self._headed != (point.collective, point.ranks):
            self._headed = (point.collective, point.ranks)
            head = self._head(point)
        return [*head, self._line(line)]

    def _head(self, point: Point) -> list[str]:
        names = ["size", "count", "type", "redop", "root", *_FORM, *_FORM]
        units = ["(B)", "(elements)", "", "", "", *_UNITS, *_UNITS]
        blank = _widths("", *[""] * 4)
        over = f"{blank}  {'out-of-place':^34}  {'in-place':^34}"
        extra = ([*self._rivals, "ratio"] if self._rivals else []) + ["ping"] * self._ping
        under = ["(us)"] * len(self._rivals) + [""] * bool(self._rivals) + ["(ns)"] * self._ping
        top, below = self._extra(extra, "predicted"), self._extra(under, "(us)")
        return [
            "#",
            f"# {point.collective}, n = {point.ranks}",
            f"#{over}".rstrip(),
            f"#{_widths(*names)}{top}{self._named('algorithm')}".rstrip(),
            f"#{_widths(*units)}{below}".rstrip(),
        ]

    def _line(self, line: Line) -> str:
        point = line.point
        cells = [
            str(point.nbytes),
            str(point.shown_count),
            point.dtype,
            point.op if point.sums else "none",
            str(point.root if point.rooted else -1),
        ]
        for in_place in (False, True):
            cells += _form(point, line.ours.get(in_place))
        extra = [us(line.rivals.get(name)) for name in self._rivals]
        if self._rivals:
            extra.append("-" if line.ratio is None else f"{line.ratio:.2f}")
        if self._ping:
            extra.append("-" if line.ping_ns is None else f"{line.ping_ns:.0f}")
        beside = self._extra(extra, us(line.predicted_us))
        return f" {_widths(*cells)}{beside}{self._named(point.algorithm)}"

    def _extra(self, cells: Sequence[str], predicted: str) -> str:
        last = f"  {predicted:>9}" if self._predicted else ""
        return "".join(f"  {cell:>8}" for cell in cells) + last

    def _named(self, algorithm: str) -> str:
        return f"  {algorithm}" if self._algorithms else ""


def _form(point: Point, figure: Figure | None) -> list[str]:
    if figure is None:
        return ["n/a"] * 4
    wrong = "n/a" if figure.wrong is None else str(figure.wrong)
    speeds = (figure.algbw(point), figure.busbw(point))
    return [us(figure.time_us), *(f"{s:.2f}" if s >= 0.1 else f"{s:.4f}" for s in speeds), wrong]


def us(value: float | None) -> str:
    """Microseconds with three or more digits, or a dash."""
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 10_000 else f"{value:.0f}"


def _widths(*cells: str) -> str:
    wide = (12, 12, 14, 8, 6) + (10, 8, 8, 8) * 2
    return "".join(cell.rjust(width) for cell, width in zip(cells, wide, strict=False))
