"""How wide text is where Chinese characters take two columns."""

from __future__ import annotations

import unicodedata


def width(text: str) -> int:
    """Columns the text takes on a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, columns: int, left: bool = False) -> str:
    """The text with spaces behind it, or to its left, to take that many columns."""
    space = " " * (columns - width(text))
    return space + text if left else text + space
