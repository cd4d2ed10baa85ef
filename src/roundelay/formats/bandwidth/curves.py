"""Tables with a column of sizes, and rates or times beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ...units import UnitError, parse_size
from .measured import Curve, Point, What

ROWS: Final = 10**4
"""Of a table, that are kept."""
_UNIT: Final = re.compile(
    r"[\[(]?\b(GB/s(?:ec)?|GBps|Gb/s(?:ec)?|Gbps|MB/s(?:ec)?|MiB/s(?:ec)?|usec|us|ms)\b[\])]?$|"
    r"\b(?:BW|bandwidth) (GB/sec)\b",
    re.I,
)
_WORTH: Final = {"gb/s": 1.0, "gbps": 1.0, "mb/s": 1e-3, "mib/s": 1.048576e-3}
_SIZE: Final = re.compile(
    r"#? ?(?:(?:message |transfer |data )?(?:size|payload|bytes)s?\b|#bytes)", re.I
)
_VALUE: Final = re.compile(
    r"(\d{1,15}(?:\.\d{0,9})?(?:e[-+]\d{1,3})?) ?(usec|us|ms|s|GB/s|GBps|Gbps|MB/s)?", re.I
)
_SPLIT: Final = re.compile(r" {2,}|\t+| *\| *")
_PERFTEST: Final = re.compile(r"#bytes +#iterations", re.I)
_NAMED: Final = (("#iterations", "perftest"), ("payload", "all_reduce_bench"),
                 ("correctness", "MSCCL++"), ("t_avg", "oneCCL"))  # fmt: skip
"""Programs that print no title, by a column."""
_NCCL: Final = re.compile(r"\btime\b.*\bbusbw\b|\bredop\b", re.I)
"""The table of nccl-tests, which has a reader of its own."""
_RANKS: Final = re.compile(r"\bon (\d{1,7}) (?:devices|gpus|ranks)|\b(\d{1,7}) ranks\b", re.I)
_TITLE: Final = re.compile(
    r"OSU MPI\S* [\w -]{1,60}|\b(?:RDMA_\w+|Send|Atomic\w*) (?:BW|Latency|Bidirectional BW) Test|"
    r"Performance of \w+ on \d+ \w+|(?:Host|Device) to (?:Host|Device) Bandwidth|"
    r"\b(?:shmem|nvshmem)_\w{2,40}|\ball_?(?:reduce|gather|to_?all)\w*\b|\breduce_scatter\b", re.I
)  # fmt: skip


class Column(NamedTuple):
    """A column that is read.

    Attributes:
        kind: rate, bus, other or time.
        worth: of a number without a unit, in GB/s or microseconds.
    """

    kind: str
    worth: float


class Curves:
    """Takes lines one by one."""

    def __init__(self) -> None:
        self._done: list[Curve] = []
        self._title = ""
        self._ranks: int | None = None
        self._columns: list[Column | None] = []
        self._header = (0, "")
        self._points: list[Point] = []

    def take(self, number: int, text: str) -> None:
        """A line: of a title, a header or a row."""
        plain = text.strip().strip("|").strip()
        if not plain or set(plain) <= set("-+=:| "):
            return
        if columns := _columns(plain):
            self._close()
            self._columns, self._header = columns, (number, plain)
            return
        point = self._row(number, plain) if self._columns else None
        if point is not None:
            if len(self._points) < ROWS:
                self._points.append(point)
            return
        if found := _TITLE.search(plain):
            self._close()
            self._title = found[0]
        if found := _RANKS.search(plain):
            self._ranks = int(found[1] or found[2])

    def done(self) -> tuple[Curve, ...]:
        """All tables with rows."""
        self._close()
        return tuple(self._done)

    def _row(self, number: int, plain: str) -> Point | None:
        cells = [cell for cell in _SPLIT.split(plain) if cell]
        if len(cells) != len(self._columns):
            cells = plain.split()
        size = _size(cells[0]) if cells else None
        if size is None or len(cells) < 2:
            return None
        values: dict[str, float] = {}
        for column, cell in zip(self._columns[1:], cells[1:], strict=False):
            if column is not None and (value := _value(cell, column)) is not None:
                values.setdefault(column.kind, value)
        if not values:
            return None
        return Point(number, plain[:200], size, values.get("rate"), values.get("bus"),
                     values.get("time"), values.get("other"))  # fmt: skip

    def _close(self) -> None:
        points, self._points = tuple(self._points), []
        columns, self._columns = self._columns, []
        if not points:
            return
        line, header = self._header
        title = self._title or next(
            (n for p, n in _NAMED if re.search(p, header, re.I)), "bandwidth"
        )
        self._done.append(Curve(line, title, _what(title, header, columns), points, self._ranks))


def _what(title: str, header: str, columns: Sequence[Column | None]) -> What:
    kinds = {column.kind for column in columns if column}
    if re.search(r"host to device|device to host|device to device", title, re.I):
        return "host"
    if "bus" in kinds or "other" in kinds or re.search(r"algbw|correctness", header, re.I):
        return "collective"
    return "wire" if "rate" in kinds else "latency"


def _columns(plain: str) -> list[Column | None]:
    """The columns that a header names; none if it is no header."""
    if _SIZE.match(plain) is None or _NCCL.search(plain):
        return []
    names = [name for name in _SPLIT.split(plain.lstrip("# ")) if name]
    if len(names) < 2:
        return []
    mebi = _PERFTEST.search(plain) is not None  # its MB is 2^20 bytes
    columns: list[Column | None] = [None]
    columns += [_column(name, mebi) for name in names[1:]]
    return columns if any(columns) else []


def _column(name: str, mebi: bool) -> Column | None:
    plain = name.lower().replace("time(", "time (")
    unit = _UNIT.search(name)
    other = plain.startswith("nccl")
    if re.search(r"\bpeak|t_max|t_stdev|percentile|max lat|min lat|t_typical", plain):
        return None
    bits = unit is not None and re.search(r"Gb/s|Gbps", unit[0]) is not None and "GB" not in unit[0]
    if "busbw" in plain:
        return Column("bus", 0.125 if bits else 1.0)
    if re.search(r"\bbw\b|bandwidth|algbw|throughput", plain):
        said = (unit[1] or unit[2]).lower().replace("sec", "s") if unit else "gb/s"
        worth = 0.125 if bits else _WORTH.get(said, 1.0)
        if mebi and said == "mb/s":
            worth = 1.048576e-3
        return Column("other" if other else "rate", worth)
    if unit and unit[0].lower().strip("[]()") in ("usec", "us", "ms"):
        return None if other else Column("time", 1e3 if "ms" in unit[0].lower() else 1.0)
    return Column("time", 1.0) if plain == "duration" else None


def _size(cell: str) -> int | None:
    try:
        return parse_size(cell.replace(" ", "")) if cell[:1].isdigit() else None
    except UnitError:
        number = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?) ?([KMGT])i?B", cell, re.I)
        if number is None:
            return None
        return int(float(number[1]) * 1024 ** " KMGT".index(number[2].upper()))


def _value(cell: str, column: Column) -> float | None:
    found = _VALUE.fullmatch(cell.strip())
    if found is None:
        return None
    number, unit = float(found[1]), (found[2] or "").lower()
    if not unit:
        return number * column.worth
    if column.kind == "time":
        return number * {"ms": 1e3, "s": 1e6}.get(unit, 1.0)
    bits = "Gb" in (found[2] or "") and "GB" not in (found[2] or "")
    return number * (0.125 if bits else _WORTH.get(unit, 1.0))
