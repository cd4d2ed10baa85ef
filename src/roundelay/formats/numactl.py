"""The NUMA nodes of a host as `numactl -H` prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import RoundelayError
from .pasted import pasted_lines

_CPUS: Final = re.compile(r"^\s*node (\d{1,4}) cpus:((?: \d{1,5})*)")
_SIZE: Final = re.compile(r"^\s*node (\d{1,4}) (size|free): (\d{1,12}) MB")
_ROW: Final = re.compile(r"^\s*(\d{1,4}):((?:\s+\d{1,4})+)\s*$")


@dataclass
class NumaNode:
    """A node: its processors' threads, MB of memory and of what is free, distances to all."""

    number: int
    line: int
    threads: int = 0
    size: int | None = None
    free: int | None = None
    distances: tuple[int, ...] = ()


def read_numactl(data: bytes) -> tuple[NumaNode, ...]:
    """The nodes of a host.

    Raises:
        RoundelayError: there is none.
    """
    nodes: dict[int, NumaNode] = {}
    for number, line in pasted_lines(data):
        if found := (_CPUS.match(line) or _SIZE.match(line) or _ROW.match(line)):
            node = nodes.setdefault(int(found[1]), NumaNode(int(found[1]), number))
            if found.re is _CPUS:
                node.threads = len(found[2].split())
            elif found.re is _ROW:
                node.distances = tuple(map(int, found[2].split()))
            elif found[2] == "size":
                node.size = int(found[3])
            else:
                node.free = int(found[3])
    if not any(node.size is not None or node.threads for node in nodes.values()):
        raise RoundelayError("no NUMA node; expected the output of numactl -H")
    return tuple(nodes[number] for number in sorted(nodes))
