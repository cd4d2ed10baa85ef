"""In-switch: ranks send up once, switches add, and the sum is multicast down once.

One level is an adding switch in a node (NVLS); more are a tree of leaf and spine switches
(SHARP), where each level carries the less data the higher it stands.
"""

import numpy as np

from ...schedule import COPY, REDUCE, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_reduce",
    messages="1",
    bytes_sent="S",
    steps="2*levels",
    good="wherever switches can add: S leaves each rank once, latency does not grow with n",
    bad="switches that do not add, or have no adding resources left",
    source="Graham et al. 2016 (SHARP), doi:10.1109/COMHPC.2016.006; NVLink SHARP",
    tries={"levels": lambda n: (2, 3)},
    needs="1 <= levels <= 16",
)
def switch(n: int, levels: int = 1) -> Schedule:
    radix = next(r for r in range(1, n + 1) if r**levels >= n)
    below, helpers = np.arange(n if n > 1 else 0), 0
    up: list[Round] = []
    for _ in range(levels):
        place = np.arange(len(below))
        above = n + helpers + place // radix if radix > 1 else below
        first = place % radix == 0
        up.append(Round(below, above, 0, np.where(first, COPY, REDUCE)))
        below = np.unique(above)
        helpers += len(below)
    down = [Round(r.dst, r.src, 0, COPY) for r in reversed(up)]
    return Schedule("all_reduce", n, 1, up + down, helpers=helpers)
