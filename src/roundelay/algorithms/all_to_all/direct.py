"""Direct: every rank sends each other rank its piece, all at once."""

from collections.abc import Iterator

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_to_all",
    messages="n - 1",
    bytes_sent="S*(n-1)/n",
    steps="1",
    good="large pieces, and a network that bears n - 1 flows a rank",
    bad="small pieces: n - 1 messages a rank; congestion where flows meet",
    source="Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521",
    dense=True,
)
def direct(n: int) -> Schedule:
    rank = np.arange(n)

    def rounds() -> Iterator[Round]:
        for d in range(1, n):
            to = (rank + d) % n
            yield Round(rank, to, rank * n + to, COPY, begin=0)

    return Schedule("all_to_all", n, n * n, rounds)
