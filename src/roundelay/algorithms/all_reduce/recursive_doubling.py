"""Recursive doubling: exchange everything with the rank at distance 1, 2, 4, ... and add."""

import numpy as np

from ...schedule import REDUCE, Round, Schedule
from ..formulas import pow2_below
from ..registry import algorithm
from ..shapes import doubling_peers, fold


@algorithm(
    "all_reduce",
    messages="floor_log(n) + (n > pow2_below(n))",
    bytes_sent="S*(floor_log(n) + (n > pow2_below(n)))",
    steps="floor_log(n) + 2*(n > pow2_below(n))",
    good="tiny S: the fewest steps without switches, and one tree of sums for all",
    bad="large S: everything is sent log2(n) times",
    source="Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521",
)
def recursive_doubling(n: int) -> Schedule:
    p = pow2_below(n)
    exchange = [Round(np.arange(p), peer, 0, REDUCE) for peer in doubling_peers(n)]
    return fold(n, Schedule("all_reduce", p, 1, exchange))
