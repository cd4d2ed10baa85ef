"""Reduce-scatter, then gather: a ring adds up a piece on every rank, the root collects them."""

from ...schedule import Schedule
from ...verbs import then
from ..registry import algorithm, pick


@algorithm(
    "reduce",
    each="reduce_scatter('ring', n, S) + gather('binomial', n, S)",
    good="large S, many ranks",
    bad="small S: n - 1 + log2(n) steps",
    source="Thakur, Rabenseifner and Gropp 2005, doi:10.1177/1094342005051521",
)
def reduce_scatter_gather(n: int) -> Schedule:
    return then(pick("reduce_scatter", "ring", n), pick("gather", "binomial", n))
