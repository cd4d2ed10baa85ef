"""Tables that people make from a profile: names, counts, and a duration with its unit in the head.

Such as `| Name | Count | Duration s |` in Markdown; no tool fixes their form, so only what the
heads say is taken.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .pasted import number_in, pasted_lines

_NAME: Final = re.compile(
    r"^(?:kernel(?: name)?|name|metric|op(?:eration)?|api|function|event)$", re.I
)
_COUNT: Final = re.compile(
    r"^(?:#?(?:of )?(?:count|calls|instances|invocations|launches)|n|#)$", re.I
)
_TIME: Final = re.compile(
    r"^(?:(?:total|sum|gpu|cuda|self)[ _]?){0,3}(?:duration|time|total|sum)?[ _]?"
    r"\(?(ns|us|ms|s|sec)\)?$",
    re.I,
)
_BYTES: Final = re.compile(r"\bbytes ?[=:] ?(\d{1,18})\b")
_SCALE: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
MOST: Final = 2**14
"""Rows."""


class Row(NamedTuple):
    """A row: seconds of all its calls together, and bytes where a cell has bytes=..., else 0."""

    name: str
    calls: int
    seconds: float
    size: int
    table: int
    line: int


def read_profile_summary(data: bytes) -> tuple[Row, ...]:
    """The rows of all such tables, numbered from 0.

    Raises:
        RoundelayError: there is none with a row.
    """
    found: list[Row] = []
    at: tuple[int, int, int, float] | None = None
    table = -1
    for number, line in pasted_lines(data):
        cells = _cells(line)
        if len(cells) < 3:
            at = None
        elif (heads := _heads(cells)) is not None:
            at, table = heads, table + 1
        elif at and len(found) < MOST and (row := _row(cells, at, table, number)):
            found.append(row)
    if not found:
        raise RoundelayError("no table with a name, a count and a duration with its unit")
    return tuple(found)


def _cells(line: str) -> list[str]:
    plain = line.strip()
    if plain[:1] != "|":
        return []
    return [cell.strip().strip("`*").strip() for cell in plain.strip("|").split("|")]


def _heads(cells: list[str]) -> tuple[int, int, int, float] | None:
    """Columns of the name, the count and the time, and the time's unit in seconds."""
    name = next((i for i, cell in enumerate(cells) if _NAME.match(cell)), None)
    count = next((i for i, cell in enumerate(cells) if _COUNT.match(cell)), None)
    time = next(((i, m) for i, cell in enumerate(cells) if (m := _TIME.match(cell))), None)
    if name is None or count is None or time is None:
        return None
    return name, count, time[0], _SCALE[time[1][1].lower()]


def _row(cells: list[str], at: tuple[int, int, int, float], table: int, line: int) -> Row | None:
    name, count, time, unit = at
    if len(cells) <= max(name, count, time):
        return None
    calls, took = (number_in(cells[i]) for i in (count, time))
    if calls is None or took is None or min(calls, took) < 0 or not cells[name]:
        return None
    size = next((int(m[1]) for cell in cells if (m := _BYTES.search(cell))), 0)
    return Row(cells[name][:300], int(calls), took * unit, size, table, line)
