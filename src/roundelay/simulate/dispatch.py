"""The rate of an expert dispatch over two hops: between nodes once a node, then on to its cards.

A token goes to ``top_k`` of ``experts`` experts, spread evenly over all cards. It crosses to each
node that has one of them once, to the card with its own index there, which passes it on over
NVLink to each card that has one. Both hops are pipelined, so the slower one is the rate. The form
is that of DeepSeek-V3 (arXiv 2412.19437, section 3.2) and DeepEP (github.com/deepseek-ai/DeepEP).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

from ..errors import RoundelayError
from ..topology import Cluster
from .protocols import constants


@dataclass(frozen=True)
class DispatchRate:
    """Bytes a second a card, one way, as DeepEP counts them: a token's own node is counted too.

    Attributes:
        rate: the lower of the next two.
        by_network: what the network allows.
        by_nvlink: what NVLink allows.
        binds: "network" or "nvlink".
    """

    rate: float
    by_network: float
    by_nvlink: float
    binds: str


def groups_hit(groups: int, experts: int, top_k: int) -> float:
    """Groups that a token reaches in the mean, of equal groups of experts, each chosen once."""
    return groups * (1 - comb(experts - experts // groups, top_k) / comb(experts, top_k))


def dispatch_rate(
    cluster: Cluster, experts: int = 256, top_k: int = 8, max_nodes: int | None = 4
) -> DispatchRate:
    """The rate at which all cards of a cluster dispatch tokens at once.

    Args:
        cluster: at least two nodes on a network.
        experts: in all, a multiple of the cards.
        top_k: experts of a token.
        max_nodes: nodes that a token may go to, at most; None: no limit.

    Raises:
        RoundelayError: one node, or experts that cards cannot share evenly.
    """
    nodes, cards = cluster.nodes, cluster.size
    if nodes < 2:
        raise RoundelayError(f"{cluster.name} has one node, and nothing goes between nodes; "
                             f"expected 2 or more, as in {cluster.name}:8")  # fmt: skip
    if experts < 1 or experts % cards or not 1 <= top_k <= experts:
        raise RoundelayError(f"{experts} experts, {top_k} a token, on {cards} cards; expected a "
                             "multiple of the cards, and at most all of them a token")  # fmt: skip
    reach = min(nodes, max_nodes or nodes)
    within = experts * reach // nodes
    hit_nodes = groups_hit(reach, within, top_k)
    hit_cards = groups_hit(reach * cluster.cards, within, top_k)
    shares = constants().dispatch
    network = cluster.nics.rate * cluster.nics.count / cluster.cards * shares["network"]
    nvlink = cluster.inside.rate * shares["nvlink"]
    by_network = network * nodes / (nodes - 1)
    by_nvlink = nvlink * hit_nodes / hit_cards
    binds = "network" if by_network <= by_nvlink else "nvlink"
    return DispatchRate(min(by_network, by_nvlink), by_network, by_nvlink, binds)
