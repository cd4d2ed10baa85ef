"""In-switch: the switch adds what all ranks send up, and hands each rank its piece."""

import numpy as np

from ...schedule import COPY, REDUCE, Round, Schedule
from ..registry import algorithm


@algorithm(
    "reduce_scatter",
    messages="1",
    bytes_sent="S",
    steps="2",
    good="switches that add: each rank receives only S / n",
    bad="links slower up than down: all of S is sent up",
    source="NVLink SHARP; NCCL NVLS",
)
def switch(n: int) -> Schedule:
    rank = np.arange(n if n > 1 else 0)
    up = Round(rank, n, 0, np.where(rank == 0, COPY, REDUCE), count=n)
    down = Round(n, rank, rank, COPY)
    return Schedule("reduce_scatter", n, n, [up, down], helpers=int(n > 1))
