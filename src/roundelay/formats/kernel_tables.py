"""Tables of kernels: `nsys stats`, torch's key_averages().table(), and HTA's shares of time."""

from __future__ import annotations

import csv
import re
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .pasted import number_in, pasted_lines

_RULE: Final = re.compile(r"^\s*-{3,}(?:\s+-{3,})+\s*$")
_SPLIT: Final = re.compile(r"\s{2,}|\t")
_TIME: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) ?(ns|us|ms|s)")
_SCALE: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_NSYS: Final = ("Time (%)", "Time(%)")
_UNITS: Final = re.compile(r" ?\((ns|us|ms|s)\)$")
_NAMES: Final = {"Average": "Avg", "Median": "Med", "Minimum": "Min", "Maximum": "Max",
                 "Calls": "Instances", "Num Calls": "Instances", "Count": "Instances",
                 "Operations": "Instances"}  # fmt: skip
"""Heads of older versions, and those of today."""
_LAST: Final = re.compile(r"Name|Operation|Range")
_HTA: Final = ("compute_time(us)", "comp_time(us)", "idle_time(us)", "comp_comm_overlap_pctg",
               "compute_time_pctg", "idle_time_pctg")  # fmt: skip
_DEVICES: Final = ("Self CUDA", "Self XPU", "Self HIP", "Self PrivateUse1")
MOST: Final = 2**14
"""Rows."""


class Kernel(NamedTuple):
    """A row of a table; times in seconds, None where the table has none.

    Attributes:
        name: of the kernel.
        share: of the time of all, 0 to 1.
        total, calls: of all its calls, and how many.
        median, least, most: of a call.
        line: where it stands.
    """

    name: str
    share: float
    total: float
    calls: int
    median: float | None
    least: float | None
    most: float | None
    line: int


class Shares(NamedTuple):
    """What HTA tells of a rank, by the names of its columns."""

    rank: int
    values: dict[str, float]
    line: int


class KernelTables(NamedTuple):
    """The rows of the tables of a text, and the tool: "nsys", "torch" or "hta".

    "nsys copies" and "nsys ranges" are its tables of copies and of what a program has marked.
    """

    tool: str
    kernels: tuple[Kernel, ...]
    shares: tuple[Shares, ...]


def read_kernel_tables(data: bytes) -> KernelTables:
    """The first table of a text.

    Raises:
        RoundelayError: there is none with a row.
    """
    lines = list(pasted_lines(data))
    for at, (_, line) in enumerate(lines):
        heads = _cells(line)
        rows = lines[at + 1 : at + 1 + MOST]
        if heads[:1] and heads[0] in _NSYS and (of := _LAST.search(heads[-1])):
            kernels = [_nsys(heads, line, number) for number, line in rows]
            tool = {"Operation": "nsys copies", "Range": "nsys ranges"}.get(of[0], "nsys")
        elif heads[:1] == ["Name"] and any(head.startswith("Self C") for head in heads):
            kernels = [_torch(heads, line, number) for number, line in rows]
            tool = "torch"
        elif "rank" in heads[:2] and set(_HTA) & set(heads):
            shares = [_hta(heads, line, number) for number, line in rows]
            if any(shares):
                return KernelTables("hta", (), tuple(filter(None, shares)))
            continue
        else:
            continue
        if found := tuple(filter(None, kernels)):
            return KernelTables(tool, found, ())
    raise RoundelayError("no table of kernels; expected that of nsys stats (Time (%), ...), of "
                         "key_averages().table() (Name, Self CPU %, ...), or of HTA")  # fmt: skip


def _cells(raw: str) -> list[str]:
    """The cells of a row: between bars or commas, else between wide gaps."""
    line = raw.strip().lstrip("#/").strip()
    if line.startswith("|"):
        return [cell.strip() for cell in line.strip("|").split("|")]
    if line.count(",") > 4 and "  " not in line:
        try:
            return next(csv.reader([line], skipinitialspace=True), [])
        except csv.Error:
            return []
    return [cell for cell in _SPLIT.split(line) if cell]


def _nsys(heads: list[str], line: str, number: int) -> Kernel | None:
    cells = line.strip().split(None, len(heads) - 1)
    if len(cells) < len(heads) or number_in(cells[1]) is None:
        cells = _cells(line)
    units = [found[1] if (found := _UNITS.search(head)) else "ns" for head in heads]
    plain = [_UNITS.sub("", head) for head in heads]
    named = [_NAMES.get(head, head) for head in plain]
    values = {head: (number_in(cell), _SCALE[unit])
              for head, cell, unit in zip(named, cells, units, strict=False)}  # fmt: skip
    share = number_in(cells[0]) if cells else None
    total, calls = _seconds(values.get("Total Time")), values.get("Instances", (None, 1.0))[0]
    if share is None or total is None or calls is None or len(cells) < len(heads):
        return None
    middle, least, most = (_seconds(values.get(name)) for name in ("Med", "Min", "Max"))
    return Kernel(cells[len(heads) - 1][:300], share / 100, total, int(calls), middle, least, most,
                  number)  # fmt: skip


def _seconds(value: tuple[float | None, float] | None) -> float | None:
    return None if value is None or value[0] is None else value[0] * value[1]


def _torch(heads: list[str], line: str, number: int) -> Kernel | None:
    cells = _cells(line)
    if len(cells) != len(heads):
        return None
    values = dict(zip(heads, cells, strict=True))
    device = next((head for head in heads if head in _DEVICES), None)
    share = number_in(values.get(f"{device} %", ""))
    total = _TIME.fullmatch(values.get(device or "", ""))
    calls = number_in(values.get("# of Calls", ""))
    if share is None or total is None or calls is None:
        return None
    seconds = float(total[1]) * _SCALE[total[2]]
    return Kernel(cells[0][:300], share / 100, seconds, int(calls), None, None, None, number)


def _hta(heads: list[str], line: str, number: int) -> Shares | None:
    cells = _cells(line)
    if len(cells) == len(heads) + 1:  # pandas puts the row's number in front
        cells = cells[1:]
    if len(cells) != len(heads):
        return None
    values = {head: number_in(cell) for head, cell in zip(heads, cells, strict=True)}
    rank = values.pop("rank", None)
    known = {name: value for name, value in values.items() if value is not None}
    if rank is None or not known or not 0 <= rank < 2**31:
        return None
    return Shares(int(rank), known, number)
