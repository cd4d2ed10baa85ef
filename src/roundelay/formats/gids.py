"""The addresses (GIDs) of RoCE network cards as `show_gids` prints them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .pasted import pasted_lines

_ROW: Final = re.compile(
    r"^\s*([\w.-]{1,40})\s+(\d{1,3})\s+(\d{1,4})\s+((?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4})\s+"
    r"(?:(\d{1,3}(?:\.\d{1,3}){3})\s+)?(?:RoCE ?)?(v[12])\b\s*(\S{0,40})", re.I
)  # fmt: skip


class Gid(NamedTuple):
    """An address of a port: its place in the table, its version of RoCE, and its interface."""

    device: str
    port: int
    place: int
    gid: str
    address: str
    version: int
    interface: str
    line: int


def read_gids(data: bytes) -> tuple[Gid, ...]:
    """The rows of a table.

    Raises:
        RoundelayError: there is none.
    """
    rows = tuple(
        Gid(found[1], int(found[2]), int(found[3]), found[4].lower(), found[5] or "",
            int(found[6][1]), found[7], number)
        for number, line in pasted_lines(data) if (found := _ROW.match(line))
    )  # fmt: skip
    if not rows:
        raise RoundelayError("no row of show_gids; expected DEV, PORT, INDEX, GID, IPv4, VER, DEV")
    return rows
