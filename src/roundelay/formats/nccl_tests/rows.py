"""The grammar of a row: numbers tell what the columns are, and a header helps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Final, NamedTuple

from ...units import UnitError, parse_size
from .measured import Row, Timing

ITEM_BYTES: Final = MappingProxyType(
    dict.fromkeys(("int8", "char", "uint8", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2",
                   "float8_e4m3fn", "float8_e5m2"), 1)
    | dict.fromkeys(("half", "float16", "bfloat16", "int16", "uint16"), 2)
    | dict.fromkeys(("float", "float32", "int", "int32", "uint32"), 4)
    | dict.fromkeys(("double", "float64", "int64", "uint64", "complex64"), 8)
    | {"complex128": 16}
)  # fmt: skip
"""Bytes of an element, by the names that nccl-tests, rccl-tests and `roundelay bench` print."""
TIME_UNITS: Final = MappingProxyType({"us": 1.0, "ms": 1e3, "s": 1e6})
"""Microseconds."""

_SIZE: Final = r"\d+(?:\.\d+)?(?:[KMGT](?:i?B)?|B)?"
_HEAD: Final = re.compile(
    rf"(?<!\S)(?P<size>{_SIZE})\s+(?P<count>\d+)\s+(?P<dtype>{'|'.join(ITEM_BYTES)})(?!\S)"
    r"(?:\s+(?P<redop>[a-z]\w*)(?!\S))?"
)
_BARE: Final = re.compile(rf"\s*(?P<size>{_SIZE})(?!\S)")
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf|-?nan|n/?a|-", re.I)
ROUNDING: Final = (0.006, 0.02)
"""What a printed rate and size over printed time may differ by: GB/s, plus a share of the rate."""


class Columns(NamedTuple):
    """What a header says.

    Attributes:
        line: of the header; 0 where there is none.
        root: whether a root is printed.
        check: "wrong" for a count of wrong elements, "error" for the largest relative error,
            "" for neither.
        in_place: for each group of time, algbw and busbw, whether it is in place.
        unit: of the times, where it is said: a key of `TIME_UNITS`.
    """

    line: int
    root: bool
    check: str
    in_place: tuple[bool, ...]
    unit: str | None = None


class Shape(NamedTuple):
    """How the figures behind a row's type are to be read."""

    root: bool
    check: bool
    groups: int

    @property
    def cells(self) -> int:
        """How many figures."""
        return self.root + self.groups * (3 + self.check)


@dataclass
class Draft:
    """A row while its pieces come in."""

    line: int
    text: str
    size: int
    count: int | None
    dtype: str | None
    redop: str | None
    cells: list[str] = field(default_factory=list)


def is_figures(words: Sequence[str]) -> bool:
    """Whether these are figures only."""
    return bool(words) and all(_NUMBER.fullmatch(word) for word in words)


def begin(line: int, text: str, columns: Columns) -> Draft | None:
    """The row that begins in this line, if one does.

    Without a type and a header the figures themselves must prove that it is a row.
    """
    head = _HEAD.search(text)
    match = head or _BARE.match(text)
    size = match and _size(match["size"])
    if match is None or size is None:
        return None
    words = text[match.end() :].split()
    if head is not None:
        draft = Draft(line, text.strip(), size, int(head["count"]), head["dtype"], head["redop"])
        draft.cells = words
        return draft
    if not is_figures(words):
        return None
    drafts = [
        Draft(line, text.strip(), size, count, None, None, list(cells))
        for count, cells in ((None, words), (int(words[0]) if words[0].isdecimal() else None,
                                             words[1:]))
    ]  # fmt: skip
    shapes = [(draft, shape) for d in drafts if (shape := shape_of(draft := d, columns))]
    proved = (draft for draft, shape in shapes if _proves(draft, shape))
    return next(proved, shapes[0][0] if shapes and columns.line else None)


def _size(text: str) -> int | None:
    try:
        return parse_size(text)
    except UnitError:
        return None


def endless(draft: Draft) -> list[str]:
    """Figures of a row that are no finite number."""
    return [cell for cell in draft.cells if cell.lower().lstrip("-+") in ("nan", "inf")]


def wanted(columns: Columns) -> int:
    """Figures behind the type of a whole row under a header."""
    return Shape(columns.root, bool(columns.check), len(columns.in_place)).cells


def shape_of(draft: Draft, columns: Columns) -> Shape | None:
    """The shape that fits the figures; a header's goes first, then the one that agrees best.

    More figures than the shape has (rivals, pings) belong to others.
    """
    known = Shape(columns.root, bool(columns.check), len(columns.in_place))
    count = _leading(draft.cells)
    if columns.line:
        # A root may be lost to NCCL's log, and old versions print none for some collectives.
        shapes = [known, known._replace(root=False), known._replace(groups=1)]
        fitting = [s for s in shapes if count >= s.cells]
        return next((s for s in fitting if _agrees(draft, s)), fitting[0] if fitting else None)
    shapes = [Shape(*s) for s in product((True, False), (True, False), (2, 1))]
    fitting = [s for s in shapes if s.cells == count and _agrees(draft, s)]
    return max(fitting, key=lambda s: (_proves(draft, s), s.groups, s.check), default=None)


