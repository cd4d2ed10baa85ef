"""Direct: every rank sends to the rank after it, as nccl-tests' sendrecv does."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "send_recv",
    messages="1",
    bytes_sent="S",
    steps="1",
    good="pipeline stages, halo exchange",
    bad="nothing: there is no other way",
    source="nccl-tests sendrecv_perf",
)
def direct(n: int) -> Schedule:
    rank = np.arange(n if n > 1 else 0)
    return Schedule("send_recv", n, n, [Round(rank, (rank + 1) % n, rank, COPY)])
