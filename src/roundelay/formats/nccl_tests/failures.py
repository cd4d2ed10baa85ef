"""What a text without a table holds instead, and what to try."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ...errors import RoundelayError
from .lines import Line

_TROUBLE: Final = re.compile(
    r"failure|error|fail(?:ed|s)?\b|fault\b|not found|cannot|denied|no such|abort|killed|signal",
    re.I,
)
_CAUSES: Final = (
    ("system not yet initialized",
     "the fabric manager does not run, or is of another version than the driver: "
     "`systemctl status nvidia-fabricmanager`, and install the driver's version of it"),
    ("no cuda-capable device", "the process sees no card: look at nvidia-smi, CUDA_VISIBLE_DEVICES "
     "and the container's options"),
    ("driver version is insufficient", "the driver is older than the CUDA runtime: update it, or "
     "build the tests with an older CUDA"),
    ("invalid device ordinal", "there are fewer cards than asked for: try a smaller -g, or one "
     "process a card with -g 1"),
    ("out of memory", "try a smaller -e, and see what else uses the cards with nvidia-smi"),
    ("unhandled system error", "run again with NCCL_DEBUG=WARN, which says which call failed"),
    ("unhandled cuda error", "run again with NCCL_DEBUG=WARN, which says which call failed"),
    ("error while loading shared libraries", "put the folder of that library into "
     "LD_LIBRARY_PATH, on every host"),
    ("no space left on device", "/dev/shm is too small: give the container more with --shm-size"),
)  # fmt: skip
"""A part of what is printed, in small letters, and what it means."""


class NoTable(RoundelayError):
    """A text without a table of results.

    Attributes:
        line: that tells why, as far as one does; its number is 0 where the text is empty.
    """

    def __init__(self, why: str, line: Line) -> None:
        super().__init__(why)
        self.line = line


def troubled(lines: Iterable[Line]) -> bool:
    """Whether a line speaks of a failure."""
    return any(_TROUBLE.search(line.text) for line in lines)


def no_table(lines: Iterable[Line]) -> NoTable:
    """The error that says what was found in place of a table."""
    expected = (
        "expected the table that nccl-tests prints, whose columns are size, time, algbw, busbw"
    )
    first: Line | None = None
    bad: Line | None = None
    causes: dict[str, Line] = {}
    for line in lines:
        first = first or line
        if _TROUBLE.search(line.text):
            bad = bad or line
        small = line.text.lower()
        for part, _ in _CAUSES:
            if part in small:
                causes.setdefault(part, line)
    if first is None:
        return NoTable(f"the text is empty; {expected}", Line(0, ""))
    for part, meaning in _CAUSES:
        if part in causes:
            return _told(causes[part], expected, f"Likely cause: {meaning}")
    if bad:
        return _told(bad, expected, "Mend that and run the test again")
    return _told(first, expected, "Paste the whole output, from its first line to its last")


def _told(line: Line, expected: str, hint: str) -> NoTable:
    return NoTable(
        f"no table of results; found, line {line.number}: {line.text.strip()[:200]!r}; {expected}. "
        f"{hint}",
        line,
    )
