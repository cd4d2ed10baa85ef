"""Lists of nodes as Slurm gives them to jobs: SLURM_JOB_NODELIST=node[1-4,7]."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .hostlist import hosts
from .plain import text_of

LIST: Final = re.compile(r"SLURM_(?:JOB_|STEP_)?NODELIST\s*=\s*[\"']?([\w.\-\[\],]{1,100000})")
MOST: Final = 1000
"""Lists of a file."""


class NodeList(NamedTuple):
    """Names in their order, and where they stand."""

    names: tuple[str, ...]
    line: int
    text: str


def read_nodelists(data: bytes) -> tuple[NodeList, ...]:
    """The lists in a text, one a line.

    Raises:
        RoundelayError: there is none, or one is not sound.
    """
    found: list[NodeList] = []
    for number, line in enumerate(text_of(data).split("\n"), 1):
        if (match := LIST.search(line)) and len(found) < MOST:
            found.append(NodeList(hosts(match[1]), number, line.strip()))
    if not found:
        raise RoundelayError("no list of nodes; expected SLURM_JOB_NODELIST=node[1-4]")
    return tuple(found)
