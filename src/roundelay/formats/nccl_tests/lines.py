"""Lines of printed text without what terminals, launchers and NCCL's log have put into them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_LOG: Final = re.compile(r"(?:\S*:\d+:\d+ )?(?:\[-?\d+\] )?NCCL (?:INFO|WARN|TRACE|ABORT)\b.*")
_TAGS: Final = re.compile(r"\[\d+(?:,\d+)?\](?:<std\w+>:?)?")
"""Of mpirun: [1,0]<stdout>: before each piece of output, or [0]."""
_LABEL: Final = re.compile(r"^\s*\d+: ")
"""Of srun --label."""
_QUOTE: Final = re.compile(r"^[>\s]+")
"""Of a text quoted in Markdown."""


class Line(NamedTuple):
    """A line and its number, from 1."""

    number: int
    text: str


def lines(text: str) -> Iterator[Line]:
    """The lines, cleaned; those of NCCL's log are left out.

    What NCCL has written behind the beginning of a row is cut off, and the row's rest follows on
    another line.
    """
    for number, raw in enumerate(text.split("\n"), 1):
        plain = _ESCAPES.sub("", raw).replace("\r", " ").replace("|", " ")
        plain = _TAGS.sub(" ", _LOG.sub("", _LABEL.sub("", plain)))
        if plain.strip():
            yield Line(number, _QUOTE.sub("", plain).rstrip())
