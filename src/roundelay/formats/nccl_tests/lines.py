"""Lines of printed text without what terminals, launchers and NCCL's log have put into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ..plain import ESCAPES
from .rows import ITEM_BYTES

_LOG: Final = re.compile(r"(?:\S*:\d+:\d+ )?(?:\[-?\d+\] )?NCCL (?:INFO|WARN|TRACE|ABORT)\b.*")
_TAGS: Final = re.compile(r"\[\d+(?:,\d+)?\](?:<std\w+>:?)?")
"""Of mpirun: [1,0]<stdout>: before each piece of output, or [0]."""
_LABEL: Final = re.compile(r"^\s*\d+: ")
"""Of srun --label."""
_QUOTE: Final = re.compile(r"^[>\s]+")
"""Of a text quoted in Markdown."""

_LOGGED: Final = re.compile(rb"\S+:\d+:\d+ (?:\[-?\d+\] )?NCCL (?:INFO|WARN|TRACE|ABORT)\b")
_TELLS: Final = re.compile(
    rb"#|_perf\b|nccom-test|bw|\((?:us|ms|s)\)|version|\b(?:%b)\b|\bRank\b|bandwidth|Out of bounds|"
    rb"^\W*(?:nccl\W*)?(?:all_?(?:reduce|gather|toall)|reduce|broadcast|gather|scatter|sendrecv)|"
    rb"^\d+(?:\.\d*)?,.*,\d|^(?:\W|\d|_|std(?:out|err)|[eE](?=[-+]\d)|(?:nan|inf|n/?a|[KMGT]i?B?|B)\b)*+$"
    % b"|".join(name.encode() for name in ITEM_BYTES),
    re.I,
)
"""What a line has that a table may need: a comment, names of columns, a type, a collective at its
beginning, or figures alone."""


_BESIDE: Final = re.compile(r"\bsize\b.*\bbusbw\b", re.I)
"""Names of columns, on both sides of a bar."""
_CSV: Final = re.compile(r"\W*(?:\d|size|bytes)", re.I)
"""How a row parted by commas begins, or its header."""
COMMAS: Final = 6
"""In a line without spaces, from which they part columns."""
MOST_BESIDE: Final = 1000
"""Rows of a table that stands beside another."""


class Line(NamedTuple):
    """A line and its number, from 1."""

    number: int
    text: str


def lines(raws: Iterable[bytes], *, every: bool = False) -> Iterator[Line]:
    """The lines that a table may need, cleaned; those of NCCL's log are left out.

    What NCCL has written behind the beginning of a row is cut off, and the row's rest follows on
    another line. Of two tables side by side the right one follows the left one.

    Args:
        raws: as they stand in the file.
        every: take those as well that no table needs.
    """
    aside: list[Line] | None = None
    for number, raw in enumerate(raws, 1):
        if _LOGGED.match(raw) or not (every or _TELLS.search(raw)):
            continue
        text = raw.decode("utf-8", "replace").removesuffix("\n")
        left, bar, right = text.partition("|")
        if aside is None and _BESIDE.search(left) and _BESIDE.search(right):
            aside = []
        if aside is not None and bar and len(aside) < MOST_BESIDE:
            aside += _cleaned(number, right)
            text = left
        elif aside is not None:
            yield from aside
            aside = None
        yield from _cleaned(number, text)
    yield from aside or ()


def _cleaned(number: int, text: str) -> Iterator[Line]:
    plain = ESCAPES.sub("", text).replace("\r", " ").replace("|", " ")
    if plain.count(",") >= COMMAS and " " not in plain.strip() and _CSV.match(plain):
        plain = plain.replace(",", " ").replace('"', " ")
    plain = _TAGS.sub(" ", _LOG.sub("", _LABEL.sub("", plain)))
    if plain.strip():
        yield Line(number, _QUOTE.sub("", plain).rstrip())
