"""Bine tree: a binomial tree whose distances are Swing's, the farthest first."""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ...verbs import on, then
from ..registry import algorithm
from ..shapes import folded, swing_peers


@algorithm(
    "broadcast",
    messages="floor_log(n) + (n > pow2_below(n))",
    bytes_sent="S*(floor_log(n) + (n > pow2_below(n)))",
    steps="floor_log(n) + (n > pow2_below(n))",
    good="oversubscribed and Dragonfly networks: less traffic between groups",
    bad="large S: the root sends all of it log2(n) times",
    source="De Sensi et al. 2025 (Bine trees), arXiv:2508.17311",
)
def bine(n: int) -> Schedule:
    has, rounds = np.zeros(1, np.int64), []
    peers = swing_peers(n)
    for peer in reversed(peers):
        rounds.append(Round(has, peer[has], 0, COPY))
        has = np.r_[has, peer[has]]
    core = Schedule("broadcast", len(has), 1, rounds)
    if n == len(has):
        return core
    pairs, keepers = folded(n)
    return then(on(keepers, core), on(pairs, Schedule("broadcast", 2, 1, [Round(0, 1, 0, COPY)])))


reduce = bine.transpose(messages="1", bytes_sent="S")
