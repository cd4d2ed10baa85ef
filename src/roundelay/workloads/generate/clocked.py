"""The steps of a token of a model that is cut over the cards of a cluster, on the clock.

One sequence, one token: every card reads its part of the weights once, and after each half of a
layer the parts are added up. Reading takes the bytes over the rate of the card's memory, which is a
lower bound; the exchanges take what the model of NCCL says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import ceil
from typing import Any, Final, NamedTuple

from ...errors import RoundelayError
from ...i18n import Message, message
from ...scaling import Speed
from ...simulate.overlap import CARDS
from ...simulate.rows import Question, row_json
from ...topology import Cluster


class Memory(NamedTuple):
    """Of a card.

    Attributes:
        size: bytes.
        rate: bytes a second.
    """

    size: float
    rate: float


MEMORY: Final = {
    "a100": Memory(80e9, 2.039e12),
    "h100": Memory(80e9, 3.35e12),
    "h200": Memory(141e9, 4.8e12),
    "h800": Memory(80e9, 3.35e12),
    "gb200": Memory(186e9, 8e12),
    "b200": Memory(180e9, 8e12),
}
"""By the name of a card: NVIDIA's data sheets of the SXM cards, of DGX B200 and of GB200 NVL72."""
ITEM: Final = 2
"""Bytes of a number, bfloat16."""


@dataclass(frozen=True)
class Large:
    """A Llama model; the defaults are those of Llama 3.1 405B (arXiv:2407.21783, table 3).

    Attributes:
        layers, hidden, inner, heads, kv_heads, vocabulary: see `cut.Shape`.
    """

    layers: int = 126
    hidden: int = 16384
    inner: int = 53248
    heads: int = 128
    kv_heads: int = 8
    vocabulary: int = 128256

    def __post_init__(self) -> None:
        wrong = any(n < 1 for n in vars(self).values())
        if wrong or self.hidden % self.heads:
            raise RoundelayError(f"{self.hidden} numbers over {self.heads} heads; expected a "
                                 "multiple, and 1 or more of everything")  # fmt: skip

    @property
    def read(self) -> int:
        """Numbers that a token reads: all matrices, and one of the embedding and the head."""
        narrow = self.hidden * self.kv_heads // self.heads
        layer = 2 * self.hidden * (self.hidden + narrow) + 3 * self.hidden * self.inner
        return self.layers * layer + self.vocabulary * self.hidden

    @property
    def weights(self) -> int:
        """Bytes of the numbers that a token reads."""
        return self.read * ITEM


def memory(cluster: Cluster) -> Memory | None:
    """Of the cards of a cluster; None where it is not known."""
    return next((of for name, of in MEMORY.items() if name in cluster.name), None)


def memory_rate(cluster: Cluster) -> float:
    """Bytes a second of the memory of a cluster's cards.

    Raises:
        RoundelayError: it is not known.
    """
    if of := memory(cluster):
        return of.rate
    raise RoundelayError(f"the memory rate of the cards of {cluster.name} is not known; give it by "
                         "--memory-rate, such as --memory-rate 3.35e12")  # fmt: skip


def lacking(cluster: Cluster, ranks: int, model: Large) -> Message | None:
    """That the weights do not fit; None where they do, or the memory is not known."""
    of = memory(cluster)
    if of is None or model.weights <= of.size * ranks:
        return None
    return message(
        "A card would hold {held} GB of weights, and has {memory} GB: cut the model over {cards} "
        "cards or more (--tp), or take weights of fewer bits.",
        held=f"{model.weights / ranks / 1e9:,.0f}", memory=f"{of.size / 1e9:.0f}",
        cards=f"{ceil(model.weights / of.size):,}",
    )  # fmt: skip


def token(cluster: Cluster, ranks: int, model: Large, rate: float) -> dict[str, Any]:
    """The steps of one token, as `walk` has them.

    Args:
        cluster: the machine.
        ranks: cards over which the model is cut.
        model: its shape.
        rate: bytes a second of a card's memory.

    Raises:
        RoundelayError: a rate that cannot be.
    """
    if not 0 < rate < math.inf:
        raise RoundelayError(f"a memory rate of {rate:g}; expected bytes a second, such as 3.35e12")
    exchanges = 2 * model.layers + 1 if ranks > 1 else 0
    row = Question("all_reduce", cluster, ranks).nccl(model.hidden * ITEM) if ranks > 1 else None
    once = row.time * 1e6 if row else 0.0
    exchange = once * exchanges if row else 0.0
    weights = model.weights / ranks
    compute = weights / rate * 1e6
    held = {"bytes_by_rank": [round(weights)] * ranks}
    named: list[tuple[str, float, dict[str, Any]]] = [
        ("weights", 0.0, held), ("compute", compute, {}),
        ("exchange", exchange, {"exchanges": exchanges}),
    ]  # fmt: skip
    steps, at = [], 0.0
    for name, duration, more in named:
        steps.append({"name": name, "token": 0, "start_us": at, "duration_us": duration, **more})
        at += duration
    return {
        "cluster": cluster.name,
        "ranks": ranks,
        "steps": steps,
        "tokens": 1,
        "token_us": at,
        "exchanges_per_token": exchanges,
        "one_exchange_us": once,
        "exchange_bytes": model.hidden * ITEM,
        "exchange_share": exchange / at,
        "parameters_read": model.read,
        "fits": lacking(cluster, ranks, model) is None if memory(cluster) else None,
        "clock": row_json(row) if row else None,
    }


PROMPT: Final = 2048
"""Tokens of the prompt by which exchanges of a prefill are priced."""


def speed(cluster: Cluster, ranks: int, model: Large, rate: float, places: int,
          start: float) -> Speed:  # fmt: skip
    """How quick an instance is over cards of a cluster, by its weights, its sums and its exchanges.

    A step reads the weights once, computes two operations a number and request, whichever is
    longer, and exchanges what all requests have; a prompt computes and exchanges. What the keys and
    values cost to read is left out, so it is a lower bound. Cards compute as `overlap.CARDS` says.

    Args:
        cluster: as in `token`.
        ranks: as in `token`.
        model: as in `token`.
        rate: as in `token`.
        places: requests that run at once.
        start: seconds until a new instance is ready.

    Raises:
        RoundelayError: the card is not known.
    """
    compute = next((c for name, c in CARDS.items() if name in cluster.name), None)
    if compute is None:
        raise RoundelayError(f"what the cards of {cluster.name} compute is not known; expected one "
                             f"of {', '.join(CARDS)}; or give measured times instead")  # fmt: skip
    one = 2 * model.read / ranks
    exchanges = 2 * model.layers + 1
    row = Question("all_reduce", cluster, ranks).nccl

    def exchanging(tokens: int) -> float:
        return exchanges * row(tokens * model.hidden * ITEM).time if ranks > 1 else 0.0

    reading = model.weights / ranks / rate
    steps = [max(reading, compute.seconds(one * n)) + exchanging(n) for n in range(1, places + 1)]
    prefill = compute.seconds(one) + exchanging(PROMPT) / PROMPT
    return Speed(prefill, tuple(steps), start)
