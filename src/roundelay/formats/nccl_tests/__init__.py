"""The tables that nccl-tests, rccl-tests and `roundelay bench` print.

Every version is read: with and without the columns for operation, root and wrong elements, with
tags of a launcher, lines of NCCL's log in between, or without a header.
"""

from __future__ import annotations

from ..note import Note
from .failures import no_table, troubled
from .inference import bus_factor
from .lines import lines
from .measured import Device, Measured, Row, Table, Timing
from .reader import Reader
from .rows import sent_only

__all__ = [
    "Device",
    "Measured",
    "Note",
    "Row",
    "Table",
    "Timing",
    "bus_factor",
    "read_nccl_tests",
    "sent_only",
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
    listed = tuple(reader.devices.values())
    if (
        not reader.tables
        and not reader.apart
        and (troubled(cleaned) or (len(listed) != 1 and not reader.averages))
    ):
        raise no_table(cleaned)
    return Measured(
        tuple(reader.tables), tuple(reader.versions), tuple(reader.notes), tuple(reader.apart),
        () if reader.tables else listed, tuple(reader.averages),
    )  # fmt: skip
