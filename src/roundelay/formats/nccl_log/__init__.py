"""The log that NCCL and RCCL write with NCCL_DEBUG=INFO or WARN: rings, trees, transports, choices.

Heads of launchers, times, several lines in one and lines of others are borne with. Shapes of lines
are those of NCCL 2.4 to 2.30.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

from ...errors import RoundelayError
from ..plain import unpacked
from .grammar import last_of
from .joined import joined
from .reader import Reader, lines_of
from .record import (
    Choice,
    Edge,
    Failed,
    Health,
    Last,
    Line,
    NcclLog,
    Reach,
    Search,
    Thread,
    Warned,
    Way,
)

__all__ = [
    "Choice",
    "Edge",
    "Failed",
    "Health",
    "Last",
    "Line",
    "NcclLog",
    "Reach",
    "Search",
    "Thread",
    "Warned",
    "Way",
    "joined",
    "last_of",
    "lines_of",
    "read_nccl_lines",
    "read_nccl_log",
]


def read_nccl_log(data: bytes) -> NcclLog:
    """What a log holds.

    Raises:
        RoundelayError: it has no line of NCCL.
    """
    return read_nccl_lines(lines_of(BytesIO(unpacked(data))))


def read_nccl_lines(lines: Iterable[bytes], file: str = "") -> NcclLog:
    """What lines of a file hold, of which none is kept longer than it takes to read it.

    Raises:
        RoundelayError: none is of NCCL.
    """
    log = Reader(file).read(lines)
    if log.others == log.lines and not (log.versions or log.results or log.warned):
        raise RoundelayError(
            f"none of {log.lines:,} lines is of NCCL; expected lines with NCCL INFO or NCCL WARN, "
            "which NCCL_DEBUG=INFO brings"
        )
    return log
