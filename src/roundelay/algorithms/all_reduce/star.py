"""Star: everybody sends everything to rank 0, who adds it up and sends the sum back.

The baseline that jams: the leader's link carries n - 1 times what any other does, both ways.
"""

from ...schedule import Schedule
from ...verbs import then
from ..registry import algorithm, pick


@algorithm(
    "all_reduce",
    messages="n - 1",
    bytes_sent="S*(n-1)",
    steps="2",
    good="two ranks, or a few bytes between few ranks",
    bad="everything else: the leader's link is the bottleneck",
    source="folklore; parameter servers with one server",
)
def star(n: int) -> Schedule:
    return then(pick("reduce", "direct", n), pick("broadcast", "direct", n))
