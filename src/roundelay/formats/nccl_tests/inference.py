"""Which collective, and over how many ranks, if the text does not say: the figures tell.

The bus bandwidth is the algorithm bandwidth times a factor of the collective and the number of
ranks n: 2(n-1)/n for all_reduce, (n-1)/n for those that move one piece from or to every rank, and 1
for those that move all of the data once (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, floor, inf
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from .measured import Row, Timing
from .rows import pieces_of, sent_only

PROGRAMS: Final = MappingProxyType(
    {
        "all_reduce": "all_reduce",
        "all_gather": "all_gather",
        "alltoall": "all_to_all",
        "alltoallv": "all_to_all",
        "broadcast": "broadcast",
        "gather": "gather",
        "reduce": "reduce",
        "reduce_scatter": "reduce_scatter",
        "scatter": "scatter",
        "sendrecv": "send_recv",
    }
)
"""Our names, by the programs of nccl-tests without their `_perf`."""
_PROGRAM: Final = re.compile(rf"\b({'|'.join(PROGRAMS)})_perf\b")
_NEURON: Final = MappingProxyType(
    {"allr": "all_reduce", "allg": "all_gather", "redsct": "reduce_scatter"}
)
_NCCOM: Final = re.compile(rf"\bnccom-test\b.*\s({'|'.join(_NEURON)})\b")
"""The test of AWS Neuron, which prints such tables, and its words for collectives."""

_HINT: Final = re.compile(
    rf"^\W*(?:nccl\W+)?({'|'.join(name.replace('_', '_?') for name in PROGRAMS)})\b"
    r"[^\d\n]{0,40}$",
    re.I,
)
"""A line of words that begins with a collective, as people put above a table."""

MOST_RANKS: Final = 2**20
_HALF_DIGIT: Final = 0.0051
"""GB/s between a printed rate and the true one: two decimals."""


class _Kind(NamedTuple):
    """How a collective looks in a table.

    Attributes:
        factor: 2 for 2(n-1)/n, 1 for (n-1)/n, 0 for 1.
        sums: whether an operation is printed; None for either.
        rooted: whether a root is.
        checked: whether results in place are.
    """

    factor: int
    sums: bool | None
    rooted: bool = False
    checked: bool = True


_KINDS: Final = MappingProxyType(
    {
        "all_reduce": _Kind(2, True),
        "all_gather": _Kind(1, False),
        "reduce_scatter": _Kind(1, True),
        "all_to_all": _Kind(1, False, checked=False),
        "reduce": _Kind(0, True, rooted=True),
        "broadcast": _Kind(0, False, rooted=True),
        "gather": _Kind(1, False, rooted=True),
        "scatter": _Kind(1, False, rooted=True),
        "send_recv": _Kind(0, None, checked=False),
    }
)
"""The likeliest first."""


def bus_factor(collective: str, ranks: int) -> Fraction:
    """Bus over algorithm bandwidth of a collective over some ranks."""
    factor = _KINDS[collective].factor
    return Fraction(factor * (ranks - 1), ranks) if factor else Fraction(1)


def program(text: str) -> str | None:
    """The collective whose program a line names."""
    found = _PROGRAM.search(text)
    other = _NCCOM.search(text)
    if found is None and other:
        return _NEURON[other[1]]
    return PROGRAMS[found[1]] if found else None


def hinted(text: str) -> str | None:
    """The collective that people's words above a table name."""
    found = _HINT.match(text)
    plain = found[1].lower().replace("_", "") if found else ""
    return next((PROGRAMS[name] for name in PROGRAMS if name.replace("_", "") == plain), None)


class Span(NamedTuple):
    """The factors that all rows allow, each rate being printed with two decimals."""

    low: float
    high: float

    @staticmethod
    def of(rows: Iterable[Row]) -> Span | None:
        """Over rows; None where the rates are too small or contradict one another."""
        low, high = 0.0, inf
        for row in rows:
            for _, timing in row.timings():
                if timing.algbw >= 0.1:
                    least, most = _bounds(timing)
                    low, high = max(low, least), min(high, most)
        return Span(low, high) if low <= high < inf else None

    def ranks(self, factor: int) -> tuple[int, int] | None:
        """The least and the largest n for which factor * (n-1)/n is in the span."""
        if not self.low < factor or self.high < factor / 2:
            return None
        least = max(1, ceil(factor / (factor - self.low) - 1e-9))
        most = MOST_RANKS if self.high >= factor else floor(factor / (factor - self.high) + 1e-9)
        return (least, most) if least <= most else None


def _bounds(timing: Timing) -> tuple[float, float]:
    return (
        (timing.busbw - _HALF_DIGIT) / (timing.algbw + _HALF_DIGIT),
        (timing.busbw + _HALF_DIGIT) / (timing.algbw - _HALF_DIGIT),
    )


