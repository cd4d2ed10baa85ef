"""The table of blocks that CycleCloud prints (azslurm show_topology --format table)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import RoundelayError
from .pasted import pasted_lines

_HEAD: Final = re.compile(r"^\s*Block Name\s*\|\s*Size\s*\|\s*Nodes\b", re.I)
_ROW: Final = re.compile(r"^\s*(\S{1,200})\s*\|\s*(\d{1,6})\s*\|\s*(\S.{0,9999})?$")
_TOTAL: Final = re.compile(r"^\s*Total nodes:\s*(\d{1,9})\s*$", re.I)
MOST: Final = 2**16
"""Rows of a table."""


@dataclass(frozen=True)
class BlockTable:
    """Blocks and how many nodes each has.

    Attributes:
        sizes: by block.
        lines: where each stands.
        total: nodes in all, as the table says; None if it does not.
        shortened: whether names of nodes are left out.
    """

    sizes: dict[str, int]
    lines: dict[str, int]
    total: int | None
    shortened: bool


def read_block_table(data: bytes) -> BlockTable:
    """The blocks of a table.

    Raises:
        RoundelayError: there are none.
    """
    sizes, lines = dict[str, int](), dict[str, int]()
    total, within, shortened = None, False, False
    for number, text in pasted_lines(data):
        if _HEAD.match(text):
            within = True
        elif within and (row := _ROW.match(text)) and len(sizes) < MOST:
            sizes[row[1]], lines[row[1]] = int(row[2]), number
            shortened |= "..." in (row[3] or "")
        elif said := _TOTAL.match(text):
            total = int(said[1])
    if not sizes:
        raise RoundelayError("no block in the table; expected rows under Block Name | Size | Nodes")
    return BlockTable(sizes, lines, total, shortened)
