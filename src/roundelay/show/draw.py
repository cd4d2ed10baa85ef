"""Shapes, colours and text of an SVG picture, as strings, and the frame of a picture."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from html import escape
from typing import ClassVar, Final

from ..i18n import Translate
from ..schedule import Schedule
from . import words
from .columns import width as columns
from .frames import Frame

WIDTH: Final = 1320.0
"""Width that a picture keeps within, if it can."""

PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#9A8700")
"""Okabe and Ito's colours, told apart by colour-blind readers too; the yellow darkened to be
seen as a line. Pieces beyond the seventh begin again: their number tells them apart."""

MARGIN: Final = 24.0
"""Between the picture's edge and what is in it."""
HEAD: Final = 6.0
"""Length of an arrow's head."""
BREAK: Final = re.compile("(?:(?<=[ ⺀-￯])|(?=[⺀-￯]))(?![，。；：、）！？])")
"""Where a line may be broken: at spaces and wide characters, not before what closes."""

STYLE: Final = """
.rl-card{fill:#fff;stroke:#d0d7de}
.rl-text{fill:#1f2328;font-family:"Noto Sans","Noto Sans CJK SC",system-ui,sans-serif}
.rl-soft{fill:#57606a}
.rl-cell{fill:#fff;stroke:#8c959f}
.rl-band{fill:#8c959f;fill-opacity:.14}
.rl-line{stroke:#8c959f;stroke-opacity:.5}
.rl-done{fill:none;stroke:#1f2328;stroke-width:2.4}
.rl-tick{fill:none;stroke:#1f2328;stroke-width:2.2;stroke-linecap:round;stroke-linejoin:round}
.rl-held{fill-opacity:.5}
.rl-move{fill:none}
.rl-copy{stroke-dasharray:5 3.5}
.rl-dot{stroke-linecap:round}
.rl-rim{stroke:#8c959f}
.rl-hole{stroke:#fff}
.rl-part{stroke:#0072B2}
.rl-full{stroke:#1f2328}
@media (prefers-color-scheme:dark){
.rl-card{fill:#16191e;stroke:#3d444d}
.rl-text{fill:#e6edf3}
.rl-soft{fill:#a5adb6}
.rl-cell{fill:#16191e;stroke:#6e7681}
.rl-done,.rl-tick{stroke:#f0f3f6}
.rl-hole{stroke:#16191e}
.rl-part{stroke:#56B4E9}
.rl-full{stroke:#f0f3f6}
}
"""


def num(x: float) -> str:
    """A coordinate, to a tenth."""
    return f"{x:.1f}".removesuffix(".0")


def tag(name: str, content: str = "", /, **attributes: str | float) -> str:
    """An element; ``_`` in a name of an attribute stands for ``-``, and one at the end for none."""
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{listed}>{content}</{name}>" if content else f"<{name}{listed}/>"


def titled(title: str, content: str) -> str:
    """A group that shows `title` where one points at it."""
    return f"<g>{tag('title', escape(title))}{content}</g>"


def label(
    x: float, y: float, text: str, size: float = 11, anchor: str = "start", look: str = "",
    **more: str | float,
) -> str:  # fmt: skip
    """A line of text; `y` is where its middle is."""
    classes = f"rl-text {look}".strip()
    return tag("text", escape(text), x=x, y=y + size * 0.35, font_size=size, text_anchor=anchor,
               class_=classes, **more)  # fmt: skip


def paragraph(x: float, y: float, lines: Iterable[str], size: float = 11, look: str = "") -> str:
    """Lines of text from `y` down."""
    return "".join(
        label(x, y + (i + 0.5) * leading(size), line, size, look=look)
        for i, line in enumerate(lines)
    )


def leading(size: float) -> float:
    """From one line of text to the next."""
    return round(1.35 * size, 1)


