"""Two-dimensional: first inside the node to the rank with the target's index, then along its rail.

Between nodes a rank sends n / group - 1 messages instead of n - group, each `group` times larger.
"""

from collections.abc import Iterator

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm, divisors, node_size


@algorithm(
    "all_to_all",
    messages="(group-1) + (n/group-1)",
    bytes_sent="S*(group-1)/group + S*(n/group-1)/(n/group)",
    steps="(group-1) + (n/group-1)",
    good="small to medium pieces between many nodes with fast links inside",
    bad="large pieces: most bytes are sent twice",
    source="Kumar, Sabharwal, Garg and Heidelberger 2008 (Blue Gene/L, ICPP); NCCL PXN",
    defaults={"group": node_size},
    tries={"group": divisors},
    needs="group > 0 and n % group == 0",
    dense=True,
)
def hierarchical(n: int, group: int) -> Schedule:
    count = n // group
    rank = np.arange(n)
    node, local = divmod(rank, group)

    def rounds() -> Iterator[Round]:
        for d in range(1, group):
            to = (local + d) % group
            yield Round(rank, node * group + to, rank * n + to, COPY, count=count, stride=group)
        for d in range(1, count):
            to = (node + d) % count * group + local
            yield Round(rank, to, node * group * n + to, COPY, count=group, stride=n)

    return Schedule("all_to_all", n, n * n, rounds)
