"""Double binary tree, pipelined: half the data up and down one tree, half on its mirror image.

A rank with children in one tree is a leaf of the other, so nobody sends more than 2 S.
"""

import numpy as np

from ...schedule import Schedule
from ...verbs import on, reverse, split, then
from ..registry import algorithm
from ..shapes import binary_tree


@algorithm(
    "all_reduce",
    messages="pieces*min(n, 4)",
    bytes_sent="S*min(n, 4)/2",
    steps="2*(ceil_log(n) + pieces - 1)",
    good="medium to large S between many nodes: depth grows as log2(n)",
    bad="within a node, or when pieces do not suit S",
    source="Sanders, Speck and Traff 2009, doi:10.1016/j.parco.2009.09.001; NCCL 2.4",
    tries={"pieces": lambda n: (1, 3)},
    needs="pieces >= 1",
)
def double_tree(n: int, pieces: int = 8) -> Schedule:
    rank = np.arange(n)
    # Reversed, the last piece comes up first: so the first to come up is the first to go down.
    up = reverse(binary_tree(n, pieces, last_first=True))
    tree = then(up, binary_tree(n, pieces))
    return split(tree, on((rank + 1) % n if n % 2 else rank[::-1], tree))
