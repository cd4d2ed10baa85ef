"""Bruck: after k steps each rank has 2^k pieces in a row, and sends them all to rank - 2^k."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..formulas import ceil_log
from ..registry import algorithm


@algorithm(
    "all_gather",
    messages="ceil_log(n)",
    bytes_sent="S*(n-1)/n",
    steps="ceil_log(n)",
    good="small S and any n: the fewest steps",
    bad="large S: the last, biggest exchange goes to the farthest rank",
    source="Bruck et al. 1997, doi:10.1109/71.642949",
)
def bruck(n: int) -> Schedule:
    rank = np.arange(n)
    rounds = [
        Round(rank, (rank - d) % n, rank, COPY, count=min(d, n - d))
        for d in (1 << k for k in range(ceil_log(n)))
    ]
    return Schedule("all_gather", n, n, rounds)


reduce_scatter = bruck.transpose()
