"""In-switch multicast: each rank sends its piece up once, the switch hands all of them to all."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_gather",
    messages="1",
    bytes_sent="S/n",
    steps="2",
    good="switches with multicast: only S / n leaves each rank",
    bad="switches without multicast",
    source="NVLink SHARP multicast; NCCL NVLS",
)
def switch(n: int) -> Schedule:
    rank = np.arange(n if n > 1 else 0)
    up = Round(rank, n, rank, COPY)
    down = Round(n, rank, 0, COPY, count=n)
    return Schedule("all_gather", n, n, [up, down], helpers=int(n > 1))
