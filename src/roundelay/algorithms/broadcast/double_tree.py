"""Double tree, pipelined: the root feeds half the data to each of two binary trees.

A rank with children in one tree is a leaf of the other.
"""

import numpy as np

from ...schedule import Schedule
from ...verbs import on, split
from ..registry import algorithm
from ..shapes import binary_tree


@algorithm(
    "broadcast",
    messages="2*pieces",
    bytes_sent="S",
    steps="ceil_log(n) + pieces - 1",
    good="medium to large S, many ranks: S leaves each rank once, log2(n) deep",
    bad="small S, where pieces only add messages",
    source="Sanders, Speck and Traff 2009, doi:10.1016/j.parco.2009.09.001",
    tries={"pieces": lambda n: (1, 3)},
    needs="pieces >= 1",
)
def double_tree(n: int, pieces: int = 8) -> Schedule:
    tree = binary_tree(n, pieces)
    others = np.arange(1, n)
    other_order = others[::-1] if n % 2 else np.roll(others, -1)
    return split(tree, on(np.r_[0, other_order], tree))


reduce = double_tree.transpose()
