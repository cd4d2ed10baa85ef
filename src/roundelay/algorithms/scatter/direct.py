"""Direct: the root sends every rank its piece."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "scatter",
    messages="n - 1",
    bytes_sent="S*(n-1)/n",
    steps="1",
    good="large S: every piece goes straight to its rank",
    bad="many ranks and small S: n - 1 messages from the root",
    source="Chan et al. 2007, doi:10.1002/cpe.1206",
)
def direct(n: int) -> Schedule:
    other = np.arange(1, n)
    return Schedule("scatter", n, n, [Round(0, other, other, COPY)])


gather = direct.transpose(messages="1", bytes_sent="S/n")
