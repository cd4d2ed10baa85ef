"""Binomial tree: in every step each rank that has the data sends it to one that has not."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..formulas import ceil_log
from ..registry import algorithm


@algorithm(
    "broadcast",
    messages="ceil_log(n)",
    bytes_sent="S*ceil_log(n)",
    steps="ceil_log(n)",
    good="small S: the fewest steps",
    bad="large S: the root sends all of it log2(n) times",
    source="Chan et al. 2007, doi:10.1002/cpe.1206",
)
def binomial(n: int) -> Schedule:
    rounds = []
    for d in (1 << k for k in reversed(range(ceil_log(n)))):
        has = np.arange(0, n - d, 2 * d)
        rounds.append(Round(has, has + d, 0, COPY))
    return Schedule("broadcast", n, 1, rounds)


reduce = binomial.transpose(messages="1", bytes_sent="S")
