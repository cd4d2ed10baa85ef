"""Rows of a picture of a cluster, and what its columns and the links between them are made of."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from ...topology import Cluster, Links

Ints = npt.NDArray[np.int64]
Span = tuple[int, int]

ROWS: Final = 8
"""Rows, at most, unless the peers of a card in a mesh are more."""


class Box(msgspec.Struct):
    """Things of one kind.

    Attributes:
        rows: first and last.
        numbers: first and last of the things, as they are counted where they stand.
        cards: first and last card of the cluster below them, to look closer.
    """

    rows: Span
    numbers: Span
    cards: Span


class Column(msgspec.Struct):
    """Boxes above one another: `kind` is "nodes", "cards", "leaf" and so on.

    `each` tells how many switches stand in a box for each of its numbers.
    """

    kind: str
    boxes: list[Box]
    each: int = 1


class Gap(NamedTuple):
    """Links between two columns.

    Attributes:
        out, into: those that lead away from cards, and towards them.
        bundles: rows of each bundle.
        out_of, into_of: [link of the class], its bundle; -1 for none.
    """

    out: Links
    into: Links
    bundles: list[Span]
    out_of: Ints
    into_of: Ints


class Rows:
    """The rows: `width` nodes each, or `width` cards of one node."""

    def __init__(self, where: Cluster, first: int, last: int) -> None:
        self.where, cards = where, where.cards
        self.node, to = first // cards, last // cards
        self.single = self.node == to
        if self.single:
            begin, end, unit = first % cards, last % cards, cards // where.hosts
        else:
            begin, end, unit = self.node, to, where.levels[0].nodes if where.levels else 1
        self.width = width_of(end - begin + 1, unit)
        # Where rows are whole leaves or hosts, the first begins with one.
        self.first = begin - begin % self.width
        self.number = -(-(end + 1 - self.first) // self.width)

    def of(self, node: Ints, card: Ints) -> Ints:
        """The row of a card, -1 for none."""
        at = (card if self.single else node) - self.first
        row = at // self.width
        good = (at >= 0) & (row < self.number) & (~np.array(self.single) | (node == self.node))
        return np.where(good, row, -1)

    def span(self, row: int) -> Span:
        """First and last node or card of a row, as they are counted where they stand."""
        low = self.first + row * self.width
        most = self.where.cards if self.single else self.where.nodes
        return low, min(low + self.width, most) - 1

    def cards(self, row: int) -> Span:
        """First and last card of a row."""
        low, high = self.span(row)
        if self.single:
            return self.node * self.where.cards + low, self.node * self.where.cards + high
        return low * self.where.cards, (high + 1) * self.where.cards - 1

    def column(self) -> Column:
        """The rows as boxes."""
        boxes = [Box((r, r), self.span(r), self.cards(r)) for r in range(self.number)]
        return Column("cards" if self.single else "nodes", boxes)

    def boxes(self, kind: str) -> Column:
        """A box for every row, of what belongs to it; for all rows of one node."""
        cards = self.cards(0)[0], self.cards(self.number - 1)[1]
        if self.single:
            return Column(kind, [Box((0, self.number - 1), (self.node, self.node), cards)])
        return Column(kind, [Box((r, r), self.span(r), self.cards(r)) for r in range(self.number)])


def width_of(count: int, unit: int) -> int:
    """How many go into a row: a divisor of a unit (a leaf's nodes, a host's cards), or whole ones.

    One for each row as long as there is room.
    """
    width = -(-count // ROWS)
    if width >= unit:
        return -(-width // unit) * unit
    return next(w for w in range(width, unit + 1) if unit % w == 0)


def indices(links: Links) -> tuple[Ints, ...]:
    """[link], its index in each dimension; of pairs the last is that of the other."""
    found = np.unravel_index(np.arange(links.count), links.shape)
    if links.pairs:
        *before, own, other = found
        return (*before, own, other + (other >= own))
    return tuple(found)


def classes(where: Cluster) -> dict[str, Links]:
    """The classes of links by name."""
    return {links.name: links for links in where.links}
