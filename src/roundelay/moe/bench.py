"""Measure dispatch and combine by each scheme: between processes, or on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..simulate import Clock
from ..simulate.overlap import CARDS, Card
from ..topology import Cluster
from .bounds import Bound, Link, bound
from .experts import Placement
from .fp8 import BLOCK
from .gate import choose, skewed_scores, uniform_scores
from .layout import Layout, nodes
from .schemes import SCHEMES, Copies, build, combine, copies

if TYPE_CHECKING:
    from ..communicator import Communicator

SAMPLE: Final = 1 << 14
"""Tokens, those of all cards together, that are routed one by one on the clock; of more, so many
stand for all."""
BYTES: Final = {"fp8": (1, 2), "bfloat16": (2, 2), "float32": (4, 4)}
"""Bytes of a number there and back: FP8 comes back as bfloat16."""
SENDERS: Final = 20
"""Multiprocessors that send, in DeepSeek-V3's kernels (arXiv 2412.19437, section 3.2.2)."""


@dataclass(frozen=True)
class Load:
    """What is dispatched.

    Attributes:
        nodes, cards: nodes, and cards of each.
        experts: routed experts in all, the same number on each card.
        top_k: experts of a token.
        tokens: of each card.
        hidden: numbers of a token.
        max_nodes: nodes that the gate lets a token go to; None is for all.
        dtype: fp8, bfloat16 or float32.
        scales: whether the scales of FP8 are counted.
        scores: [token, expert], those of all cards in turn; None is for drawn ones.
        skew: of drawn scores, see `skewed_scores`; 0 is for uniform ones.
        seed: of drawn scores.
        redundant: slots beside one for each expert, given by the load that these scores make; None
            is for every expert once, in order.
    """

    nodes: int
    cards: int
    experts: int = 256
    top_k: int = 8
    tokens: int = 4096
    hidden: int = 7168
    max_nodes: int | None = None
    dtype: str = "fp8"
    scales: bool = False
    scores: npt.NDArray[np.floating[Any]] | None = None
    skew: float = 0.0
    seed: int = 1
    redundant: int | None = None

    def __post_init__(self) -> None:
        for name in ("nodes", "cards", "experts", "top_k", "tokens", "hidden"):
            if getattr(self, name) < 1:
                raise RoundelayError(f"{name} = {getattr(self, name)}; expected 1 or more")
        if self.dtype not in BYTES:
            raise RoundelayError(f"dtype {self.dtype!r}; expected one of {', '.join(BYTES)}")
        self._check_experts()
        given = self.scores
        if given is not None and (given.shape[1] != self.experts or len(given) < self.ranks):
            raise RoundelayError(
                f"scores of {given.shape[0]} tokens for {given.shape[1]} experts; expected "
                f"{self.ranks} tokens or more, and {self.experts} experts"
            )

    def _check_experts(self) -> None:
        """See that they can be dealt out, and chosen."""
        if self.experts % self.ranks:
            raise RoundelayError(
                f"{self.experts} experts on {self.ranks} cards; expected a multiple of the cards"
            )
        slots = self.experts + (self.redundant or 0)
        if slots < self.experts or slots % self.ranks:
            raise RoundelayError(f"{self.redundant} redundant experts on {self.ranks} cards; "
                                 "expected a multiple of the cards")  # fmt: skip
        if self.max_nodes is not None and self.max_nodes < 1:
            raise RoundelayError(f"max_nodes = {self.max_nodes}; expected 1 or more")
        reached = min(self.nodes, self.max_nodes or self.nodes)
        most = self.experts // self.nodes * reached
        if self.top_k > most:
            raise RoundelayError(f"top_k = {self.top_k}; expected 1 to {most}, the experts that a "
                                 "token may go to")  # fmt: skip

    @property
    def ranks(self) -> int:
        """Cards in all."""
        return self.nodes * self.cards

    @property
    def rows(self) -> tuple[float, float]:
        """Bytes of a token, there and back."""
        there, back = (self.hidden * each for each in BYTES[self.dtype])
        scaled = self.dtype == "fp8" and self.scales
        return there + (4 * -(-self.hidden // BLOCK) if scaled else 0), back

    def layout(self, most: int | None = None) -> Layout:
        """The tokens of all cards, or as many as there are scores for, or `most`."""
        each = self.tokens if most is None else max(1, min(self.tokens, most // self.ranks))
        if self.scores is not None:
            each = min(each, len(self.scores) // self.ranks)
            scores = self.scores[: each * self.ranks]
        elif self.skew:
            scores = skewed_scores(each * self.ranks, self.experts, self.skew, self.seed)
        else:
            scores = uniform_scores(each * self.ranks, self.experts, self.seed)
        chosen = choose(scores, self.top_k, self.nodes, self.max_nodes).experts
        return Layout.of(chosen, np.repeat(np.arange(self.ranks), each), self._placed(chosen))

    def _placed(self, chosen: npt.NDArray[np.integer[Any]]) -> Placement:
        if self.redundant is None:
            return Placement.even(self.experts, self.ranks)
        slots = (self.experts + self.redundant) // self.ranks
        limited = self.max_nodes is not None and self.max_nodes < self.nodes
        load = np.bincount(chosen.ravel(), minlength=self.experts)
        return Placement.balanced(load, self.ranks, slots, self.nodes if limited else 1)


@dataclass(frozen=True)
class Figure:
    """What a scheme takes.

    Attributes:
        scheme: its name.
        copies: of a token, in the mean.
        sent: bytes that a card sends to other nodes, in the mean, there and back.
        inside: bytes that it sends inside its node.
        times: seconds, there and back.
        bounds: the least seconds by rates of links; None where they are not known.
    """

    scheme: str
    copies: Copies
    sent: tuple[float, float]
    inside: tuple[float, float]
    times: tuple[float, float]
    bounds: tuple[Bound, Bound] | None = None


def on_clock(load: Load, cluster: Cluster) -> Iterator[Figure]:
    """Each scheme on a cluster.

    Raises:
        RoundelayError: the load does not fit the cluster.
    """
    if (load.nodes, load.cards) != (cluster.size // cluster.cards, cluster.cards):
        raise RoundelayError(
            f"{load.nodes} nodes of {load.cards} cards, and {cluster.name} has "
            f"{cluster.size // cluster.cards} of {cluster.cards}"
        )
    layout = load.layout(SAMPLE)
    link = Link(cluster.network_rate, cluster.inside.rate)
    stands_for = load.tokens * load.ranks / len(layout.home)
    for scheme in SCHEMES:
        there = build(scheme, layout, load.cards, load.max_nodes)
        times = tuple(
            Clock(s, cluster).time(round(s.chunks * row * stands_for)).time
            for s, row in zip((there, combine(there)), load.rows, strict=True)
        )
        yield _figure(load, layout, scheme, (times[0], times[1]), link)


def measured(load: Load, comm: Communicator, iters: int = 10) -> Iterator[Figure]:
    """Each scheme between processes, in turns; every rank must go through it.

    The time of a call is that of the slowest rank, from a barrier on; the median counts.
    """
    from .ways import exchange  # it needs the native core

    if comm.ranks != load.ranks:
        raise RoundelayError(f"{load.nodes} nodes of {load.cards} cards, and {comm.ranks} ranks; "
                             "expected as many")  # fmt: skip
    if load.dtype == "bfloat16":
        raise RoundelayError("bfloat16 cannot be added up here; expected fp8 or float32")
    layout = load.layout()
    mine = layout.targets[layout.home == comm.rank]
    x = np.random.default_rng(comm.rank).standard_normal((len(mine), load.hidden), np.float32)
    fp8 = load.dtype == "fp8"
    calls: list[Callable[[], Any]] = []
    for scheme in SCHEMES:
        handle = exchange(comm, mine, layout.slots, scheme, group=load.cards,
                          max_nodes=load.max_nodes)  # fmt: skip
        rows = handle.dispatch(x, fp8=fp8)
        calls += [partial(handle.dispatch, x, fp8=fp8), partial(handle.combine, rows)]
    medians = _medians(comm, calls, iters).tolist()
    for scheme, there, back in zip(SCHEMES, medians[::2], medians[1::2], strict=True):
        yield _figure(load, layout, scheme, (there, back))


def sender_seconds(figure: Figure, sms: int, card: Card) -> tuple[float, float]:
    """Seconds there and back that so many multiprocessors of a card can do the sending in."""
    network, nvlink = sms * card.network_of_sm, sms * card.nvlink_of_sm
    each = [max(s / network, i / nvlink) for s, i in zip(figure.sent, figure.inside, strict=True)]
    return each[0], each[1]


def card_of(cluster: Cluster) -> Card | None:
    """The card of a cluster, if it is one that is known."""
    return next((card for name, card in CARDS.items() if name in cluster.name), None)


def _figure(
    load: Load, layout: Layout, scheme: str, times: tuple[float, float], link: Link | None = None
) -> Figure:
    nodes(load.ranks, load.cards)
    of = copies(build(scheme, layout, load.cards, load.max_nodes), len(layout.home), load.cards)
    there, back = load.rows
    bounds = None
    if link is not None:
        bounds = (bound(of, load.tokens, there, link), bound(of, load.tokens, back, link))
    sent = (of.between * load.tokens * there, of.between * load.tokens * back)
    inside = (of.inside * load.tokens * there, of.inside * load.tokens * back)
    return Figure(scheme, of, sent, inside, times, bounds)


def _medians(
    comm: Communicator, calls: list[Callable[[], Any]], iters: int
) -> npt.NDArray[np.float64]:
    """[call], seconds."""
    took = np.empty((iters + 1, len(calls)))  # the first time makes the connections
    for turn in took:
        for i, call in enumerate(calls):
            comm.barrier()
            begin = time.perf_counter()
            call()
            turn[i] = time.perf_counter() - begin
    slowest = comm.all_reduce(took, op="max")[1:]
    return np.asarray(np.median(slowest, axis=0))
