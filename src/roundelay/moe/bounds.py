"""What a dispatch takes at least: bytes over the network and inside nodes, and what rates allow."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import RoundelayError
from .schemes import Copies


@dataclass(frozen=True)
class Link:
    """Rates of a card, bytes a second one way.

    Attributes:
        between: to other nodes.
        inside: to other cards of its node.
    """

    between: float
    inside: float

    def __post_init__(self) -> None:
        for name in ("between", "inside"):
            if not getattr(self, name) > 0:
                raise RoundelayError(f"{name} = {getattr(self, name)!r}; expected bytes a second")


@dataclass(frozen=True)
class Bound:
    """Least seconds, by link.

    Attributes:
        between: for the bytes over the network.
        inside: for those inside the node.
    """

    between: float
    inside: float

    @property
    def time(self) -> float:
        """Where both go on at the same time."""
        return max(self.between, self.inside)

    @property
    def binding(self) -> str:
        """Which link it is."""
        return "between" if self.between >= self.inside else "inside"


def bound(copies: Copies, tokens: int, row: float, link: Link) -> Bound:
    """The bound of a dispatch or combine.

    Args:
        copies: of a token, as `copies` counts them.
        tokens: of each card.
        row: bytes of a token.
        link: rates of a card.
    """
    carried = tokens * row
    return Bound(copies.between * carried / link.between, copies.inside * carried / link.inside)


@dataclass(frozen=True)
class Decode:
    """Decoding, where one token of each of a few requests goes through all layers.

    The defaults are those of "Insights into DeepSeek-V3" (arXiv 2505.09343, section 2.3.2): a byte
    a number there, two back, and each token to 8 routed experts and a shared one.

    Attributes:
        tokens: of a card.
        experts: copies of each token that are sent.
        hidden: numbers of a token.
        dispatched, combined: bytes of a number, there and back.
        stages: exchanges of a layer that follow one another: two micro-batches.
        layers: of the model.
    """

    tokens: int = 32
    experts: int = 9
    hidden: int = 7000
    dispatched: float = 1
    combined: float = 2
    stages: int = 2
    layers: int = 61

    def stage(self, rate: float) -> float:
        """Seconds of a dispatch and a combine at a card's `rate`, bytes a second one way."""
        if not rate > 0:
            raise RoundelayError(f"rate = {rate!r}; expected bytes a second")
        number = self.dispatched + self.combined
        return number * self.tokens * self.experts * self.hidden / rate

    def token(self, rate: float) -> float:
        """Seconds of a token through all layers, where computing hides entirely."""
        return self.stage(rate) * self.stages * self.layers
