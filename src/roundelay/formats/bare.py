"""A line of a log without what terminals, launchers and people put before it."""

from __future__ import annotations

import re
from typing import Final

from .plain import RAW_ESCAPES

LONGEST: Final = 2000
"""Bytes of a line that are looked at."""
_HEAD: Final = re.compile(
    r"(?:>\s?|\[\d{1,7},\d{1,7}\]<std\w{3}>: ?|\[(?:default|rank)?\d{1,7}\]:\s?|\d{1,7}: +|"
    r"\(\w{1,60}(?:[ _]\w{1,40}){0,3} pid=\d{1,9}[^()\n]{0,80}\)\s?|"
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]{0,12}Z?(?:[+-]\d\d:?\d\d)?\s+|"
    r"[\w.-]{1,60} +\| )"
)
_RANK: Final = re.compile(
    r"\[(?:default|rank)(\d{1,7})\]|\[Rank (\d{1,7})\]|Rank (\d{1,7})\]|\[\d{1,7},(\d{1,7})\]<|"
    r"^(\d{1,7}): "
)
HEADS: Final = 6
"""Such heads of one line, at most."""


def bare(raw: bytes) -> str:
    """The text of a line, without colours, marks of quotation and heads of launchers."""
    return headless(plain(raw))


def plain(raw: bytes) -> str:
    """The text of a line, without colours."""
    raw = raw[:LONGEST]
    if b"\x1b" in raw:
        raw = RAW_ESCAPES.sub(b"", raw)
    return raw.decode("utf-8", "replace").rstrip()


def headless(text: str) -> str:
    """The text without heads of launchers."""
    at = 0
    for _ in range(HEADS):
        found = _HEAD.match(text, at)
        if found is None:
            break
        at = found.end()
    return text[at:]


def rank_of(raw: bytes) -> int | None:
    """The rank that a head names; None where none does."""
    found = _RANK.search(plain(raw)[:200])
    return int(next(filter(None, found.groups()))) if found else None
