"""What a card computes, and what becomes of it where a share of it does communication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ...collectives import UnknownName
from ...errors import RoundelayError
from ...topology import Cluster
from ..protocols import protocols

PEAK_LIMIT: Final = 1e18
"""Floating-point operations a second of a card, at most."""
SMS_LIMIT: Final = 100_000
"""Multiprocessors of a card, at most."""


@dataclass(frozen=True)
class Card:
    """A card, as far as a step of training asks.

    Attributes:
        peak: floating-point operations a second, dense, in the type that is computed with.
        efficiency: part of that which kernels reach while they run.
        sms: multiprocessors.
        nvlink_of_sm: bytes a second one way that one multiprocessor moves over links in a node.
        network_of_sm: bytes a second one way that one moves to and from the network.

    By default 20 multiprocessors saturate the 160 GB/s of NVLink and the 50 GB/s of InfiniBand of
    an H800 together (arXiv 2412.19437, DeepSeek-V3, section 3.2.2). Kernels that only do one of
    the two may need fewer.
    """

    peak: float
    efficiency: float = 0.5
    sms: int = 132
    nvlink_of_sm: float = 160e9 / 20
    network_of_sm: float = 50e9 / 20

    def __post_init__(self) -> None:
        _check("peak", self.peak, PEAK_LIMIT, "989e12 operations a second")
        _check("efficiency", self.efficiency, 1.0, "0.5")
        _check("sms", self.sms, SMS_LIMIT, "132")
        _check("nvlink_of_sm", self.nvlink_of_sm, 1e15, "8e9 bytes a second")
        _check("network_of_sm", self.network_of_sm, 1e15, "2.5e9 bytes a second")

    def seconds(self, operations: float) -> float:
        """That it computes so many operations."""
        return operations / (self.peak * self.efficiency)


def _check(field: str, value: float, most: float, example: str) -> None:
    if not 0 < value <= most:
        raise RoundelayError(f"card: {field} = {value:g}; expected above 0 and up to {most:g}, "
                             f"such as {example}")  # fmt: skip


CARDS: Final[Mapping[str, Card]] = MappingProxyType(
    {
        "a100": Card(312e12, sms=108),
        "h100": Card(989e12, sms=132),
        "h200": Card(989e12, sms=132),
        "h800": Card(989e12, sms=132),
    }
)
"""Cards by name; peaks in bf16 without sparsity: NVIDIA A100, H100 and H200 SXM data sheets (1,979
with sparsity). Multiprocessors: NVIDIA's white papers on the Ampere and the Hopper architecture;
H800: github.com/deepseek-ai/profile-data."""


def card(name: str) -> Card:
    """A card by name, such as "h100".

    Raises:
        UnknownName: with the nearest known names.
    """
    if name not in CARDS:
        raise UnknownName("card", name, CARDS)
    return CARDS[name]


@dataclass(frozen=True)
class Share:
    """Multiprocessors of a card that do nothing but communication, for a whole step.

    Attributes:
        sms: how many.
        card: of what.
    """

    sms: int
    card: Card

    def __post_init__(self) -> None:
        if not 0 < self.sms < self.card.sms:
            raise RoundelayError(f"{self.sms} multiprocessors for communication; expected 1 to "
                                 f"{self.card.sms - 1} of {self.card.sms}")  # fmt: skip

    @property
    def slower(self) -> float:
        """How many times longer computing takes: 1 / (1 - share)."""
        return self.card.sms / (self.card.sms - self.sms)

    def stretch(self, cluster: Cluster) -> float:
        """How many times longer bytes take on the wire, where the links could take them faster.

        The links are those to the network where there are several nodes, or else those in the node,
        at the rate that whole messages get.
        """
        rates = {p.name: p.efficiency for p in protocols(cluster)}["Simple"]
        if cluster.nodes > 1:
            full, of_sm = cluster.network_rate * rates[cluster.nics.medium], self.card.network_of_sm
        else:
            full, of_sm = cluster.inside.rate * rates[cluster.inside.medium], self.card.nvlink_of_sm
        return max(1.0, full / (self.sms * of_sm))
