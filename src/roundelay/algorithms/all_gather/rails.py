"""Two levels by rails: gather along each rail first, then inside the node."""

from ...schedule import Schedule
from ...verbs import on, then
from ..registry import algorithm, divisors, node_size, pick
from ..shapes import nodes


@algorithm(
    "all_gather",
    each="all_gather(outer, n/group, S/group) + all_gather(inner, group, S)",
    good="a network card a rank, fast links inside the node",
    bad="nodes of unequal size, which it refuses",
    source="Cho et al. 2019 (BlueConnect), doi:10.1147/JRD.2019.2947013",
    defaults={"group": node_size},
    tries={"group": divisors},
)
def rails(n: int, group: int, inner: str = "ring", outer: str = "ring") -> Schedule:
    rows = nodes(n, group)
    return then(
        on(rows.T, pick("all_gather", outer, n // group)),
        on(rows, pick("all_gather", inner, group)),
    )


reduce_scatter = rails.transpose(
    each="reduce_scatter(outer, n/group, S/group) + reduce_scatter(inner, group, S)"
)
