"""Links in classes of equal ones, and paths over them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .parts import Bools, Floats, Ints

Rows: TypeAlias = list[Any]
"""Link ids of the messages, an array a hop; -1 where a message has no link there."""


@dataclass(frozen=True)
class Links:
    """A class of equal links, each one way.

    Attributes:
        name: such as "card out" or "leaf up".
        medium: one of `MEDIA`.
        rate: of each, bytes a second one way.
        shape: how many, as counts of what they belong to: (nodes, cards) for one a card.
        label: a link's name, with its index in each dimension: "card {1} of node {0}, out".
        pairs: the last two indices are two different things of one kind, so that the last
            dimension is shorter by one.
        first: id of the first; ids count on from class to class.
        cables: physical links that one of these bundles.
    """

    name: str
    medium: str
    rate: float
    shape: tuple[int, ...]
    label: str
    pairs: bool = False
    first: int = 0
    cables: int = 1

    @property
    def count(self) -> int:
        """How many."""
        return math.prod(self.shape)

    def at(self, *index: Any) -> Any:
        """The ids of links from arrays of their indices, which broadcast."""
        if self.pairs:
            *before, own, other = index
            index = (*before, own, other - (other > own))
        place: Any = 0
        for size, i in zip(self.shape, index, strict=True):
            place = place * size + i
        return self.first + place

    def describe(self, id: int) -> str:
        """The name of one link."""
        return self.label.format(*self.index(id))

    def index(self, id: int) -> list[int]:
        """The indices of one link."""
        index = [int(i) for i in np.unravel_index(id - self.first, self.shape)]
        if self.pairs:
            index[-1] += index[-1] >= index[-2]
        return index


class Path(NamedTuple):
    """The ways of m messages, side by side.

    Attributes:
        links: [hops, m] ids of the links in their order, -1 where a way has fewer.
        latency: [m] seconds that a small message is on the way.
        between: [m] whether it leaves its node.
        forwarded: [m] whether it first crosses its node, to a card on the other's plane.
    """

    links: Ints
    latency: Floats
    between: Bools
    forwarded: Bools


class Register:
    """Classes of links, whose ids count on from class to class."""

    def __init__(self) -> None:
        self.classes: list[Links] = []
        self.count = 0

    def add(self, links: Links) -> Links:
        """Give a class its ids."""
        placed = replace(links, first=self.count)
        self.classes.append(placed)
        self.count += placed.count
        return placed

    def both_ways(
        self,
        name: str,
        medium: str,
        rate: float,
        shape: tuple[int, ...],
        label: str,
        ways: tuple[str, str] = ("out", "in"),
        cables: int = 1,
    ) -> tuple[Links, Links]:
        """Two classes of equal links, one each way."""
        out, back = (
            self.add(Links(f"{name} {way}", medium, rate, shape, f"{label}, {way}", cables=cables))
            for way in ways
        )
        return out, back
