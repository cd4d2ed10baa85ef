"""Quantities as people write them: "eight", "about 40", "4x HDR", "NDR 400", "PCIe 4.0 x16"."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any, Final, NamedTuple

_WORDS: Final = MappingProxyType(
    {name: number for number, name in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
         "eleven", "twelve"))}
    | {"single": 1, "dual": 2, "both": 2, "quad": 4, "sixteen": 16, "thirty-two": 32}
)  # fmt: skip
_RATES: Final = MappingProxyType(
    {"FDR": 56, "EDR": 100, "HDR100": 100, "HDR": 200, "NDR200": 200, "NDR": 400, "XDR": 800}
)
"""Gb/s of a port of four lanes, by InfiniBand's names."""
_LANE: Final = MappingProxyType({1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.877})
"""GB/s one way of a lane of PCIe, by generation: GT/s, less the coding."""
_UNITS: Final[tuple[tuple[re.Pattern[str], float], ...]] = tuple(
    (re.compile(pattern, flags), worth)
    for pattern, flags, worth in (
        (r"Ti?B(?:yte)?s?(?:ps|/s(?:ec)?)", 0, 1e3),
        (r"GB(?:yte)?s?(?:ps|/s(?:ec)?)?|Gi?Bytes?/s(?:ec)?", 0, 1.0),
        (r"GiB(?:ps|/s(?:ec)?)", 0, 1.073741824),
        (r"MB(?:yte)?s?(?:ps|/s(?:ec)?)", 0, 1e-3),
        (r"MiB(?:ps|/s(?:ec)?)", 0, 1.048576e-3),
        (r"Tb(?:it)?s?(?:ps|/s(?:ec)?)?", 0, 125.0),
        (r"(?:Gb(?:it)?s?(?:ps|/s(?:ec)?)?|gbps|gbit/s|GbE|GE|gige|G)", 0, 0.125),
        (r"Mb(?:it)?s?(?:ps|/s(?:ec)?)?|mbps", 0, 0.125e-3),
    )
)
"""GB/s by unit."""
_NUMBER: Final = re.compile(
    r"(?:(?<![\w.])|(?<=\dx))(\d{1,15}(?:[.,]\d{1,9})?)[ -]?"
    r"([A-Za-z]{1,8}(?:/s(?:ec)?)?)?"
)
_PORTS: Final = re.compile(r"\b(dual|two|2)[- ]?ports?\b", re.I)
_GENERATION: Final = re.compile(r"(?:\bPCI[- ]?e(?:xpress)?\s*|\bgen(?:eration)?\s*\.?\s*)"
                                r"(?:gen\s*)?([1-6])(?:\.0)?(?![\d.])|^\s*([1-6])(?:\.0)(?![\d.])",
                                re.I)  # fmt: skip
_LANES: Final = re.compile(r"(?<![\w.])x\s?(1|2|4|8|16|32)\b|\b(1|2|4|8|16)[x ]lanes?\b", re.I)


class Rated(NamedTuple):
    """A rate in a text.

    Attributes:
        rate: GB/s, one way unless the text says otherwise; all ports of a card.
        many: how many there are of it, such as 4 in "4x HDR".
        duplex: whether the text says that both directions are added.
    """

    rate: float
    many: int | None = None
    duplex: bool = False


def number_in(text: str) -> float | None:
    """The only number in a text, such as 40 in "about 40"; None where there are more or none."""
    found = re.findall(r"(?<![\w.-])\d{1,15}(?:\.\d{1,9})?(?![\w.])", text)
    return float(found[0]) if len(found) == 1 else None


def count_of(value: Any) -> int | None:
    """A whole number of 1 or more, in figures or in words: 8, "eight", "8 x H100", "2 nodes"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return int(value) if 0 < value < 2**62 and value == int(value) else None
    if not isinstance(value, str):
        return None
    first = re.match(r"\W*(?:about|some|only|with)?\s*(?:(\d{1,15})(?![\w.,]*\d)|([a-z]+))", value,
                     re.I)  # fmt: skip
    if first is None:
        return None
    if first[1]:
        return int(first[1]) or None
    return _WORDS.get(first[2].lower()) or None


def rate_of(text: str, worth: float | None = None) -> Rated | None:
    """The first rate in a text.

    Args:
        text: such as "4 x 200 Gb/s", "HDR", "100GbE" or "about 21 GB/s".
        worth: of a bare number, in GB/s; without it a number needs a unit.
    """
    duplex = re.search(r"duplex|bidir|both (?:dir|way)", text, re.I) is not None
    ports = 2 if _PORTS.search(text) else 1
    for found in _NUMBER.finditer(text):
        number = float(
            found[1].replace(",", "" if len(found[1]) - found[1].find(",") == 4 else ".")
        )
        unit = _worth(found[2] or "")
        if unit is None or not number:
            continue
        rate, count = number * unit, _before(text[: found.start()])
        if ports == 2 and count == 2:
            count = None
        return Rated(rate * ports, count, duplex)
    for name, gigabits in _RATES.items():
        if named := re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z0-9])", text):
            count = _before(text[: named.start()])
            return Rated(gigabits / 8 * ports, None if ports == 2 and count == 2 else count, duplex)
    bare = number_in(text)
    return Rated(bare * worth, None, duplex) if bare is not None and worth else None


def _worth(unit: str) -> float | None:
    return next((worth for pattern, worth in _UNITS if pattern.fullmatch(unit)), None)


def _before(text: str) -> int | None:
    """How many, by what stands before a rate: "4x", "8 x ", "2*"; "4X" are lanes of a port."""
    found = re.search(r"(?<![\w.])(\d{1,4})\s?(?:x|×|\*)\s?(?:[\w-]+\s){0,2}$", text)
    return int(found[1]) or None if found else None


class Slot(NamedTuple):
    """A slot of PCIe, as far as a text tells."""

    generation: int | None
    lanes: int | None


def slot_in(text: str) -> Slot | None:
    """What a text such as "PCIe 4.0 x16" or "Gen3 x8" tells."""
    generation, lanes = _GENERATION.search(text), _LANES.search(text)
    if not (generation or lanes):
        return None
    return Slot(int(generation[1] or generation[2]) if generation else None,
                int(lanes[1] or lanes[2]) if lanes else None)  # fmt: skip


def slot_rate(generation: int, lanes: int) -> float:
    """GB/s one way of a slot of PCIe."""
    return _LANE[generation] * lanes


def said(value: Any) -> bool | None:
    """Whether a word says yes or no: "on", "disabled"."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in ("on", "yes", "true", "enabled", "active", "loaded"):
        return True
    return False if word in ("off", "no", "false", "disabled", "none", "not loaded") else None
