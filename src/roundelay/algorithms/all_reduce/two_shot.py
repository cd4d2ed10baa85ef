"""Two-shot: everybody adds up one piece from all the others, then gives it to all of them.

All-reduce is reduce-scatter, then all-gather; here both go directly.
"""

from ...schedule import Schedule
from ...verbs import then
from ..registry import algorithm, pick


@algorithm(
    "all_reduce",
    messages="2*(n-1)",
    bytes_sent="2*S*(n-1)/n",
    steps="2",
    good="medium to large S where every rank reaches every other: switches, shared memory",
    bad="many ranks: n - 1 messages each way, all at once",
    source="NVIDIA TensorRT-LLM custom all-reduce; MSCCL++",
    dense=True,
)
def two_shot(n: int) -> Schedule:
    return then(pick("reduce_scatter", "direct", n), pick("all_gather", "direct", n))
