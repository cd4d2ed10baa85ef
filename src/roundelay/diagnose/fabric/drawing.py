"""Switches as an SVG picture: a row a level, hosts below, and lines where cables run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

from ...formats.fabric import Fabric
from ...formats.hostlist import compressed
from ...i18n import Translate, message
from ...show.draw import MARGIN, STYLE, label, num, tag, titled

WIDE, HIGH, GAP, DOWN = 116.0, 40.0, 14.0, 96.0
"""Of a box, between two of them, and from row to row."""
MOST: Final = 256
"""Switches that a picture has at most."""
LETTERS: Final = 19
"""That a box has room for."""


def fabric_drawing(fabric: Fabric, translate: Translate, lang: str) -> str:
    """The picture; of larger fabrics the first `MOST` switches.

    Args:
        fabric: what a file describes.
        translate: for its title.
        lang: of it.
    """
    shown = list(fabric.switches)[:MOST]
    rows = _rows(fabric, shown)
    width = max(map(len, rows)) * (WIDE + GAP) - GAP + 2 * MARGIN
    places = {name: (width * (i + 0.5) / len(row), MARGIN + y * DOWN)
              for y, row in enumerate(rows) for i, name in enumerate(row)}  # fmt: skip
    height = 2 * MARGIN + (len(rows) - 1) * DOWN + 2 * HIGH + GAP
    parts = [tag("rect", x=0, y=0, width=num(width), height=num(height), rx=8, class_="rl-card"),
             *_cables(fabric, places),
             *(_switch(fabric, name, *places[name]) for name in places)]  # fmt: skip
    title = message("What is connected how").tell(translate)
    body = f"<title>{escape(title)}</title><style>{STYLE}</style>{''.join(parts)}"
    return tag("svg", body, xmlns="http://www.w3.org/2000/svg", lang=lang, role="img",
               viewBox=f"0 0 {num(width)} {num(height)}", width=num(width),
               height=num(height)) + "\n"  # fmt: skip


def _rows(fabric: Fabric, shown: list[str]) -> list[list[str]]:
    """Switches by level, the uppermost first; each row in the order of what hangs below it."""
    at = fabric.level_of
    top = max((at[name] for name in shown if name in at), default=0)
    levels = [[n for n in shown if at.get(n, 0) == level] for level in range(top + 1)]
    order = {name: float(i) for i, name in enumerate(levels[0])}
    for row in levels[1:]:
        below = {name: [order[end] for cable in fabric.cables for own, end in
                        ((cable.a, cable.b), (cable.b, cable.a))
                        if own == name and end in order] for name in row}  # fmt: skip
        row.sort(key=lambda n: sum(below[n]) / len(below[n]) if below[n] else 0.0)
        order = {name: sum(below[name]) / len(below[name]) if below[name] else float(i)
                 for i, name in enumerate(row)}  # fmt: skip
    return [row for row in reversed(levels) if row] or [["-"]]


def _cables(fabric: Fabric, places: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """One line for all cables between two switches; how many is told by its width and title."""
    pairs = Counter(tuple(sorted((cable.a, cable.b))) for cable in fabric.cables
                    if cable.a in places and cable.b in places)  # fmt: skip
    for (a, b), count in pairs.items():
        (low, high) = sorted((places[a], places[b]), key=lambda place: -place[1])
        path = f"M{num(low[0])} {num(low[1])}L{num(high[0])} {num(high[1] + HIGH)}"
        line = tag("path", d=path, fill="none", stroke="#0072B2",
                   stroke_width=num(1 + min(count, 18) / 6))  # fmt: skip
        yield titled(f"{fabric.switches[a]} - {fabric.switches[b]}: x{count}", line)


def _switch(fabric: Fabric, name: str, x: float, y: float) -> str:
    hosts = fabric.hosts.get(name, ())
    title = fabric.switches.get(name, name)
    parts = _box(x, y, title[:LETTERS], "", title)
    if hosts:
        text = compressed(hosts[:MOST])
        parts += _box(x, y + HIGH + GAP, text[:LETTERS], f"({len(hosts)})", text)
    return parts


def _box(x: float, y: float, text: str, small: str, title: str) -> str:
    shape = tag("rect", x=num(x - WIDE / 2), y=num(y), width=num(WIDE), height=num(HIGH), rx=5,
                class_="rl-cell")  # fmt: skip
    lines = label(x, y + (13 if small else 20), text, 11, "middle")
    lines += label(x, y + 29, small, 10, "middle", "rl-soft") if small else ""
    return titled(title, shape + lines)
