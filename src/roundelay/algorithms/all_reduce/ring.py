"""Ring: every rank passes one piece to its right neighbour, who adds it; then once more, copying.

After n - 1 steps each rank holds one finished piece; n - 1 further steps pass these round.
"""

import numpy as np

from ...schedule import COPY, REDUCE, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_reduce",
    messages="2*(n-1)",
    bytes_sent="2*S*(n-1)/n",
    steps="2*(n-1)",
    good="large S: no rank can send less, and only to one neighbour",
    bad="small S, many ranks: latency grows with n",
    source="Patarasuk and Yuan 2009, doi:10.1016/j.jpdc.2008.09.002",
)
def ring(n: int) -> Schedule:
    rank = np.arange(n)
    right = (rank + 1) % n
    add = Round(rank, right, rank, REDUCE, times=n - 1, shift=-1)
    share = Round(rank, right, (rank + 1) % n, COPY, times=n - 1, shift=-1)
    return Schedule("all_reduce", n, n, [add, share])
