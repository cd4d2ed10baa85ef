"""Binomial tree: a rank hands half of the pieces it has to the rank in the middle of them."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..formulas import ceil_log
from ..registry import algorithm


@algorithm(
    "scatter",
    messages="ceil_log(n)",
    bytes_sent="S*(n-1)/n",
    steps="ceil_log(n)",
    good="small S: the fewest steps",
    bad="large S: pieces go through ranks that do not want them",
    source="Chan et al. 2007, doi:10.1002/cpe.1206",
)
def binomial(n: int) -> Schedule:
    rounds = []
    for d in (1 << k for k in reversed(range(ceil_log(n)))):
        has = np.arange(0, n - d, 2 * d)
        rounds.append(Round(has, has + d, has + d, COPY, count=np.minimum(d, n - has - d)))
    return Schedule("scatter", n, n, rounds)


gather = binomial.transpose(
    messages="1", bytes_sent="S/n*max(n - pow2_above(n)//2, pow2_above(n)//4)"
)
