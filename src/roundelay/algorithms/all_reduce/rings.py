"""Several rings at once, each with its share of the data and its own order of ranks.

Ring i steps by the i-th number without a common divisor with n: 1, -1, then further ones, so
rings share no link in one direction until these run out.
"""

from math import gcd

import numpy as np

from ...schedule import Schedule
from ...verbs import on, split
from ..registry import algorithm, pick


@algorithm(
    "all_reduce",
    messages="2*(n-1)*rings",
    bytes_sent="2*S*(n-1)/n",
    steps="2*(n-1)",
    good="several links or network cards a rank, each with a ring of its own",
    bad="one link a rank: more messages for the same bytes",
    source="NCCL channels; Patarasuk and Yuan 2009",
    tries={"rings": lambda n: (1, 3)},
    needs="1 <= rings <= 1024",
)
def rings(n: int, rings: int = 2) -> Schedule:
    units = [d for d in range(1, max(n, 2)) if gcd(d, n) == 1][: (rings + 1) // 2]
    steps = [step for d in units for step in (d, n - d)]
    orders = [np.arange(n) * steps[i % len(steps)] % n for i in range(rings)]
    return split(*(on(order, pick("all_reduce", "ring", n)) for order in orders))
