"""Two levels by rails: reduce-scatter in the node, all-reduce on each rail, all-gather in the node.

The cards with one index in every node form a rail, so each network card carries S / group.
"""

from ...schedule import Schedule
from ...verbs import on, then
from ..registry import algorithm, divisors, node_size, pick
from ..shapes import nodes


@algorithm(
    "all_reduce",
    each="reduce_scatter(inner, group, S) + all_reduce(outer, n/group, S/group)"
    " + all_gather(inner, group, S)",
    good="a network card a rank: the default for GPU nodes",
    bad="nodes of unequal size, which it refuses",
    source="Cho et al. 2019 (BlueConnect), doi:10.1147/JRD.2019.2947013",
    defaults={"group": node_size},
    tries={"group": divisors},
)
def rails(n: int, group: int, inner: str = "ring", outer: str | Schedule = "ring") -> Schedule:
    rows = nodes(n, group)
    return then(
        on(rows, pick("reduce_scatter", inner, group)),
        on(rows.T, pick("all_reduce", outer, n // group)),
        on(rows, pick("all_gather", inner, group)),
    )
