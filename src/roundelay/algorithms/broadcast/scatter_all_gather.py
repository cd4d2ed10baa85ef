"""Scatter, then all-gather (van de Geijn): the root sends S once, a ring does the rest."""

from ...schedule import Schedule
from ...verbs import then
from ..registry import algorithm, pick


@algorithm(
    "broadcast",
    each="scatter('binomial', n, S) + all_gather('ring', n, S)",
    good="large S, many ranks",
    bad="small S: log2(n) + n - 1 steps",
    source="Barnett et al. 1994 (van de Geijn); Thakur, Rabenseifner and Gropp 2005",
)
def scatter_all_gather(n: int) -> Schedule:
    return then(pick("scatter", "binomial", n), pick("all_gather", "ring", n))
