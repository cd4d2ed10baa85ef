"""Lines of printed text without what terminals, launchers and NCCL's log have put into them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .rows import ITEM_BYTES

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LOG: Final = re.compile(r"(?:\S*:\d+:\d+ )?(?:\[-?\d+\] )?NCCL (?:INFO|WARN|TRACE|ABORT)\b.*")
_TAGS: Final = re.compile(r"\[\d+(?:,\d+)?\](?:<std\w+>:?)?")
"""Of mpirun: [1,0]<stdout>: before each piece of output, or [0]."""
_LABEL: Final = re.compile(r"^\s*\d+: ")
"""Of srun --label."""
_QUOTE: Final = re.compile(r"^[>\s]+")
"""Of a text quoted in Markdown."""

_LOGGED: Final = re.compile(rb"\S+:\d+:\d+ (?:\[-?\d+\] )?NCCL (?:INFO|WARN|TRACE|ABORT)\b")
_TELLS: Final = re.compile(
    rb"#|_perf\b|bw|\((?:us|ms|s)\)|version|\b(?:%b)\b|\bRank\b|bandwidth|Out of bounds|"
    rb"^\W*(?:nccl\W*)?(?:all_?(?:reduce|gather|toall)|reduce|broadcast|gather|scatter|sendrecv)|"
    rb"^(?:\W|\d|_|std(?:out|err)|[eE](?=[-+]\d)|(?:nan|inf|n/?a|[KMGT]i?B?|B)\b)*+$"
    % b"|".join(name.encode() for name in ITEM_BYTES),
    re.I,
)
"""What a line has that a table may need: a comment, names of columns, a type, a collective at its
beginning, or figures alone."""


class Line(NamedTuple):
    """A line and its number, from 1."""

    number: int
    text: str


def lines(raws: Iterable[bytes], *, every: bool = False) -> Iterator[Line]:
    """The lines that a table may need, cleaned; those of NCCL's log are left out.

    What NCCL has written behind the beginning of a row is cut off, and the row's rest follows on
    another line.

    Args:
        raws: as they stand in the file.
        every: take those as well that no table needs.
    """
    for number, raw in enumerate(raws, 1):
        if _LOGGED.match(raw) or not (every or _TELLS.search(raw)):
            continue
        text = raw.decode("utf-8", "replace").removesuffix("\n")
        plain = _ESCAPES.sub("", text).replace("\r", " ").replace("|", " ")
        plain = _TAGS.sub(" ", _LOG.sub("", _LABEL.sub("", plain)))
        if plain.strip():
            yield Line(number, _QUOTE.sub("", plain).rstrip())