def _leading(cells: Sequence[str]) -> int:
    """Figures before the first word."""
    return next((i for i, c in enumerate(cells) if not _NUMBER.fullmatch(c)), len(cells))


def _groups(draft: Draft, shape: Shape) -> list[list[str]]:
    wide = 3 + shape.check
    cells = draft.cells[shape.root :]
    return [cells[i * wide : (i + 1) * wide] for i in range(shape.groups)]


def _agrees(draft: Draft, shape: Shape) -> bool:
    """Whether each rate may be size over time in some unit."""
    return all(
        any(_near(draft, group, unit) for unit in TIME_UNITS.values())
        for group in _groups(draft, shape)
    )


def _proves(draft: Draft, shape: Shape) -> bool:
    """Whether they agree by more than chance: some rate has two digits or more."""
    rates = [_figure(group[1]) for group in _groups(draft, shape)]
    return _agrees(draft, shape) and any(rate is not None and rate >= 0.1 for rate in rates)


def pieces_of(row: Draft | Row) -> float | None:
    """How many times the printed count makes up the size; None where that is not printed."""
    item = ITEM_BYTES.get(row.dtype or "")
    return row.size / (row.count * item) if item and row.count else None


def _bytes(row: Draft | Row) -> tuple[float, ...]:
    """Of which a rate may be told: of the size, and of what a rank sends.

    Of n pieces a rank sends n - 1, and by that nccl-tests of before 2020 reckon algbw where a
    collective has pieces (NVIDIA/nccl-tests issue 45).
    """
    pieces = pieces_of(row)
    return (row.size, row.size * (1 - 1 / pieces)) if pieces and pieces >= 2 else (row.size,)


def tells(row: Row, timing: Timing) -> bool:
    """Whether the rate is what size and time make it."""
    if not timing.time_us:
        return False
    return any(_close(b / timing.time_us / 1e3, timing.algbw) for b in _bytes(row))


def sent_only(row: Row) -> bool:
    """Whether algbw is reckoned of what a rank sends."""
    return any(
        not _close(row.size / timing.time_us / 1e3, timing.algbw) and tells(row, timing)
        for _, timing in row.timings()
        if timing.time_us
    )


def _close(found: float, said: float) -> bool:
    absolute, relative = ROUNDING
    return abs(found - said) <= absolute + relative * found


def _near(draft: Draft, group: Sequence[str], unit: float) -> bool:
    time, rate = _figure(group[0]), _figure(group[1])
    if time is None or rate is None:
        return time is None and rate is None
    if time <= 0:
        return False
    return any(_close(b / (time * unit * 1e3), rate) for b in _bytes(draft))


def unit_of(drafts: Sequence[tuple[Draft, Shape]]) -> str | None:
    """The unit of time in which the rates are size over time; None if they are too small to say."""
    votes = dict.fromkeys(TIME_UNITS, 0)
    for draft, shape in drafts:
        for group in _groups(draft, shape):
            if (_figure(group[1]) or 0.0) >= 0.1:
                for name, unit in TIME_UNITS.items():
                    votes[name] += _near(draft, group, unit)
    best = max(votes, key=votes.__getitem__)
    return best if votes[best] else None


def row(draft: Draft, shape: Shape, columns: Columns, unit: float) -> Row | None:
    """The row; None if no form of it was measured."""
    forms: dict[bool, Timing | None] = {}
    for in_place, group in zip(columns.in_place, _groups(draft, shape), strict=False):
        forms[in_place] = _timing(group, columns.check, unit)
    if not any(forms.values()):
        return None
    root = _figure(draft.cells[0]) if shape.root else None
    return Row(draft.line, draft.text, draft.size, draft.count, draft.dtype, draft.redop,
               None if root is None else int(root), forms.get(False), forms.get(True))  # fmt: skip


def _timing(group: Sequence[str], check: str, unit: float) -> Timing | None:
    time, algbw, busbw = map(_figure, group[:3])
    if time is None or algbw is None or busbw is None:
        return None
    text = group[3] if len(group) > 3 else ""
    value = _figure(text) if text else None
    counted = check == "wrong" if check else text.isdecimal()
    if value is None:
        return Timing(time * unit, algbw, busbw)
    if counted:
        return Timing(time * unit, algbw, busbw, wrong=int(value))
    return Timing(time * unit, algbw, busbw, error=value)


def _figure(text: str) -> float | None:
    """A number; None for N/A, and for what is not finite."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None
