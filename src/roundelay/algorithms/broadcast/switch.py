"""In-switch multicast: the root sends up once, the switch hands it to everybody."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "broadcast",
    messages="1",
    bytes_sent="S",
    steps="2",
    good="switches with multicast",
    bad="switches without multicast",
    source="NVLink SHARP multicast; Graham et al. 2016 (SHARP)",
)
def switch(n: int) -> Schedule:
    others = np.arange(1, n)
    up, down = Round(0, n, 0, COPY), Round(n, others, 0, COPY)
    return Schedule("broadcast", n, 1, [up, down] if n > 1 else [], helpers=int(n > 1))
