"""Swing: recursive doubling whose peers swing from side to side, the farthest first."""

from ...schedule import Schedule
from ..registry import algorithm
from ..shapes import butterfly_all_gather, swing_peers


@algorithm(
    "all_gather",
    messages="floor_log(n) + (n > pow2_below(n))",
    bytes_sent="S/n*(pow2_below(n) - 1 + (n-1)*(n > pow2_below(n))"
    " + sum(min(n - pow2_below(n), 2**i) for i in range(floor_log(n))))",
    steps="floor_log(n) + 2*(n > pow2_below(n))",
    good="rings, tori and tapered networks: the big exchanges are near",
    bad="full-bandwidth switches, where distance is free",
    source="De Sensi et al. 2024 (Swing), arXiv:2401.09356",
)
def swing(n: int) -> Schedule:
    return butterfly_all_gather(n, swing_peers(n))


reduce_scatter = swing.transpose(bytes_sent="S*(n-1)/n")
