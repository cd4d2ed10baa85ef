"""A chart of lines: what it shows, and as an SVG picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, NamedTuple

from ..show.draw import MARGIN, STYLE, label, measure, num, tag, titled

HEIGHT: Final = 400.0
"""Of the field with the lines."""
WIDTH: Final = 640.0
GAP: Final = 8.0
"""Between two labels of an axis, at least."""
ROW: Final = 16.0
"""From one line's name to the next."""
LIGHT: Final = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#B27D00", "#2E8BC0", "#7A6C00")
"""Okabe and Ito's colours, those that are too light for a line on white darkened."""
DARK: Final = ("#56B4E9", "#FF8C42", "#2CC59B", "#E29CC4", "#F0B93A", "#9ADBFF", "#D2C03A")
"""The same for a dark ground."""
MARKS: Final = ("M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0Z", "M-3 -3H3V3H-3Z",
                "M0 -4L4 3H-4Z", "M0 -4.5L4.5 0L0 4.5L-4.5 0Z")  # fmt: skip
"""Shapes of the points, so that lines are told apart without colours."""
_COLOURS: Final = "".join(
    f".rl-s{i}{{stroke:{c}}}.rl-f{i}{{fill:{c}}}" for i, c in enumerate(LIGHT)
)
_DARK: Final = "".join(f".rl-s{i}{{stroke:{c}}}.rl-f{i}{{fill:{c}}}" for i, c in enumerate(DARK))
CHART_STYLE: Final = f"""{STYLE}{_COLOURS}
.rl-run{{fill:none;stroke-width:2;stroke-linejoin:round}}
.rl-lead{{fill:none;stroke-opacity:.45}}
.rl-grid{{stroke:#8c959f;stroke-opacity:.28}}
@media (prefers-color-scheme:dark){{{_DARK}}}
"""


