"""Direct: the root sends everything to everybody itself."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "broadcast",
    messages="n - 1",
    bytes_sent="S*(n-1)",
    steps="1",
    good="few ranks that all read from the root's memory",
    bad="many ranks: the root's link carries n - 1 copies",
    source="Chan et al. 2007, doi:10.1002/cpe.1206",
)
def direct(n: int) -> Schedule:
    return Schedule("broadcast", n, 1, [Round(0, np.arange(1, n), 0, COPY)])


reduce = direct.transpose(messages="1", bytes_sent="S")
