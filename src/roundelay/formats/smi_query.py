"""What `nvidia-smi -q` prints: names and values under headings, card after card, also parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .pasted import pasted_lines

_CARD: Final = re.compile(r"^\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*$")
_VALUE: Final = re.compile(
    r"^(\s*)(\S[^:]{0,60}?)\s{0,80}:\s(.{0,200})$|^(\s*)(\S[^:]{0,60}?)\s{0,80}:$"
)
_HEAD: Final = re.compile(r"^(\s*)([A-Z][\w/ ()-]{0,60})$")
MOST: Final = 2**17
"""Values of a text."""


class Value(NamedTuple):
    """A name, its value, the headings above it (the nearest last), and its line."""

    name: str
    text: str
    under: tuple[str, ...]
    line: int


@dataclass
class Queried:
    """A card; its address is "" in a part that has none."""

    bus: str
    line: int
    values: list[Value] = field(default_factory=list)

    def find(self, under: str, name: str) -> Iterator[Value]:
        """Values of a name under a heading, however far above."""
        return (v for v in self.values if v.name == name and under in v.under)

    @property
    def title(self) -> str:
        """Its name and address."""
        names = [v.text for v in self.values if v.name == "Product Name"]
        return " ".join(filter(None, [*names[:1], self.bus]))


def read_smi_query(data: bytes) -> tuple[Queried, ...]:
    """The cards of a text.

    Raises:
        RoundelayError: there is none.
    """
    cards: list[Queried] = []
    heads: list[tuple[int, str]] = []
    count = 0
    for number, line in pasted_lines(data):
        if found := _CARD.match(line):
            cards.append(Queried(found[1].lower(), number))
            heads = []
        elif found := _VALUE.match(line):
            deep, name, text = len(found[1] or found[4] or ""), found[2] or found[5], found[3] or ""
            heads = _above(heads, deep)
            if not cards:
                cards.append(Queried("", number))
            if count < MOST:
                under = tuple(head for _, head in heads)
                cards[-1].values.append(Value(name, text.strip(), under, number))
                count += 1
        elif found := _HEAD.match(line):
            deep = len(found[1])
            heads = [*_above(heads, deep), (deep, found[2].strip())]
    listed = tuple(card for card in cards if any(v.under for v in card.values))
    if not listed:
        raise RoundelayError("no values under headings; expected the output of nvidia-smi -q")
    return listed


def _above(heads: list[tuple[int, str]], deep: int) -> list[tuple[int, str]]:
    """Headings that a line so far to the right stands under; all, where indentation is lost."""
    kept = [head for head in heads if head[0] < deep]
    return kept if deep or not heads else heads[-1:]
