"""Tables of other programs that measure bandwidth and latency.

Sizes and rates (perftest, OSU's and NVSHMEM's tests, all_reduce_bench, DeepSpeed, MSCCL++, oneCCL,
bandwidthTest, iperf3), and matrices of cards (p2pBandwidthLatencyTest, nvbandwidth,
rocm-bandwidth-test). Columns are told by their names and units, not by the program.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .curves import Curves
from .matrices import Matrices
from .measured import Bandwidths, Curve, Matrix, Point
from .single import Singles

__all__ = ["Bandwidths", "Curve", "Matrix", "Point", "read_bandwidth_lines"]

LONGEST: Final = 2000
"""Characters of a line that are looked at."""
_CARD: Final = re.compile(r"\bDevice:? *\d+[:,] *([^,(\n]{3,80})|name='([^']{3,80})'")
_TAG: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\[\d+,\d+\](?:<std\w+>:?)?|^\d+: ")


def read_bandwidth_lines(raws: Iterable[bytes]) -> Bandwidths:
    """All tables in lines; none where no line is of one."""
    curves, matrices, singles = Curves(), Matrices(), Singles()
    cards: dict[str, None] = {}
    barred: set[str] = set()
    for number, raw in enumerate(raws, 1):
        text = _TAG.sub("", raw[:LONGEST].decode("utf-8", "replace").rstrip())
        if found := _CARD.search(text):
            cards[(found[1] or found[2]).strip()] = None
        if "CANNOT Access Peer" in text:
            barred.add(text.strip())
        if not matrices.take(number, text) and not singles.take(number, text):
            curves.take(number, text)
    return Bandwidths((*curves.done(), *singles.done()), matrices.done(), tuple(cards), len(barred))
