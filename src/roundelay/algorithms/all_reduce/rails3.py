"""Three levels by rails: the two-level form, with the two-level form as its outer part."""

from math import prod

from ...schedule import Schedule, ScheduleError
from ..registry import algorithm, find, node_size, pairs


def _levels(n: int) -> tuple[int, int]:
    inner = node_size(n)
    return inner, node_size(n // inner)


@algorithm(
    "all_reduce",
    each="reduce_scatter(inner, groups[0], S)"
    " + reduce_scatter(inner, groups[1], S/groups[0])"
    " + all_reduce(outer, n/groups[0]/groups[1], S/groups[0]/groups[1])"
    " + all_gather(inner, groups[1], S/groups[0])"
    " + all_gather(inner, groups[0], S)",
    good="nodes in pods in a cluster: each level carries only what the faster one left",
    bad="levels of unequal size, which it refuses",
    source="Cho et al. 2019 (BlueConnect), doi:10.1147/JRD.2019.2947013",
    defaults={"groups": _levels},
    tries={"groups": pairs},
)
def rails3(
    n: int, groups: tuple[int, int], inner: str = "ring", outer: str | Schedule = "ring"
) -> Schedule:
    if len(groups) != 2 or min(groups) < 1 or n % prod(groups):
        raise ScheduleError(
            f"groups = {'x'.join(map(str, groups))}; expected two sizes, as 8x4, "
            f"whose product divides n = {n}"
        )
    rails = find("all_reduce/rails").function
    upper = rails(n // groups[0], groups[1], inner, outer)
    return rails(n, groups[0], inner, upper)
