"""What arriving jobs exchange, and what that costs in a place.

Traces say how many cards a job has, not how it is cut; so jobs take turns among three cuts, as far
as their cards go:

- dense: tensor parallel in a node, up to 16 stages, and data parallel around them, with ranks in
  that order (Grattafiori et al. 2024, Llama 3, arXiv:2407.21783, section 3.3.2)
- sharded: data parallel alone, each rank with a shard (FSDP)
- experts: up to 16 stages around data parallel, of which up to 64 ranks share the experts, of 8 a
  token (DeepSeek-AI 2024, DeepSeek-V3, arXiv:2412.19437, sections 3.2 and 4.2)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import gcd, isqrt
from typing import Final

import numpy as np

from ...errors import RoundelayError
from ...topology import Cluster
from ..baselines import best_fit, domains, first_fit
from ..job import Ints, Job, Model, parallel
from ..objective import Objective, between_blocks, tiers
from ..search import STARTS, block_layout, search
from ..traffic import traffic

CUTS: Final = ("dense", "sharded", "experts")
POLICIES: Final = ("first_fit", "best_fit", "order", "ours")
"""`order`: the nodes of best fit, and ranks in our order."""
LAYERS, HIDDEN, SEQUENCE, MICRO_BATCHES = 32, 8192, 4096, 8
"""Of the model that jobs train."""
WORTH: Final = 0.5
"""An exchange elsewhere over the one on best fit's nodes from which the others are worth taking, as
best fit leaves most room to those who come later. From 0.55 on single jobs pay for those before
them (benchmarks/place.md)."""
STAGES: Final = 16
EXPERTS: Final = 64


def cut_job(cut: str, cards: int, inside: int) -> Job:
    """A job of so many cards.

    Args:
        cut: one of `CUTS`.
        cards: of the job.
        inside: cards of a node.
    """
    model = Model(LAYERS, HIDDEN, SEQUENCE, micro_batches=MICRO_BATCHES, top_k=8,
                  sharded=cut == "sharded")  # fmt: skip
    if cut == "sharded":
        return parallel(cut, {"data": cards}, model)
    node = gcd(cards, inside)
    stages = _divisor(cards // node, min(STAGES, isqrt(cards // node)))
    if cut == "experts":
        data = cards // stages
        degrees = {"pipeline": stages, "data": data, "expert": _divisor(data, EXPERTS)}
        return parallel(cut, degrees, model)
    degrees = {"tensor": node, "pipeline": stages, "data": cards // node // stages}
    return parallel(cut, degrees, model, order=("tensor", "pipeline", "data"))


def _divisor(n: int, most: int) -> int:
    return max(k for k in range(1, min(n, most) + 1) if n % k == 0)


def room_for(cards: int, cluster: Cluster) -> int:
    """The most cards that a job has in an empty cluster, with as many in each node as this one."""
    block = _divisor(cards, cluster.cards)
    return cluster.nodes * (cluster.cards // block) * block


@dataclass(frozen=True, eq=False)
class Kind:
    """Jobs of one cut and size on one cluster."""

    job: Job
    cluster: Cluster
    _last: dict[tuple[str, bytes], tuple[Ints, float]] = field(default_factory=dict, repr=False)

    @cached_property
    def block(self) -> int:
        """Cards of a node."""
        return _divisor(self.job.ranks, self.cluster.cards)

    @cached_property
    def blocks(self) -> int:
        """Nodes, or parts of them."""
        return self.job.ranks // self.block

    @cached_property
    def objective(self) -> Objective:
        """Seconds of an exchange."""
        levels = tiers(self.cluster)
        if levels is None:
            raise RoundelayError(f"{self.cluster.name} has a {self.cluster.fabric.kind}; a cluster "
                                 "over time needs a tree of switches or a dragonfly")  # fmt: skip
        wholes = between_blocks(traffic(self.job, self.block), self.cluster, self.block)
        return Objective(wholes, self.cluster, levels)

    @cached_property
    def sizes(self) -> list[int]:
        """Nodes of a domain, by level."""
        return domains(self.cluster)

    @cached_property
    def lowest(self) -> int:
        """Nodes of a leaf, whose places are all alike."""
        return self.cluster.levels[0].nodes if self.cluster.levels else self.cluster.nodes

    @cached_property
    def cheapest(self) -> float:
        """Seconds of an exchange where all of the cluster is free.

        Raises:
            RoundelayError: the job is larger than the cluster.
        """
        most = room_for(self.job.ranks, self.cluster)
        if most < self.job.ranks:
            raise RoundelayError(f"a job of {self.job.ranks:,} cards, in parts of {self.block} a "
                                 f"node, and {self.cluster.name} has room for {most:,}; expected "
                                 "as many at most, and a number of cards that fills "
                                 "nodes")  # fmt: skip
        room = np.full(self.cluster.nodes, self.cluster.cards // self.block)
        return self.seconds(self.choose("ours", room, thorough=True))

    def seconds(self, nodes: Ints) -> float:
        """Of an exchange on [block] nodes."""
        return float(self.objective.exact(nodes)[0]) if self.blocks > 1 else 0.0

    def placed(self, policy: str, room: Ints) -> tuple[Ints, float]:
        """What `choose` gives, and an exchange there over the cheapest one, 1 or more.

        The last is kept: a job that restarts often finds the same room.
        """
        key = policy, room.tobytes()
        if key not in self._last:
            nodes = self.choose(policy, room)
            over = max(1.0, self.seconds(nodes) / self.cheapest) if self.cheapest else 1.0
            self._last.clear()
            self._last[key] = nodes, over
        return self._last[key]

    def choose(self, policy: str, room: Ints, *, thorough: bool = False) -> Ints:
        """[block] nodes, by a policy.

        Args:
            policy: one of `POLICIES`.
            room: [node] room for blocks, enough of it.
            thorough: improve what is found by exchanging blocks, which takes longer.
        """
        if policy == "first_fit":
            return first_fit(room, self.blocks)
        tight = best_fit(room, self.blocks, self.sizes)
        one_leaf = tight[0] // self.lowest == tight[-1] // self.lowest
        if policy == "best_fit" or one_leaf or not self.job.exchanges:
            return tight
        ordered = self._search(np.bincount(tight, minlength=len(room)), thorough, order_only=True)
        found = [tight, ordered]
        if policy == "ours":
            elsewhere = self._search(room, thorough)
            if self.seconds(elsewhere) < WORTH * min(self.seconds(nodes) for nodes in found):
                return elsewhere
        return min(found, key=self.seconds)

    def _search(self, room: Ints, thorough: bool, *, order_only: bool = False) -> Ints:
        messages = sum(len(s.src) for w in self.objective.wholes for s in w.stages)
        return search(room, self.blocks, self.sizes, block_layout(self.job, self.block),
                      self.objective, messages, order_only=order_only,
                      starts=STARTS if thorough else 0)  # fmt: skip
