"""Two levels by rails, with adding switches: one in each node, and a tree of them for each rail."""

from ...schedule import Schedule
from ..registry import algorithm, divisors, find, node_size


@algorithm(
    "all_reduce",
    messages="2*(group > 1) + (n > group)",
    bytes_sent="(S + S/group)*(group > 1) + S/group*(n > group)",
    steps="4*(group > 1) + 2*levels*(n > group)",
    good="nodes and fabric that add (NVLS inside, SHARP between)",
    bad="nodes of unequal size, which it refuses",
    source="NCCL NVLS with CollNet; Graham et al. 2016 (SHARP)",
    defaults={"group": node_size},
    needs="group > 0 and n % group == 0",
    tries={"group": divisors, "levels": lambda n: (2, 3)},
)
def rails_switch(n: int, group: int, levels: int = 1) -> Schedule:
    outer = find("all_reduce/switch")(n // group, levels=levels)
    return find("all_reduce/rails").function(n, group, "switch", outer)
