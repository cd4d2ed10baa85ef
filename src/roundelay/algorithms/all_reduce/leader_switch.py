"""Two levels by leader, with adding switches between the leaders."""

from ...schedule import Schedule
from ..registry import algorithm, divisors, find


@algorithm(
    "all_reduce",
    messages="all_reduce('switch', ceil(n/group), S) + broadcast(inner, group, S)",
    bytes_sent="all_reduce('switch', ceil(n/group), S) + broadcast(inner, group, S)",
    steps="reduce(inner, group, S) + 2*levels*(n > group) + broadcast(inner, group, S)",
    good="a fabric that adds, one network card a node, small S",
    bad="several network cards a node: only the leader's is used",
    source="Graham et al. 2016 (SHARP), doi:10.1109/COMHPC.2016.006",
    defaults={"group": lambda n: min(8, (n + 1) // 2)},
    needs="1 <= group <= n",
    tries={"group": divisors, "levels": lambda n: (2, 3)},
)
def leader_switch(n: int, group: int, inner: str = "binomial", levels: int = 1) -> Schedule:
    outer = find("all_reduce/switch")(-(-n // group), levels=levels)
    return find("all_reduce/leader").function(n, group, inner, outer)
