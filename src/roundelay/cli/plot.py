"""Rows of `simulate` as a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..bench.table import us
from ..errors import RoundelayError
from ..sweep.chart import Chart, Line, Scale, Spot
from ..units import format_size, format_time
from .base import say

Row = Mapping[str, Any]

ACROSS: Final = {"nodes": "nodes", "ranks": "cards", "straggler": "times slower"}
"""What times are drawn against where it is swept, the first of these; and its title."""
MOST_LINES: Final = 40
"""Lines of a chart."""


def check(rows: Sequence[Row]) -> None:
    """Refuse what cannot be drawn, before anything is asked.

    Args:
        rows: with `bytes` and what is swept.

    Raises:
        RoundelayError: too many lines.
    """
    count = len(set(_names(rows, _across(rows))))
    if count > MOST_LINES:
        raise RoundelayError(f"a picture of {count} lines; expected at most {MOST_LINES}: sweep "
                             "fewer things at once, or give fewer --sizes")  # fmt: skip


def chart(collective: str, rows: Sequence[Row]) -> Chart:
    """Times against what is swept, or busbw against size where that is all that differs.

    Args:
        collective: its name.
        rows: those that have an answer, and are of more than 0 bytes, are drawn.

    Raises:
        RoundelayError: there is none.
    """
    key = _across(rows)
    lines: dict[str, list[Row]] = {}
    for name, row in zip(_names(rows, key), rows, strict=True):
        if "error" not in row and row["time_us"] and (key or row["bytes"]):
            lines.setdefault(name, []).append(row)
    if not lines:
        raise RoundelayError("nothing to draw: no size above 0 has an answer")
    alone = len(lines) == 1
    drawn = [_line(name, found, key, alone) for name, found in lines.items()]
    if key:
        x = Scale(say(ACROSS[key]), key != "straggler", "{:,g}".format)
        y = Scale(say("time of a call"), True, lambda value: format_time(value * 1e-6))
    else:
        x = Scale(say("size"), True, lambda value: format_size(int(value)))
        y = Scale(say("busbw, GB/s one way"), False, "{:,g}".format)
    ordered = bool(key) and len(lines) == len({row["bytes"] for row in rows})
    return Chart(_title(collective, rows), _about(rows, alone), x, y, drawn, ordered)


def _across(rows: Sequence[Row]) -> str:
    return next((key for key in ACROSS if len(_values(rows, key)) > 1), "")


def _values(rows: Sequence[Row], key: str) -> list[Any]:
    found = (row["bytes"] if key == "bytes" else row["swept"].get(key) for row in rows)
    return list(dict.fromkeys(found))


def _names(rows: Sequence[Row], key: str) -> list[str]:
    """Of each row, the name of its line: all that differs beside what it is drawn against."""
    keys = [k for k in rows[0]["swept"] if k != key and len(_values(rows, k)) > 1]
    sizes = bool(key) and len(_values(rows, "bytes")) > 1
    return [", ".join([*_words(row, keys), *([format_size(row["bytes"])] if sizes else [])])
            for row in rows]  # fmt: skip


def _words(row: Row, keys: Iterable[str]) -> Iterable[str]:
    for key in keys:
        value = row["swept"][key]
        yield value if isinstance(value, str) else f"{say(ACROSS[key])} {value:,g}"


def _line(name: str, rows: Sequence[Row], key: str, alone: bool) -> Line:
    median = "p50_us" if key and rows[0]["p50_us"] is not None else "time_us"
    spots = [Spot(row["swept"][key] if key else row["bytes"],
                  row[median] if key else row["busbw_GBps"], _said(name, row, key))
             for row in rows]  # fmt: skip
    if not alone:
        return Line(name, spots)
    if median == "p50_us":
        return Line(name, spots, [row["p50_us"] for row in rows], [row["p99_us"] for row in rows])
    bands = [row["error_band"] or [row["time_us"]] * 2 for row in rows]
    if key:
        low, high = zip(*bands, strict=True)
    else:
        pairs = zip(rows, bands, strict=True)
        rates = [[r["busbw_GBps"] * r["time_us"] / t for t in band] for r, band in pairs]
        high, low = zip(*rates, strict=True)
    return Line(name, spots, low, high)


def _said(name: str, row: Row, key: str) -> str:
    words = [name, f"{say(ACROSS[key])} {row['swept'][key]:,g}" if key else "",
             format_size(row["bytes"]), f"{us(row['time_us'])} us",
             f"{row['busbw_GBps']:.2f} GB/s", row["algorithm"], row["protocol"]]  # fmt: skip
    return ", ".join(dict.fromkeys(filter(None, words)))


def _title(collective: str, rows: Sequence[Row]) -> str:
    """What all rows have in common."""
    words = [collective]
    if len(sizes := _values(rows, "bytes")) == 1:
        words.append(format_size(sizes[0]))
    if len(clusters := {row["cluster"] for row in rows}) == 1:
        words.append(clusters.pop())
    if len(ranks := {row["ranks"] for row in rows}) == 1:
        words.append(say("{n} cards", n=f"{ranks.pop():,}"))
    return ", ".join(words)


def _about(rows: Sequence[Row], alone: bool) -> str:
    good = next(row for row in rows if "error" not in row)
    if not alone:
        return say("predicted, not measured")
    if good["p50_us"] is not None and _across(rows):
        return say("predicted: the median, shaded up to p99")
    if good["error_band"]:
        return say("predicted; measured ones are expected where it is shaded")
    return say("predicted, not measured")
