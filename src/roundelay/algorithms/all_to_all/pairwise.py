"""Pairwise: in step d every rank sends to rank + d and receives from rank - d."""

from collections.abc import Iterator

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_to_all",
    messages="n - 1",
    bytes_sent="S*(n-1)/n",
    steps="n - 1",
    good="large pieces: one flow in and one out of every rank at a time",
    bad="small pieces: n - 1 steps",
    source="Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521",
    dense=True,
)
def pairwise(n: int) -> Schedule:
    rank = np.arange(n)

    def rounds() -> Iterator[Round]:
        for d in range(1, n):
            to = (rank + d) % n
            yield Round(rank, to, rank * n + to, COPY)

    return Schedule("all_to_all", n, n * n, rounds)
