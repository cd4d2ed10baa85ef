"""PAT (parallel aggregated trees): far ranks first, so that the last, big sends are near.

Before the level of distance d a rank holds its own piece and every 2 d-th one below it.
"""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..formulas import ceil_log
from ..registry import algorithm


@algorithm(
    "all_gather",
    messages="ceil_log(n)",
    bytes_sent="S*(n-1)/n",
    steps="ceil_log(n)",
    good="small to medium S between many nodes, any n",
    bad="large S, where a ring or two levels use links better",
    source="Jeaugey 2025 (PAT), arXiv:2506.20252, with full aggregation",
)
def pat(n: int) -> Schedule:
    rank = np.arange(n)
    rounds = [
        Round(rank, (rank + d) % n, rank, COPY, count=-((d - n) // (2 * d)), stride=-2 * d)
        for d in (1 << k for k in reversed(range(ceil_log(n))))
    ]
    return Schedule("all_gather", n, n, rounds)


reduce_scatter = pat.transpose()
