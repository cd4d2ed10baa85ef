"""Ring: every rank passes on to its right neighbour the piece it got last."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_gather",
    messages="n - 1",
    bytes_sent="S*(n-1)/n",
    steps="n - 1",
    good="large S: one neighbour only, no rank can send less",
    bad="small S, many ranks: latency grows with n",
    source="Chan et al. 2007, doi:10.1002/cpe.1206",
)
def ring(n: int) -> Schedule:
    rank = np.arange(n)
    right = Round(rank, (rank + 1) % n, rank, COPY, times=n - 1, shift=-1)
    return Schedule("all_gather", n, n, [right])


reduce_scatter = ring.transpose()