class Spot(NamedTuple):
    """A point of a line, and what is said where one points at it."""

    x: float
    y: float
    said: str


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        name: for the legend.
        spots: in the order of x.
        low, high: of each spot, between which measured values are expected; empty for none.
    """

    name: str
    spots: Sequence[Spot]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Scale:
    """An axis.

    Attributes:
        title: what it is, and its unit.
        logarithmic: equal distances are equal factors.
        told: a value as text.
    """

    title: str
    logarithmic: bool
    told: Callable[[float], str]

    def place(self, value: float) -> float:
        """A number that grows evenly along the axis."""
        return math.log2(value) if self.logarithmic else value


@dataclass(frozen=True)
class Chart:
    """Lines over two axes.

    Attributes:
        title: what is shown.
        about: a line below it.
        x, y: the axes.
        lines: at least one, each with a spot.
        ordered: whether the lines are in an order, such as sizes, which colours may show.
    """

    title: str
    about: str
    x: Scale
    y: Scale
    lines: Sequence[Line]
    ordered: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """Where the y axis begins and ends: a little beyond the lines, or at 0."""
        found = [v for line in self.lines for v in (*(s.y for s in line.spots), *line.low,
                                                    *line.high)]  # fmt: skip
        low, high = min(found), max(found)
        return (low / 1.1, high * 1.1) if self.y.logarithmic else (0.0, high * 1.05 or 1.0)

    @property
    def ticks(self) -> list[float]:
        """Where the y axis has a number."""
        return round_ticks(*self.ends, self.y.logarithmic)

    def svg(self) -> str:
        """The chart as a self-contained SVG that can be read on a light and on a dark ground."""
        return _Drawing(self).svg()


def round_ticks(low: float, high: float, logarithmic: bool) -> list[float]:
    """Round values from `low` to `high`: powers of ten and parts of them, or even steps."""
    if logarithmic and high / low > 10:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        parts = (1,) if high / low > 1000 else (1, 2, 5)
        found = [part * 10.0**decade for decade in decades for part in parts]
    else:
        least = (high - low) / 6 or high
        step = 10.0 ** math.floor(math.log10(least))
        step *= next(part for part in (1, 2, 5, 10) if part * step >= least)
        found = [k * step for k in range(round(low / step), round(high / step) + 1)]
    return [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


class _Drawing:
    """Where everything of a chart stands."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        xs = [chart.x.place(s.x) for line in chart.lines for s in line.spots]
        low, high = chart.ends
        self.ticks = chart.ticks
        self.x_ends = min(xs), max(xs)
        self.y_ends = chart.y.place(low), chart.y.place(high)
        self.left = MARGIN + max(measure(chart.y.told(t), 11) for t in self.ticks) + 12
        self.top = 96.0
        self.names = max(measure(line.name, 12) for line in chart.lines)
        self.height = max(HEIGHT, ROW * len(chart.lines))

    def x(self, value: float) -> float:
        first, last = self.x_ends
        share = (self.chart.x.place(value) - first) / (last - first) if last > first else 0.5
        return self.left + 10 + share * (WIDTH - 20)

    def y(self, value: float) -> float:
        low, high = self.y_ends
        share = (self.chart.y.place(value) - low) / (high - low) if high > low else 0.5
        return self.top + self.height * (1 - share)

    def svg(self) -> str:
        chart, names = self.chart, any(line.name for line in self.chart.lines)
        right = self.left + WIDTH + (44 + self.names if names else 0)
        right = max(
            right, *(MARGIN + measure(t, s) for t, s in ((chart.title, 18), (chart.about, 12)))
        )
        width, height = right + MARGIN, self.top + self.height + 66
        inside = [
            tag("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=10, class_="rl-card"),
            label(MARGIN, 30, chart.title, 17, font_weight="bold"),
            label(MARGIN, 54, chart.about, 12, look="rl-soft"),
            label(MARGIN, self.top - 16, chart.y.title, 12, font_weight="bold"),
            label(self.left + WIDTH / 2, height - 22, chart.x.title, 12, "middle",
                  font_weight="bold"),
            *self._grid(),
            *self._bands(),
            *(part for i in range(len(chart.lines)) for part in self._line(i)),
            *(self._legend() if names else []),
        ]  # fmt: skip
        said = "; ".join(f"{line.name}: {line.spots[-1].said}" for line in chart.lines)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'aria-label="{escape(chart.title)}" width="{num(width)}" height="{num(height)}" '
            f'viewBox="0 0 {num(width)} {num(height)}">\n'
            f"<title>{escape(chart.title)}</title>\n<desc>{escape(said)}</desc>\n"
            f"<style>{CHART_STYLE}</style>\n" + "\n".join(inside) + "\n</svg>\n"
        )

    def _grid(self) -> Iterator[str]:
        bottom, right = self.top + self.height, self.left + WIDTH
        for value in self.ticks:
            y = self.y(value)
            yield tag("path", d=f"M{num(self.left)} {num(y)}H{num(right)}", class_="rl-grid")
            yield label(self.left - 6, y, self.chart.y.told(value), 11, "end")
        end = -math.inf
        for value in sorted({s.x for line in self.chart.lines for s in line.spots}):
            x, text = self.x(value), self.chart.x.told(value)
            half = measure(text, 11) / 2
            if x - half < end + GAP:
                continue
            end = x + half
            yield tag("path", d=f"M{num(x)} {num(self.top)}V{num(bottom + 4)}", class_="rl-grid")
            yield label(x, bottom + 15, text, 11, "middle")

    def _bands(self) -> Iterator[str]:
        for line in self.chart.lines:
            if line.low:
                up = [f"{num(self.x(s.x))} {num(self.y(v))}"
                      for s, v in zip(line.spots, line.high, strict=True)]  # fmt: skip
                down = [f"{num(self.x(s.x))} {num(self.y(v))}"
                        for s, v in zip(line.spots, line.low, strict=True)]  # fmt: skip
                yield tag("path", d=f"M{'L'.join([*up, *reversed(down)])}Z", class_="rl-band")

    def _line(self, i: int) -> Iterator[str]:
        spots = [(self.x(s.x), self.y(s.y), s.said) for s in self.chart.lines[i].spots]
        way = "L".join(f"{num(x)} {num(y)}" for x, y, _ in spots)
        if len(spots) > 1:
            dashes = {"stroke_dasharray": "6 4"} if self._again(i) else {}
            look = self._look(i, "rl-run", "stroke")
            yield tag("path", d=f"M{way}", **look, **dashes)
        yield from (titled(said, self._mark(i, x, y)) for x, y, said in spots)

    def _mark(self, i: int, x: float, y: float) -> str:
        place = f"translate({num(x)} {num(y)})"
        return tag("path", d=MARKS[i % len(MARKS)], transform=place, **self._look(i, "", "fill"))

    def _again(self, i: int) -> bool:
        """Whether a line has the colour of one before it."""
        return not self.chart.ordered and i >= len(LIGHT)

    def _look(self, i: int, kind: str, what: str) -> dict[str, str | float]:
        """A colour of the palette, or, for more lines in an order, of a row of hues."""
        count = len(self.chart.lines)
        if count <= len(LIGHT) or not self.chart.ordered:
            return {"class_": f"{kind} rl-{what[0]}{i % len(LIGHT)}".strip()}
        hue = 215 - 195 * i / (count - 1)
        return {"class_": kind, what: f"hsl({hue:.0f},65%,50%)"}

    def _legend(self) -> Iterator[str]:
        """Names to the right of the lines' ends, one below the other."""
        lines = self.chart.lines
        ends = [(self.x(line.spots[-1].x), self.y(line.spots[-1].y)) for line in lines]
        order = sorted(range(len(lines)), key=lambda i: (ends[i][1], i))
        right = self.left + WIDTH
        for i, y in zip(
            order, _apart([ends[i][1] for i in order], self.top, self.height), strict=True
        ):
            x0, y0 = ends[i]
            way = f"M{num(x0)} {num(y0)}L{num(right + 4)} {num(y0)}L{num(right + 20)} {num(y)}h6"
            yield tag("path", d=way, **self._look(i, "rl-lead", "stroke"))
            yield self._mark(i, right + 30, y)
            yield label(right + 40, y, lines[i].name, 12)


def _apart(heights: Sequence[float], top: float, height: float) -> list[float]:
    """Rising heights moved as little as needed to be a row apart, within the field."""
    found: list[float] = []
    for y in heights:
        found.append(max(y, found[-1] + ROW) if found else max(y, top))
    limit = top + height
    for i in reversed(range(len(found))):
        found[i] = min(found[i], limit)
        limit = found[i] - ROW
    return found
