"""A collective's place on a cluster: how many cards, in how many nodes."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import RoundelayError
from ...topology import Cluster


@dataclass(frozen=True)
class Shape:
    """Cards that take part, node by node, and what they have.

    Attributes:
        cluster: the whole cluster.
        nodes: nodes that take part.
        cards: cards of each of them.
    """

    cluster: Cluster
    nodes: int
    cards: int

    @classmethod
    def of(cls, cluster: Cluster, n: int | None) -> Shape:
        """Place n cards (all, if None) on as few nodes as can be.

        Raises:
            RoundelayError: not so many, not whole nodes, or a machine that NCCL does not run on or
                whose links are not known well enough.
        """
        n = cluster.size if n is None else n
        if not 2 <= n <= cluster.size:
            raise RoundelayError(
                f"{n} cards; expected 2 to {cluster.size}, as {cluster.name} has {cluster.nodes} "
                f"node(s) of {cluster.cards}; give it more nodes, as in {cluster.name}:16"
            )
        if n > cluster.cards and n % cluster.cards:
            raise RoundelayError(
                f"{n} cards are no whole nodes of {cluster.cards}; expected a multiple, such as "
                f"{n // cluster.cards * cluster.cards}"
            )
        _check(cluster, min(n, cluster.cards))
        return cls(cluster, -(-n // cluster.cards), min(n, cluster.cards))

    @property
    def ranks(self) -> int:
        """Cards in all."""
        return self.nodes * self.cards

    @property
    def inside(self) -> float:
        """Line rate of a card to the others of its node that take part, bytes a second one way.

        In a mesh each other card has its share of the links, so a few cards have a part of them.
        """
        inside = self.cluster.inside
        if inside.kind != "mesh":
            return inside.rate
        share = inside.links // max(1, self.cluster.cards - 1)
        return inside.rate * share * max(1, self.cards - 1) / inside.links

    @property
    def network(self) -> float:
        """Line rate of a node to other nodes, bytes a second one way, 0 in one node.

        Without GPUDirect a byte crosses PCIe of the card a second time, so at most half of that.
        """
        nics = self.cluster.nics
        if self.nodes == 1:
            return 0.0
        rate = nics.rate * nics.count
        if not nics.gpudirect:
            rate = min(rate, self.cards * nics.card_pcie / 2)
        return rate

    @property
    def medium(self) -> str:
        """What the links inside a node are: "nvlink", "xgmi" or "pcie"."""
        return self.cluster.inside.medium

    @property
    def rack(self) -> bool:
        """Whether several hosts share the node's switch."""
        return self.cluster.hosts > 1 and self.cards > self.cluster.cards // self.cluster.hosts


def _check(cluster: Cluster, cards: int) -> None:
    if cluster.generation == "cpu":
        raise RoundelayError(
            f"NCCL runs on GPUs, and {cluster.name} has none; expected a machine such as dgx-h100; "
            "take an algorithm of this library instead of nccl"
        )
    if cluster.inside.kind == "bus" and cards > 2:
        raise RoundelayError(
            f"{cards} cards of {cluster.name} share PCIe, and their time hangs on its switches and "
            "sockets, which are not known; expected at most 2 cards of a node; measure it with "
            "nccl-tests"
        )
