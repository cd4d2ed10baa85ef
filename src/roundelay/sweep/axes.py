"""What a sweep goes over: ``nodes=1,2,4..4096`` as a key and its values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, Final

from ..collectives import UnknownName
from ..errors import RoundelayError
from ..units import parse_size

MOST: Final = 100_000
"""Points of a sweep, at most."""
LONGEST: Final = 1000
"""Values of a range, at most."""


@dataclass(frozen=True)
class Axis:
    """One thing that differs between the points of a sweep.

    Attributes:
        key: one of `KEYS`.
        values: each once, in the order given.
    """

    key: str
    values: tuple[Any, ...]


def _count(text: str) -> Fraction:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise RoundelayError(f"{text!r} is no count; expected a whole number from 1 up")
    return Fraction(text)


def _size(text: str) -> Fraction:
    return Fraction(parse_size(text))


def _factor(text: str) -> Fraction:
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        found = Fraction(0)
    if found < 1:
        raise RoundelayError(f"{text!r} is not how many times slower; expected 1 or more, as 1.10")
    return found


@dataclass(frozen=True)
class Key:
    """How the values of a key are read: numbers with ranges, or words.

    Attributes:
        number: from text to a number; None for words.
        value: from that number to the value.
    """

    number: Callable[[str], Fraction] | None = None
    value: Callable[[Fraction], int | float] = int


KEYS: Final[Mapping[str, Key]] = MappingProxyType(
    {
        "cluster": Key(),
        "nodes": Key(_count),
        "ranks": Key(_count),
        "size": Key(_size),
        "algorithm": Key(),
        "protocol": Key(),
        "straggler": Key(_factor, float),
    }
)
"""What may be swept: machines, nodes of the cluster, cards that take part, bytes, algorithms,
protocols, and how many times slower a straggler is."""


def read_axis(text: str) -> Axis:
    """An axis from ``KEY=VALUE,VALUE,...``.

    Among numbers ``a,b..z`` goes on from b by the factor b / a while it is at most z, and ``a..z``
    doubles.

    >>> read_axis("nodes=1,2,4..64").values
    (1, 2, 4, 8, 16, 32, 64)

    Raises:
        RoundelayError: no such key, or values that cannot be understood.
    """
    name, equals, rest = (part.strip() for part in text.partition("="))
    parts = [part.strip() for part in rest.split(",")]
    if not equals or not all(parts):
        raise RoundelayError(f"{text!r} is no sweep; expected a key and its values, such as "
                             f"nodes=1,2,4..4096; keys: {', '.join(KEYS)}")  # fmt: skip
    if name not in KEYS:
        raise UnknownName("key of a sweep", name, KEYS)
    key = KEYS[name]
    if key.number is None:
        return Axis(name, tuple(dict.fromkeys(parts)))
    numbers = [key.value(v) for v in _numbers(text, parts, key.number, key.value is int)]
    return Axis(name, tuple(dict.fromkeys(numbers)))


def _numbers(
    text: str, parts: Sequence[str], number: Callable[[str], Fraction], whole: bool
) -> Iterator[Fraction]:
    before: Fraction | None = None
    for part in parts:
        start, dots, end = part.partition("..")
        first = number(start)
        yield first
        if dots:
            yield from _range(text, before, first, number(end), whole)
        before = first


def _range(
    text: str, before: Fraction | None, first: Fraction, last: Fraction, whole: bool
) -> Iterator[Fraction]:
    """What follows `first`, by the factor from the value before it."""
    if first == 0 or before == 0:
        raise RoundelayError(f"{text!r}: a range cannot go on from 0; expected such as 8..1G")
    factor = first / before if before else Fraction(2)
    if factor <= 1 or last < first:
        raise RoundelayError(f"{text!r}: the range from {float(first):g} by a factor of "
                             f"{float(factor):g} does not reach {float(last):g}; expected values "
                             "that grow, as in 1,2,4..4096")  # fmt: skip
    if first * factor**LONGEST <= last:
        raise RoundelayError(f"{text!r}: a range of more than {LONGEST} values")
    value = first * factor
    while value <= last:
        if whole and value.denominator != 1:
            raise RoundelayError(f"{text!r}: going on by a factor of {float(factor):g} gives "
                                 f"{float(value):g}; expected whole numbers")  # fmt: skip
        yield value
        value *= factor


def grid(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """Every combination of the values of all axes, the last axis first.

    Raises:
        RoundelayError: a key twice, or too many combinations.
    """
    keys = [axis.key for axis in axes]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise RoundelayError(f"{twice} is swept twice; expected all its values in one list")
    points = 1
    for axis in axes:
        points *= len(axis.values)
    if points > MOST:
        raise RoundelayError(f"a sweep of {points:,} points; expected at most {MOST:,}")
    return [dict(zip(keys, values, strict=True)) for values in product(*(a.values for a in axes))]
