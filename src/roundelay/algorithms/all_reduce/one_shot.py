"""One-shot: everybody sends everything to everybody, and each adds up for itself.

All add in rank order (copy from rank 0, then reduce 1, 2, ..., itself included), so that all
get the same bits.
"""

import numpy as np

from ...schedule import COPY, REDUCE, Round, Schedule, ScheduleError
from ..registry import algorithm


@algorithm(
    "all_reduce",
    messages="n - 1",
    bytes_sent="S*(n-1)",
    steps="1",
    good="up to tens of KB inside one NVLink or shared-memory domain",
    bad="anything larger: n - 1 times the data leaves every rank",
    source="NVIDIA TensorRT-LLM custom all-reduce; MSCCL++",
    dense=True,
)
def one_shot(n: int) -> Schedule:
    if n > 4096:
        raise ScheduleError(
            f"one_shot has n * n moves and is built up to 4,096 ranks, not {n:,}; "
            "`cost` counts it by its formulas"
        )
    rank = np.arange(n if n > 1 else 0)
    src, dst = np.repeat(rank, n), np.tile(rank, n)
    return Schedule("all_reduce", n, 1, [Round(src, dst, 0, np.where(src == 0, COPY, REDUCE))])
