"""Sizes, rates, times and counts: the one place where they are parsed and printed.

Sizes are int bytes, times are float seconds, and a `Rate` is in bytes per second. A lower-case
b is bits and a capital B is bytes; where the case cannot be trusted, the text is refused.
"""

import math
import re
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from roundelay.errors import RoundelayError

Direction: TypeAlias = Literal["oneway", "duplex"]

_A_SIZE: Final = "a size was expected, such as 64MiB, 64M or 4096"
_A_RATE: Final = "a rate was expected, such as 400Gb/s, 50GB/s oneway or 900GB/s duplex"
_A_TIME: Final = "a time was expected, such as 3us, 1.5ms, 2s, 30m or 1.5h"
_COUNTS: Final = "counts of 1 or more were expected, such as 8, 1-33 or 8,16,1024"

_MAX_COUNTS: Final = 100_000
_MAX_TEXT: Final = 80  # with two digits of exponent at most, this stays inside a float's range
_QUANTITY: Final = re.compile(r"(-?\d*\.?\d+(?:E[+-]?\d\d?)?)(?: ?([^ \d].*))?", re.I | re.A)
_BYTES_OR_BITS: Final = re.compile(
    r"(?:([KMGT])(I?))?(?:(BITS?|B)(?:(PS| ?/ ?S)(?: (ONE[- ]?WAY)| (DUPLEX|BOTH DIRECTIONS))?)?)?",
    re.I | re.A,
)
_COUNT_OR_RANGE: Final = re.compile(r"([1-9]\d{,17})(?: ?- ?([1-9]\d{,17}))?", re.A)
_NUMBER: Final = re.compile(r"\d{1,18}", re.A)
_SECONDS: Final[MappingProxyType[str, str]] = MappingProxyType(
    {"ps": "1e-12", "ns": "1e-9", "us": "1e-6", "ms": "1e-3", "s": "1", "min": "60", "m": "60",
     "h": "3600", "d": "86400"}
)  # fmt: skip
_SHOWN_SIZES: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))
_SHOWN_RATES: Final = (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0))
_SHOWN_TIMES: Final = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12))


class UnitError(RoundelayError):
    """A size, rate, time or count that cannot be understood, or not without guessing."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate in bytes per second, and whether it counts one direction or both together.

    A direction of None means that it was not said; `oneway` and `duplex` then raise `UnitError`,
    as does making a rate that is negative or not finite.

    >>> Rate(900e9, "duplex").oneway
    450000000000.0
    """

    bytes_per_second: float
    direction: Direction | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.bytes_per_second < math.inf:
            raise _error(self.bytes_per_second, "is negative or not finite", _A_RATE)
        if self.direction not in (None, "oneway", "duplex"):
            raise _error(self.direction, "is no direction", "use 'oneway', 'duplex' or None")

    @property
    def oneway(self) -> float:
        """Bytes per second in one direction."""
        if self.direction is None:
            raise _error(format_rate(self), "has no direction", "it needs 'oneway' or 'duplex'")
        return self.bytes_per_second / (2 if self.direction == "duplex" else 1)

    @property
    def duplex(self) -> float:
        """Bytes per second in both directions together."""
        return 2 * self.oneway


class _Kind(Enum):  # worded to follow, in an error, the text that turned out to be this
    NUMBER = "has no unit"
    SIZE = "is a size"
    BITS = "looks like bits (bytes take a capital B, as in 8GB or 8GiB; 8 bits are 1 byte)"
    RATE = "is a rate"
    BINARY_BIT_RATE = "has a binary prefix on a rate in bits, where powers of 1000 are used"
    AMBIGUOUS = "is an ambiguous rate (write Gb/s or Gbps for bits, GB/s or GBps for bytes)"
    TIME = "is a time"
    UNKNOWN = "has an unknown unit"


def _error(found: object, problem: str, expected: str) -> UnitError:
    return UnitError(f"{found!r:.99} {problem}; {expected}")


def _measure(unit: str, time: bool) -> tuple[_Kind, Fraction, Direction | None]:
    """Return what a unit measures, its worth in bytes, bytes/s or seconds, and its direction.

    A lone m is minutes where a time is expected, and MiB elsewhere.
    """
    if unit in _SECONDS and (time or unit != "m"):
        return _Kind.TIME, Fraction(_SECONDS[unit]), None
    match = _BYTES_OR_BITS.fullmatch(unit)
    if match is None:
        return _Kind.UNKNOWN, Fraction(0), None
    prefix, binary, noun, per_second, oneway, duplex = match.groups(default="")
    bits = noun not in ("", "B")
    base = 1024 if binary or not noun else 1000
    worth = Fraction(base ** " KMGT".index(prefix.upper() or " "), 8 if bits else 1)
    if not per_second:
        return (_Kind.BITS if bits else _Kind.SIZE if unit else _Kind.NUMBER), worth, None
    # A lone b or B is trusted where mixed case shows that case was minded, and in "bps".
    letters = prefix + noun + per_second
    if len(noun) == 1 and (letters.isupper() or (letters.islower() and "/" in letters)):
        return _Kind.AMBIGUOUS, worth, None
    kind = _Kind.BINARY_BIT_RATE if bits and binary else _Kind.RATE
    return kind, worth, "duplex" if duplex else "oneway" if oneway or bits else None