def measure(text: str, size: float) -> float:
    """About how wide the text is, in the fonts it may be shown in."""
    wide = columns(text) - len(text)
    return size * (wide + 0.54 * (len(text) - wide))


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text in lines of at most `width`, broken at spaces and between wide characters."""
    lines, line = [], ""
    for part in BREAK.split(text):
        if line and measure((line + part).rstrip(), size) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
    return [*lines, line.rstrip()]


def arrow(x0: float, y0: float, turn: tuple[float, float], x1: float, y1: float) -> tuple[str, str]:
    """An arrow to the right that changes height between the two `turn`s: its line and its head."""
    a, b = turn
    middle = (a + b) / 2
    tip = x1 - HEAD + 1
    line = (
        f"M{num(x0)} {num(y0)}H{num(a)}C{num(middle)} {num(y0)} {num(middle)} {num(y1)} "
        f"{num(b)} {num(y1)}H{num(tip)}"
    )
    back, half = x1 - HEAD, HEAD / 2
    head = f"M{num(back)} {num(y1 - half)}L{num(x1)} {num(y1)}L{num(back)} {num(y1 + half)}Z"
    return line, head


def stroke(line: str, colour: str, thick: float, add: bool) -> str:
    """A move's line: unbroken where it is added, dashed where it is copied."""
    look = "rl-move" if add else "rl-move rl-copy"
    return tag("path", d=line, stroke=colour, stroke_width=thick, class_=look)


def tick(x: float, y: float, scale: float = 1) -> str:
    """A tick, drawn so that no font need have one."""
    across, down = 5.0 * scale, 4.0 * scale
    way = (
        f"M{num(x - across)} {num(y)}L{num(x - across / 4)} {num(y + down)}"
        f"L{num(x + across)} {num(y - down)}"
    )
    return tag("path", d=way, class_="rl-tick")


def sample(colour: str, add: bool) -> tuple[str, float]:
    """An arrow for a legend, and how wide it is."""
    line, head = arrow(0, 0, (10, 14), 34, 0)
    return stroke(line, colour, 1.9, add) + tag("path", d=head, fill=colour), 34


def legend(y: float, keys: Iterable[tuple[tuple[str, float], str]]) -> tuple[str, float]:
    """Drawings with their widths, and what they mean, side by side; and where they end."""
    parts, x = "", MARGIN
    for (drawn, width), meaning in keys:
        parts += tag("g", drawn, transform=f"translate({num(x)} {num(y)})")
        parts += label(x + width + 8, y, meaning, 11)
        x += width + 8 + measure(meaning, 11) + 24
    return parts, x - 24


class Picture(ABC):
    """A schedule's picture: title, purpose and legend above what is drawn, the outcome below."""

    name_gap: ClassVar[float]
    """Between the longest name of a rank or switch and what is drawn."""
    colours: ClassVar[tuple[str, str]]
    """Of moves that are copied, and of those that are added, in the legend."""

    def __init__(self, schedule: Schedule, seen: list[Frame], tell: Translate):
        self.schedule, self.seen, self.tell = schedule, seen, tell
        self.names = words.places(schedule, tell)
        self.left = MARGIN + max(measure(name, 12) for name in self.names) + self.name_gap

    @abstractmethod
    def drawn(self, right: float) -> tuple[list[str], float]:
        """What is drawn in between, and where it ends."""

    @abstractmethod
    def right(self) -> float:
        """Right end of what is drawn."""

    @abstractmethod
    def told(self) -> list[str]:
        """What happens, for who cannot see the picture."""

    def keys(self) -> Iterator[tuple[tuple[str, float], str]]:
        """The signs in the picture with their widths, and what they mean."""
        for add in sorted({move.add for frame in self.seen for move in frame.moves}, reverse=True):
            said = self.tell("is added") if add else self.tell("is copied")
            yield sample(self.colours[add], add), said

    def svg(self) -> str:
        """The whole, on a card of its own so that it can be read on any background."""
        title, aim, closing = (
            said.tell(self.tell)
            for said in (
                words.title(self.schedule),
                words.purpose(self.schedule),
                words.outcome(self.schedule, self.seen[-1].counts),
            )
        )
        legends, right = legend(80, self.keys())
        right = max(right, MARGIN + measure(title, 18), self.right())
        drawn, end = self.drawn(right)
        width, height = num(right + MARGIN), num(end + 26)
        inside = "\n".join(
            [
                tag("rect", x=0.5, y=0.5, width=right + MARGIN - 1, height=end + 25, rx=10,
                    class_="rl-card"),
                label(MARGIN, 30, title, 17, font_weight="bold"),
                label(MARGIN, 54, aim, 12, look="rl-soft"),
                legends,
                *drawn,
                label(MARGIN, end, closing, 12, font_weight="bold"),
            ]
        )  # fmt: skip
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
            f"<title>{escape(title)}</title>\n"
            f"<desc>{escape(' '.join([*self.told(), closing]))}</desc>\n"
            f"<style>{STYLE}</style>\n{inside}\n</svg>\n"
        )


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else num(value)
