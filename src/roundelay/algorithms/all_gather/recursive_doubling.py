"""Recursive doubling: exchange all one has with the rank at distance 1, 2, 4, ...

Its transpose, recursive halving, is the reduce-scatter.
"""

from ...schedule import Schedule
from ..registry import algorithm
from ..shapes import butterfly_all_gather, doubling_peers


@algorithm(
    "all_gather",
    messages="floor_log(n) + (n > pow2_below(n))",
    bytes_sent="S/n*(pow2_below(n) - 1 + (n-1)*(n > pow2_below(n))"
    " + sum(min(n - pow2_below(n), 2**i) for i in range(floor_log(n))))",
    steps="floor_log(n) + 2*(n > pow2_below(n))",
    good="small to medium S and a power of two of ranks",
    bad="other n, where ranks left over are served in two extra steps",
    source="Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521",
)
def recursive_doubling(n: int) -> Schedule:
    return butterfly_all_gather(n, doubling_peers(n)[::-1])


reduce_scatter = recursive_doubling.transpose("recursive_halving", bytes_sent="S*(n-1)/n")
