"""In-switch: the switch adds what all ranks send up, and hands the sum to the root."""

import numpy as np

from ...schedule import COPY, REDUCE, Round, Schedule
from ..registry import algorithm


@algorithm(
    "reduce",
    messages="1",
    bytes_sent="S",
    steps="2",
    good="switches that add: the root's link carries S once",
    bad="switches that do not add",
    source="Graham et al. 2016 (SHARP), doi:10.1109/COMHPC.2016.006",
)
def switch(n: int) -> Schedule:
    rank = np.arange(n if n > 1 else 0)
    up = Round(rank, n, 0, np.where(rank == 0, COPY, REDUCE))
    down = Round(n, 0, 0, COPY)
    return Schedule("reduce", n, 1, [up, down] if n > 1 else [], helpers=int(n > 1))
