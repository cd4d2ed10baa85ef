"""What `simulate` prints: nccl-tests' table of one cluster, or a line for each point of a sweep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..bench.table import us
from ..collectives import collective as find_collective
from ..units import format_size, format_time
from .base import say
from .output import table

Row = Mapping[str, Any]

PARTS: Final = {
    "latency_us": "latency",
    "wire_us": "wire",
    "reduce_us": "copying and adding",
    "wait_us": "waiting",
    "host_us": "launching",
}
"""The parts of a time, and what they are called."""
SPREAD: Final = {"p50_us": "p50", "p99_us": "p99", "p999_us": "p99.9", "expected_max_us": "E[max]"}
"""What is printed where times differ; the last is the slowest of 1,000 calls, in the mean."""
ITEM: Final = 4
"""Bytes of an element of the type that is printed, float."""

_HEAD: Final = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
_UNITS: Final = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "")
_WIDTHS: Final = (12, 14, 10, 8, 8, 9, 8, 8, 7)


def nccl_table(collective: str, root: int, rows: Sequence[Row]) -> str:
    """The rows of one cluster as nccl-tests prints them, and what is to be known of them."""
    good = [row for row in rows if "error" not in row]
    first = good[0]
    spread = SPREAD if first["p50_us"] is not None else {}
    lines = [
        f"# {collective}, n = {first['ranks']}",
        f"# {_where(first)}",
        "#",
        f"#{'out-of-place':>74}",
        _line("#", *_HEAD, *spread.values()) + "  algorithm",
        _line("#", *_UNITS, *["(us)"] * len(spread)),
        *(
            f"{_line('', *_cells(collective, root, row), *_times(row, spread))}  {_how(row)}"
            for row in good
        ),
        "#",
        *(f"# {note}" for note in _notes(rows)),
    ]
    return "\n".join(lines)


def _where(row: Row) -> str:
    return say("{cluster}, nodes: {nodes}, cards: {cards}; predicted, not measured",
               cluster=row["cluster"], nodes=f"{row['nodes']:,}",
               cards=f"{row['ranks']:,}")  # fmt: skip


def _line(begin: str, *cells: str) -> str:
    widths = (_WIDTHS[0] - len(begin), *_WIDTHS[1:], *[10] * (len(cells) - len(_WIDTHS)))
    padded = (f" {cell:>{width - 1}}" for cell, width in zip(cells, widths, strict=True))
    return (begin + "".join(padded)).rstrip()


def _cells(collective: str, root: int, row: Row) -> list[str]:
    kind, size = find_collective(collective), row["bytes"]
    pieces = row["ranks"] if kind.pieces and collective != "send_recv" else 1
    item = ITEM if size % (ITEM * pieces) == 0 else 1
    return [
        str(size), str(size // (item * pieces)), "float" if item > 1 else "uint8",
        "sum" if kind.sums else "none", str(root if kind.rooted else -1), us(row["time_us"]),
        f"{row['algbw_GBps']:.2f}", f"{row['busbw_GBps']:.2f}", "N/A",
    ]  # fmt: skip


def _times(row: Row, names: Mapping[str, str]) -> list[str]:
    return [us(row[name]) for name in names]


def _how(row: Row) -> str:
    channels = say("channels: {n}", n=row["channels"]) if row["channels"] else ""
    return ", ".join(filter(None, [row["algorithm"], row["protocol"], channels]))


def sweep_table(rows: Sequence[Row]) -> str:
    """A line for each point of a sweep."""
    keys = list(rows[0]["swept"])
    spread = {key: name for key, name in SPREAD.items() if any(row.get(key) for row in rows)}
    head = [*map(say, keys), say("size"), "us", *spread.values(), "algbw, GB/s", "busbw, GB/s",
            say("algorithm"), say("protocol"), say("the busiest link")]  # fmt: skip
    right = "".join(chr(ord("a") + i) for i in range(len(keys), len(keys) + 4 + len(spread)))
    right += "".join(chr(ord("a") + i) for i, key in enumerate(keys) if _numbers(rows, key))
    lines = [table(head, [_point(row, keys, spread) for row in rows], right), ""]
    return "\n".join([*lines, *_left_out(rows)]).rstrip()


def _numbers(rows: Sequence[Row], key: str) -> bool:
    return not isinstance(rows[0]["swept"][key], str)


def _point(row: Row, keys: Sequence[str], spread: Mapping[str, str]) -> list[str]:
    values = [row["swept"][key] for key in keys]
    shown = [f"{v:,}" if isinstance(v, int) else f"{v:g}" if isinstance(v, float) else v
             for v in values]  # fmt: skip
    shown.append(format_size(row["bytes"]))
    if "error" in row:
        return [*shown, *["-"] * (6 + len(spread))]
    rates = [f"{row[name]:.2f}" for name in ("algbw_GBps", "busbw_GBps")]
    words = [row["algorithm"], row["protocol"], row["binding_link"]]
    return [*shown, us(row["time_us"]), *_times(row, spread), *rates, *words]


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    good = [row for row in rows if "error" not in row]
    last = good[-1]
    shares = ", ".join(f"{say(name)} {format_time(last[part] * 1e-6)}"
                       for part, name in PARTS.items() if last[part] > 1e-9)  # fmt: skip
    yield say("the last line: {parts}; the busiest link: {link}", parts=shares,
              link=last["binding_link"] or "-")  # fmt: skip
    for row in {r["bytes"]: r for r in (good[0], last)}.values():
        if row["error_band"] and row["time_us"]:
            low, high = (f"{t / row['time_us']:.2g}" for t in row["error_band"])
            yield say("measured times of {size} are expected between {low} and {high} times these",
                      size=format_size(row["bytes"]), low=low, high=high)  # fmt: skip
    if any(row["bytes"] and row["bytes"] % 1000 == 0 for row in rows):
        yield say("KB, MB and GB are powers of 1000; nccl-tests' 1G is 1 GiB, 1.07 GB")
    yield from _left_out(rows)


def _left_out(rows: Sequence[Row]) -> Iterator[str]:
    """Points without an answer, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if "error" in row:
            reason = re.sub(r"^<.*?> ", "", row["error"])  # the schedule is told by the point
            point = " ".join(str(value) for value in row["swept"].values())
            reasons.setdefault(reason, []).append(point or format_size(row["bytes"]))
    for reason, found in reasons.items():
        names = list(dict.fromkeys(found))
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        yield say("no answer for {points}: {reason}", points=shown, reason=reason)
