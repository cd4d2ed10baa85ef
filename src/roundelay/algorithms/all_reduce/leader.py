"""Two levels by leader: reduce inside each node, all-reduce between the leaders, broadcast inside.

Nodes need not be equal: the last one may be smaller.
"""

import numpy as np

from ...schedule import Schedule
from ...verbs import on, then
from ..registry import algorithm, divisors, pick
from ..shapes import nodes


@algorithm(
    "all_reduce",
    messages="all_reduce(outer, ceil(n/group), S) + broadcast(inner, group, S)",
    bytes_sent="all_reduce(outer, ceil(n/group), S) + broadcast(inner, group, S)",
    steps="reduce(inner, group, S) + all_reduce(outer, ceil(n/group), S)"
    " + broadcast(inner, group, S)",
    good="one network card a node, small S, nodes of unequal size",
    bad="several network cards a node: only the leader's is used",
    source="Zhu, Goodell, Gropp and Thakur 2009 (hierarchical collectives in MPICH2)",
    defaults={"group": lambda n: min(8, (n + 1) // 2)},
    tries={"group": divisors},
)
def leader(n: int, group: int, inner: str = "binomial", outer: str | Schedule = "ring") -> Schedule:
    full, rest = nodes(n, group, equal=False), np.arange(n - n % group, n)[None]
    rows = [r for r in (full, rest) if r.size]

    def inside(what: str) -> list[Schedule]:
        return [on(r, pick(what, inner, r.shape[1])) for r in rows]

    leaders = np.arange(0, n, group)
    between = on(leaders, pick("all_reduce", outer, len(leaders)))
    return then(inside("reduce"), between, inside("broadcast"))
