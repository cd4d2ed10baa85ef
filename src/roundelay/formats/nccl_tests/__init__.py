"""The tables that nccl-tests, rccl-tests and `roundelay bench` print.

Every version is read: with and without the columns for operation, root and wrong elements, with
tags of a launcher, lines of NCCL's log in between, or without a header.
"""

from __future__ import annotations

from ..note import Note
from .failures import no_table
from .inference import bus_factor
from .lines import lines
from .measured import Device, Measured, Row, Table, Timing
from .reader import Reader

__all__ = [
    "Device",
    "Measured",
    "Note",
    "Row",
    "Table",
    "Timing",
    "bus_factor",
    "read_nccl_tests",
]


def read_nccl_tests(data: bytes | str) -> Measured:
    """All tables in a text.

    Raises:
        RoundelayError: there is none; the message says what was found instead.
    """
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    cleaned = list(lines(text))
    reader = Reader()
    reader.read(cleaned)
    if not reader.tables:
        raise no_table(cleaned)
    return Measured(tuple(reader.tables), tuple(reader.versions), tuple(reader.notes))
