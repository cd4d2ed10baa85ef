"""The tables that nccl-tests, rccl-tests and `roundelay bench` print.

Every version is read: with and without the columns for operation, root and wrong elements, with
tags of a launcher, lines of NCCL's log in between, or without a header.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO

from ..nccl_log import lines_of
from ..note import Note
from .as_json import read_nccl_tests_json
from .failures import NoTable, no_table, troubled
from .inference import bus_factor
from .lines import lines
from .measured import Device, Measured, Row, Table, Timing
from .reader import Reader
from .rows import sent_only, tells

__all__ = [
    "Device",
    "Measured",
    "NoTable",
    "Note",
    "Row",
    "Table",
    "Timing",
    "bus_factor",
    "read_nccl_tests",
    "read_nccl_tests_json",
    "read_nccl_tests_lines",
    "sent_only",
    "tells",
]


def read_nccl_tests(data: bytes | str) -> Measured:
    """All tables in a text.

    Raises:
        NoTable: there is none; the message says what was found instead.
    """
    whole = data.encode() if isinstance(data, str) else data
    return read_nccl_tests_lines(lambda: lines_of(BytesIO(whole)))


def read_nccl_tests_lines(raws: Callable[[], Iterable[bytes]]) -> Measured:
    """All tables in lines, of which few are held.

    Args:
        raws: gives the lines; called again where there is no table.

    Raises:
        NoTable: there is none; the message says what was found instead.
    """
    reader = Reader()
    reader.read(lines(raws()))
    listed = tuple(reader.devices.values())
    telling = len(listed) == 1 or reader.averages
    if not (reader.tables or reader.apart) and (not telling or troubled(lines(raws(), every=True))):
        raise no_table(lines(raws(), every=True))
    return Measured(
        tuple(reader.tables), tuple(reader.versions), tuple(reader.notes), tuple(reader.apart),
        () if reader.tables else listed, tuple(reader.averages),
    )  # fmt: skip
