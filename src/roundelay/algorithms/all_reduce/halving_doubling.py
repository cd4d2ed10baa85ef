"""Halving-doubling (Rabenseifner): halve the data with near ranks first, then double it again.

Near first (distance 1, 2, 4 while halving) keeps the big exchanges inside a node, and sums in
the same tree as recursive doubling.
"""

from ...schedule import Schedule
from ..registry import algorithm
from ..shapes import butterfly_all_reduce, doubling_peers, fold


@algorithm(
    "all_reduce",
    messages="2*floor_log(n) + (n > pow2_below(n))",
    bytes_sent="2*S*(pow2_below(n)-1)/pow2_below(n) + S*(n > pow2_below(n))",
    steps="2*floor_log(n) + 2*(n > pow2_below(n))",
    good="medium S: the bytes of a ring in 2 log2(n) steps",
    bad="n just above a power of two, where the fold sends S once more",
    source="Rabenseifner 2004, doi:10.1007/978-3-540-24685-5_1",
)
def halving_doubling(n: int) -> Schedule:
    return fold(n, butterfly_all_reduce(doubling_peers(n)))
