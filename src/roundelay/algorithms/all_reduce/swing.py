"""Swing: halving-doubling whose peers swing from side to side: 1, -1, 3, -5, 11, ... away.

On a ring or torus these peers are nearer than those of recursive doubling.
"""

from ...schedule import Schedule
from ..registry import algorithm
from ..shapes import butterfly_all_reduce, fold, swing_peers


@algorithm(
    "all_reduce",
    messages="2*floor_log(n) + (n > pow2_below(n))",
    bytes_sent="2*S*(pow2_below(n)-1)/pow2_below(n) + S*(n > pow2_below(n))",
    steps="2*floor_log(n) + 2*(n > pow2_below(n))",
    good="rings, tori and tapered networks, 32 B to 128 MiB",
    bad="full-bandwidth switches, where distance is free",
    source="De Sensi et al. 2024 (Swing), arXiv:2401.09356",
)
def swing(n: int) -> Schedule:
    return fold(n, butterfly_all_reduce(swing_peers(n)))
