"""Pipelined chain: the data goes from rank to rank in pieces, all links busy at once."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "broadcast",
    messages="pieces",
    bytes_sent="S",
    steps="n - 1 + pieces - 1",
    good="large S, few hops: every rank sends S just once",
    bad="many ranks: the last piece needs n - 1 hops",
    source="Chan et al. 2007, doi:10.1002/cpe.1206",
    tries={"pieces": lambda n: (1, 3)},
    needs="pieces >= 1",
)
def chain(n: int, pieces: int = 8) -> Schedule:
    rank = np.arange(n - 1)
    hop = Round(rank, rank + 1, 0, COPY, times=pieces, shift=1, start=rank)
    return Schedule("broadcast", n, pieces, [hop])


reduce = chain.transpose()