class Guess(NamedTuple):
    """What the figures allow; see `Table`."""

    collectives: tuple[str, ...]
    ranks: int | None
    ranks_from: Literal["text", "count", "factor"] | None


def infer(
    rows: Sequence[Row], stated: str | None, ranks: int | None, hint: str | None = None
) -> Guess:
    """The collectives and the number of ranks that agree with the rows.

    Args:
        rows: of a table.
        stated: the collective, if the text names it.
        ranks: how many, if the text says.
        hint: the collective that people's words above the table name, which the figures may yet
            contradict.
    """
    pieces = _pieces(rows)
    span = Span.of(rows)
    fitting = [name for name in _KINDS if _fits(name, rows, pieces, span, ranks, name == hint)]
    plain = [name for name in fitting if _prints_neither(name) or name == hint]
    if plain and rows[0].dtype and rows[0].redop is None and rows[0].root is None:
        fitting = plain  # the others' rows have an operation or a root
    fitting.sort(key=lambda name: name != hint)
    names = [stated] if stated else fitting
    known = stated if stated in _KINDS else None
    odd = bool(known and span and contradicts(known, ranks or 0, span)) if ranks else False
    if ranks is not None and span and (odd or not names):
        other = infer(rows, stated, None, hint)
        if other.ranks is not None and other.ranks > ranks:
            return other  # lines of ranks are missing
    if ranks is not None:
        return Guess(tuple(names), ranks, "text")
    if names and all(_KINDS[name].factor == 1 for name in names) and pieces:
        return Guess(tuple(names), pieces, "count")
    factors = {_KINDS[name].factor for name in names}
    found = span.ranks(factors.pop()) if span and len(factors) == 1 and 0 not in factors else None
    if found is None or found[1] >= 2 * found[0] + 2:
        return Guess(tuple(names), None, None)
    return Guess(tuple(names), _roundest(*found), "factor")


def _prints_neither(name: str) -> bool:
    """Whether rows of a collective may have neither an operation nor a root."""
    return not _KINDS[name].sums and not _KINDS[name].rooted


def contradicts(name: str, ranks: int, span: Span) -> bool:
    """Whether a factor other than that of so many ranks lies between busbw and algbw."""
    factor = float(bus_factor(name, ranks))
    if not factor and span.low > 0:
        return True  # of one rank busbw is 0
    return not 0.97 * span.low <= factor <= 1.03 * span.high and span.low > 1.02


def _pieces(rows: Sequence[Row]) -> int | None:
    """How many times the printed count makes up the size, in every row of more than some bytes.

    Of small sizes alone, in all, where several agree: some programs round them.
    """
    told = [(row.size, pieces) for row in rows if row.size and (pieces := pieces_of(row))]
    found = {pieces for size, pieces in told if size >= 1 << 16}
    if not found and len(told) > 1:
        found = {pieces for _, pieces in told}
    return round(found.pop()) if len(found) == 1 and min(found) >= 1 else None


def _fits(
    name: str, rows: Sequence[Row], pieces: int | None, span: Span | None, ranks: int | None,
    hinted: bool,
) -> bool:  # fmt: skip
    kind, first = _KINDS[name], rows[0]
    if kind.sums is not None and first.redop is not None and kind.sums != (first.redop != "none"):
        return False
    if first.root is not None and kind.rooted != (first.root >= 0):
        return False
    if not hinted and kind.checked != _checked_in_place(rows, kind.checked):
        return False
    if pieces is not None and kind.factor != 1 and pieces != 1:
        return False
    if span is None:
        return True
    if kind.factor == 1 and pieces is not None:
        ranks = ranks or pieces
        if pieces > 1 and all(sent_only(row) for row in rows):
            return span.low <= 1 <= span.high
    if ranks is not None:
        return span.low - 1e-9 <= float(bus_factor(name, ranks)) <= span.high + 1e-9
    if kind.factor == 0:
        return span.low <= 1 <= span.high
    return span.ranks(kind.factor) is not None


def _checked_in_place(rows: Sequence[Row], unsaid: bool) -> bool:
    """Whether results in place are checked; `unsaid` if none are checked at all."""
    both = [(row.out_of_place, row.in_place) for row in rows]
    found = [_checked(inside) and (inside.error or 0.0) <= max(1.0, out.error or 0.0)
             for out, inside in both if out and inside and _checked(out)]  # fmt: skip
    return any(found) if found else unsaid


def _checked(timing: Timing) -> bool:
    return timing.wrong is not None or timing.error is not None


def _roundest(least: int, most: int) -> int:
    """Of a range the number that is divided by the highest power of two."""
    power = 1
    while -(-least // (2 * power)) * 2 * power <= most:
        power *= 2
    return -(-least // power) * power
