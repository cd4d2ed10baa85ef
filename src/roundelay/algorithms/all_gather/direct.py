"""Direct: everybody sends its piece to everybody, all at once."""

from collections.abc import Iterator

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_gather",
    messages="n - 1",
    bytes_sent="S*(n-1)/n",
    steps="1",
    good="every rank reaches every other at full rate: switches, shared memory",
    bad="many ranks: n - 1 messages at once",
    source="Chan et al. 2007, doi:10.1002/cpe.1206",
    dense=True,
)
def direct(n: int) -> Schedule:
    rank = np.arange(n)

    def rounds() -> Iterator[Round]:
        return (Round(rank, (rank + d) % n, rank, COPY, begin=0) for d in range(1, n))

    return Schedule("all_gather", n, n, rounds)


reduce_scatter = direct.transpose()
