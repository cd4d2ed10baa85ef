"""Lines as they stood on the terminal, out of what people have pasted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .plain import ESCAPES, text_of

_QUOTE: Final = re.compile(r"^(?:> ?)+")
LONGEST: Final = 4096
"""Characters of a line that are looked at."""
MOST: Final = 2**20
"""Lines."""


_LOGGED: Final = re.compile(r"^.{0,400}?CCL INFO(?=\s+<)|^(?!\s*<).*$", re.M)
"""What stands before XML in a log, and lines that have none."""


def without_prefixes(data: bytes) -> bytes:
    """XML that a log has line by line, behind its prefixes; other lines stay as empty ones."""
    return _LOGGED.sub("", text_of(data)).encode("utf-8", "replace")


def pasted_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Each line and its number, without colours and marks of quotation; tabs stay."""
    for number, raw in enumerate(text_of(data).split("\n")[:MOST], 1):
        yield number, _QUOTE.sub("", ESCAPES.sub("", raw[:LONGEST])).rstrip()


def number_in(cell: str) -> float | None:
    """The number in a table's cell, such as "1,234.5" or "12 %"; None where there is none."""
    plain = cell.replace(",", "").rstrip("% ")
    try:
        value = float(plain) if len(plain) < 40 else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < 1e18 else None
