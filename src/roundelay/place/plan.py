"""A job placed: which card drives which rank, at what cost, and against what others choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..errors import RoundelayError
from ..i18n import Message, message
from ..topology import Cluster
from ..units import format_time
from . import baselines
from .cost import Price, price
from .exact import optimum
from .job import Ints, Job
from .objective import Objective, between_blocks, tiers
from .room import Room, Slots, slots
from .search import Score, block_layout, group_orders, search
from .traffic import Floats, Traffic, traffic

RANDOM: Final = 8
"""Placements by chance, whose mean is told."""
WORTH_SAYING: Final = 0.02
"""Part of the exchange that a job would save if it were spread."""
OPTIMUM_LIMIT: Final = 60.0
"""Seconds that the exact search may take."""


@dataclass(frozen=True, eq=False)
class Placement:
    """A job on cards.

    Attributes:
        job: the job.
        cards: [rank] numbers of cards of the cluster.
        price: the exchanges of a step there.
        against: seconds of a step where others place it, by their name.
        because: what was decided, and why.
    """

    job: Job
    cards: Ints
    price: Price
    against: dict[str, float | None]
    because: tuple[Message, ...]


class Placing:
    """A job and the room there is for it."""

    def __init__(self, job: Job, room: Room) -> None:
        """Cut it into blocks, one a node.

        Raises:
            RoundelayError: there is no room for it.
        """
        self.job, self.room, self.cluster = job, room, room.cluster
        free = room.usable(job.sliced)
        self.block = _block(job, room, free)
        self.blocks = job.ranks // self.block
        self.slots: Slots = slots(free, self.block)
        self.capacity = self.slots.room(self.cluster.nodes)
        self.traffics: list[Traffic] = traffic(job, self.block)
        self.sizes = baselines.domains(self.cluster)
        self.layout = block_layout(job, self.block)
        levels = tiers(self.cluster)
        self.objective = None
        if levels is not None:
            wholes = between_blocks(self.traffics, self.cluster, self.block)
            self.objective = Objective(wholes, self.cluster, levels)

    @property
    def messages(self) -> int:
        """Between blocks, of one placement."""
        if self.objective is None:
            return 2000 * max(1, sum(len(s.src) for t in self.traffics for s in t.stages))
        return sum(len(s.src) for w in self.objective.wholes for s in w.stages)

    def score(self) -> Score:
        """Seconds of many placements: in closed form on a tree, else link by link."""
        return self.objective or self._priced

    def _priced(self, nodes: Ints) -> Floats:
        return np.array([self.price(one).seconds for one in nodes])

    def cards(self, nodes: Ints) -> Ints:
        """[rank] cards, from [block] nodes; blocks of one node take its slots in their order."""
        order = np.argsort(nodes, kind="stable")
        first = np.searchsorted(self.slots.node, nodes[order])
        same = np.arange(len(nodes)) - np.searchsorted(nodes[order], nodes[order])
        slot = np.empty(len(nodes), np.int64)
        slot[order] = first + same
        found: Ints = self.slots.cards[slot].ravel()
        return found

    def price(self, nodes: Ints) -> Price:
        """The exchanges of a step, link by link."""
        return price(self.traffics, self.cluster, self.cards(nodes))

    def ours(self, *, order_only: bool = False, spread: bool = False) -> Ints:
        """[block] the node of each."""
        return search(self.capacity, self.blocks, self.sizes, self.layout, self.score(),
                      self.messages, more=group_orders(self.job, self.block),
                      order_only=order_only, spread=spread)  # fmt: skip

    def best_fit(self) -> Ints:
        """See `baselines.best_fit`."""
        return baselines.best_fit(self.capacity, self.blocks, self.sizes)

    def first_fit(self) -> Ints:
        """See `baselines.first_fit`."""
        return baselines.first_fit(self.capacity, self.blocks)

    def random(self) -> float:
        """Seconds of a step by chance, in the mean."""
        each = [baselines.random(self.capacity, self.blocks, seed) for seed in range(RANDOM)]
        return float(np.mean([self.price(nodes).seconds for nodes in each]))

    def optimum(self) -> float | None:
        """Seconds of a step where it is cheapest.

        Raises:
            RoundelayError: the fabric is no tree, or the search takes too long.
        """
        if self.objective is None:
            raise RoundelayError(f"the exact optimum is for trees of switches; {self.cluster.name} "
                                 f"has a {self.cluster.fabric.kind}")  # fmt: skip
        nodes = optimum(self.objective, self.capacity, self.blocks, OPTIMUM_LIMIT)
        return self.price(nodes).seconds


def place(job: Job, room: Room, *, exact: bool = False, spread: bool = False) -> Placement:
    """Choose nodes and the order of ranks for a job.

    Never dearer than first fit and best fit. A job is kept together, as one that is spread leaves
    fewer whole domains to others; what that costs it is told where it is more than `WORTH_SAYING`.

    Args:
        job: what it exchanges.
        room: what is free.
        exact: find the optimum, too; for small jobs.
        spread: it may be spread over the fabric.

    Raises:
        RoundelayError: there is no room for it.
    """
    placing = Placing(job, room)
    found = {"ours": placing.ours(spread=spread), "best_fit": placing.best_fit(),
             "first_fit": placing.first_fit()}  # fmt: skip
    kept = _placed(placing, found, {"random": placing.random()}, exact)
    if not spread and len(placing.sizes) > 2:  # there are leaves to be spread over
        seconds = placing.price(placing.ours(spread=True)).seconds
        if seconds < kept.price.seconds * (1 - WORTH_SAYING):
            kept.against["spread"] = seconds
    return kept


def order(job: Job, room: Room, *, exact: bool = False) -> Placement:
    """Choose the order of ranks for a job that has its nodes already: all that is free.

    Raises:
        RoundelayError: the nodes have no room for it, or room for more.
    """
    placing = Placing(job, room)
    if placing.capacity.sum() != placing.blocks:
        raise RoundelayError(f"{job.name}: {job.ranks} ranks, and the nodes have room for "
                             f"{placing.capacity.sum() * placing.block}; expected the nodes that "
                             "it has, and no others")  # fmt: skip
    found = {"ours": placing.ours(order_only=True), "as_given": placing.first_fit()}
    return _placed(placing, found, {"random": placing.random()}, exact)


def _placed(
    placing: Placing, found: dict[str, Ints], against: dict[str, float | None], exact: bool
) -> Placement:
    prices = {name: placing.price(nodes) for name, nodes in found.items()}
    best = min(prices, key=lambda name: prices[name].seconds)
    costs = {name: p.seconds for name, p in prices.items() if name != "ours"} | against
    costs["optimum"] = placing.optimum() if exact else None
    why = (*placing.job.notes, *_because(placing, found[best], prices[best]))
    return Placement(placing.job, placing.cards(found[best]), prices[best], costs, why)


def _block(job: Job, room: Room, free: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int:
    """Ranks of a node: as many as there is room for in nodes enough, groups kept whole if can be.

    Raises:
        RoundelayError: there is no room.
    """
    cluster, count = room.cluster, free.sum(axis=1)
    if job.ranks > count.sum():
        sliced = int(room.sliced.sum()) if not job.sliced else 0
        more = (
            ""
            if not sliced
            else f"; {sliced:,} more are sliced (MIG, time slices), which "
            "collectives are kept out of unless the job asks for them: sliced = true"
        )
        raise RoundelayError(f"{job.name}: {job.ranks:,} ranks, and {int(count.sum()):,} cards are "
                             f"free{more}")  # fmt: skip
    sizes = [k for k in range(min(cluster.cards, job.ranks), 0, -1) if job.ranks % k == 0]
    inner = job.layout[0]
    for k in sorted(sizes, key=lambda k: (k % inner != 0, -k)):
        if int((count // k).sum()) * k >= job.ranks:
            return k
    raise AssertionError("blocks of one card always fit")


def _because(placing: Placing, nodes: Ints, found: Price) -> Iterator[Message]:
    cluster: Cluster = placing.cluster
    used = np.unique(nodes)
    yield message("{ranks} ranks in blocks of {block}, on {nodes} nodes",
                  ranks=placing.job.ranks, block=placing.block, nodes=len(used))  # fmt: skip
    for level in cluster.levels:
        count = len(np.unique(used // level.nodes))
        yield message("it is in {count} of {total} domains of level {level} ({size} nodes each)",
                      count=count, total=-(-cluster.nodes // level.nodes), level=level.name,
                      size=min(level.nodes, cluster.nodes))  # fmt: skip
        if count == 1:
            break
    for part in found.parts:
        yield message("{name}: {time} a step; its busiest link is {link}", name=part.name,
                      time=format_time(part.seconds), link=part.link or "-")  # fmt: skip
    if not placing.job.sliced and placing.room.sliced.any():
        yield message("{count} sliced cards are left out: parts of a card share its links, and "
                      "have no path of their own to other cards",
                      count=int(placing.room.sliced.sum()))  # fmt: skip