def _read(text: str, expected: str, *kinds: _Kind) -> tuple[Fraction, Direction | None]:
    """Read a quantity of one of these kinds, and the direction if it is a rate that has one."""
    clean = " ".join(text.split()).replace("\u00b5s", "us").replace("\u03bcs", "us")
    match = _QUANTITY.fullmatch(clean) if len(clean) <= _MAX_TEXT else None
    if match is None:
        raise _error(text, "is not a number with a unit" if clean else "is empty", expected)
    kind, worth, direction = _measure(match[2] or "", _Kind.TIME in kinds)
    if kind not in kinds:
        raise _error(text, kind.value, expected)
    if clean.startswith("-"):
        raise _error(text, "is negative", expected)
    return Fraction(match[1]) * worth, direction


def parse_size(text: str) -> int:
    """Parse a size into whole bytes, or raise `UnitError`.

    A bare number is bytes. Bare K, M, G and T in either case, and KiB, MiB, GiB and TiB, are
    powers of 1024; KB, MB, GB and TB are powers of 1000. Sizes end below 2^63.

    >>> parse_size("64M"), parse_size("64 MB"), parse_size("1.5KiB")
    (67108864, 64000000, 1536)
    """
    value = _read(text, _A_SIZE, _Kind.NUMBER, _Kind.SIZE)[0]
    if value.denominator != 1 or value >= 2**63:
        raise _error(text, "is not a whole number of bytes below 2^63", _A_SIZE)
    return int(value)


def parse_rate(text: str) -> Rate:
    """Parse a rate above zero into bytes per second, or raise `UnitError`.

    "oneway" ("one-way", "one way") or "duplex" ("both directions") may follow. Rates in bits are
    one-way unless they say otherwise, as line rates of networks are stated per direction, and use
    powers of 1000. "bps" is bits and "Bps" bytes; "gb/s" and "GB/S" are refused as ambiguous.

    >>> parse_rate("400 Gb/s")
    Rate(bytes_per_second=50000000000.0, direction='oneway')
    """
    value, direction = _read(text, _A_RATE, _Kind.RATE)
    if not value:
        raise _error(text, "is zero", _A_RATE)
    return Rate(float(value), direction)


def parse_time(text: str) -> float:
    """Parse a time in ps, ns, us, ms, s, min or m, h or d into seconds, or raise `UnitError`.

    >>> parse_time("3us"), parse_time("30m"), parse_time("1.5h")
    (3e-06, 1800.0, 5400.0)
    """
    return float(_read(text, _A_TIME, _Kind.TIME)[0])


def parse_counts(text: str) -> tuple[int, ...]:
    """Parse counts and ranges into at most 100000 sorted, unique values, or raise `UnitError`.

    >>> parse_counts("1-4,8")
    (1, 2, 3, 4, 8)
    """
    counts: set[int] = set()
    for part in (" ".join(part.split()) for part in text.split(",")):
        match = _COUNT_OR_RANGE.fullmatch(part)
        if match is None:
            raise _error(text, f"has {part!r:.30}, which is no count or range of counts", _COUNTS)
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _error(text, f"has {part!r}, which is reversed: try {last}-{first}", _COUNTS)
        # Cut one past the limit, so that a huge range is refused without being laid out.
        counts.update(range(first, min(last, first + _MAX_COUNTS) + 1))
        if len(counts) > _MAX_COUNTS:
            raise _error(text, f"has more than {_MAX_COUNTS} values", _COUNTS)
    return tuple(sorted(counts))


def parse_params(text: str) -> dict[str, int | str | tuple[int, ...]]:
    """Parse an algorithm's parameters, or raise `UnitError`.

    >>> parse_params("group=8,inner=ring,groups=8x4")
    {'group': 8, 'inner': 'ring', 'groups': (8, 4)}
    """
    found = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not name or not value:
            raise UnitError(f"{pair!r}; expected key=value,key=value, such as group=8,inner=ring")
        found[name] = _param(value)
    return found


def _param(text: str) -> int | str | tuple[int, ...]:
    parts = text.split("x")
    if not all(_NUMBER.fullmatch(part) for part in parts):
        return text
    return int(text) if len(parts) == 1 else tuple(int(part) for part in parts)


def _show(value: float, units: tuple[tuple[str, float], ...]) -> str:
    name, unit = next((pair for pair in units if abs(value) >= pair[1]), units[-1])
    return f"{value / unit:{'.4g' if abs(value) < 9999.5 * unit else '.0f'}} {name}"


def format_size(size: int) -> str:
    """Print bytes in the largest binary unit that is exact in four digits, or else rounded.

    >>> format_size(1 << 26), format_size(1536), format_size(1500)
    ('64 MiB', '1.5 KiB', '1500 B')
    """
    for name, unit in _SHOWN_SIZES:
        if unit <= abs(size) < 10_000 * unit and Fraction(f"{size / unit:.4g}") * unit == size:
            return f"{size / unit:.4g} {name}"
    return _show(size, _SHOWN_SIZES)


def format_rate(rate: Rate) -> str:
    """Print a rate in powers of 1000 with four digits, and its direction if it has one.

    >>> format_rate(Rate(50e9, "oneway"))
    '50 GB/s oneway'
    """
    return f"{_show(rate.bytes_per_second, _SHOWN_RATES)} {rate.direction or ''}".rstrip()


def format_time(seconds: float) -> str:
    """Print seconds in s, ms, us, ns or ps with four digits.

    >>> format_time(3.2e-6)
    '3.2 us'
    """
    return _show(seconds, _SHOWN_TIMES) if seconds else "0 s"
