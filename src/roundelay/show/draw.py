"""Shapes, colours and text of an SVG picture, as strings."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Final

PALETTE: Final = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#9A8700")
"""Okabe and Ito's colours, told apart by colour-blind readers too; the yellow darkened to be
seen as a line. Pieces beyond the seventh begin again: their number tells them apart."""

MARGIN: Final = 24.0
"""Between the picture's edge and what is in it."""
HEAD: Final = 6.0
"""Length of an arrow's head."""

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
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return size * (wide + 0.54 * (len(text) - wide))


def wrapped(text: str, width: float, size: float) -> list[str]:
    """The text in lines of at most `width`, broken at spaces and between wide characters."""
    lines, line = [], ""
    for part in _parts(text):
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


def page(
    size: tuple[float, float], title: str, subtitle: str, description: str, body: Iterable[str]
) -> str:
    """The whole picture, on a card of its own so that it can be read on any background."""
    width, height = size
    box = f'width="{num(width)}" height="{num(height)}" viewBox="0 0 {num(width)} {num(height)}"'
    card = tag("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=10, class_="rl-card")
    inside = "\n".join(
        [
            card,
            label(MARGIN, 30, title, 17, font_weight="bold"),
            label(MARGIN, 54, subtitle, 12, look="rl-soft"),
            *body,
        ]
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" {box}>\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n"
        f"<style>{STYLE}</style>\n{inside}\n</svg>\n"
    )


def _value(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else num(value)


def _parts(text: str) -> list[str]:
    """The smallest parts that a line may be broken between."""
    parts: list[str] = []
    for c in text:
        wide = unicodedata.east_asian_width(c) in "WF"
        closing = c in "，。；：、）！？"
        new = not parts or parts[-1].endswith(" ") or wide or _ends_wide(parts[-1])
        if new and not closing and parts:
            parts.append(c)
        elif parts:
            parts[-1] += c
        else:
            parts.append(c)
    return parts


def _ends_wide(part: str) -> bool:
    return unicodedata.east_asian_width(part[-1]) in "WF"
