"""Bine butterfly: Swing's distances far first, so that every exchange is one run in rank order."""

import numpy as np

from ...schedule import COPY, REDUCE, Round, Schedule
from ..registry import algorithm
from ..shapes import fold, swing_peers


@algorithm(
    "all_reduce",
    messages="2*floor_log(n) + (n > pow2_below(n))",
    bytes_sent="2*S*(pow2_below(n)-1)/pow2_below(n) + S*(n > pow2_below(n))",
    steps="2*floor_log(n) + 2*(n > pow2_below(n))",
    good="oversubscribed and Dragonfly networks: less traffic between groups",
    bad="full-bandwidth switches, where distance is free",
    source="De Sensi et al. 2025 (Bine trees), arXiv:2508.17311",
)
def bine(n: int) -> Schedule:
    near_first = swing_peers(n)
    rank = np.arange(2 ** len(near_first))
    low, size = rank, 1
    halve: list[Round] = []
    double: list[Round] = []
    for peer in near_first:
        halve.insert(0, Round(rank, peer, low[peer], REDUCE, count=size))
        double.append(Round(rank, peer, low, COPY, count=size))
        low = np.where((low + size) % len(rank) == low[peer], low, low[peer])
        size *= 2
    return fold(n, Schedule("all_reduce", len(rank), len(rank), halve + double))
