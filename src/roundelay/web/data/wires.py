"""A cluster from its top switches down to its cards, as columns of boxes with links between them.

What is drawn is a range of cards, in at most eight rows: groups of nodes, nodes, groups of cards,
or cards. Left of the rows stands what leads out of a node, right of them what is inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from ...topology import Cluster, Level, Links

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


class Picture(NamedTuple):
    """Columns from left to right, the gap after each but the last, and the column of the rows."""

    columns: list[Column]
    gaps: list[Gap]
    middle: int


def picture(where: Cluster, first: int, last: int) -> Picture:
    """What is drawn of the cards `first` to `last`; whole nodes where there are several."""
    rows = _Rows(where, first, last)
    above, inside = list(_above(where, rows)), list(_inside(where, rows))
    columns: list[Column] = [rows.column()]
    gaps: list[Gap] = []
    for column, gap in above:
        columns.insert(0, column)
        gaps.insert(0, gap)
    for column, gap in inside:
        columns.append(column)
        gaps.append(gap)
    if len(columns[-1].boxes) > rows.number:  # peers of a single card, which is as high as they
        _stretch(columns[:-1], gaps[:-1], len(columns[-1].boxes))
    return Picture(columns, gaps, len(above))


def _stretch(columns: list[Column], gaps: list[Gap], rows: int) -> None:
    for box in (box for column in columns for box in column.boxes):
        box.rows = 0, rows - 1
    for gap in gaps:
        gap.bundles[:] = [(0, rows - 1)] * len(gap.bundles)


class _Rows:
    """The rows: `width` nodes each, or `width` cards of one node."""

    def __init__(self, where: Cluster, first: int, last: int) -> None:
        self.where, cards = where, where.cards
        self.node, to = first // cards, last // cards
        self.single = self.node == to
        if self.single:
            begin, end, unit = first % cards, last % cards, cards // where.hosts
        else:
            begin, end, unit = self.node, to, where.levels[0].nodes if where.levels else 1
        self.width = _width(end - begin + 1, unit)
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


def _width(count: int, unit: int) -> int:
    """How many go into a row: a divisor of a unit (a leaf's nodes, a host's cards), or whole ones.

    One for each row as long as there is room.
    """
    width = -(-count // ROWS)
    if width >= unit:
        return -(-width // unit) * unit
    return next(w for w in range(width, unit + 1) if unit % w == 0)


def _index(links: Links) -> tuple[Ints, ...]:
    """[link], its index in each dimension; of pairs the last is that of the other."""
    found = np.unravel_index(np.arange(links.count), links.shape)
    if links.pairs:
        *before, own, other = found
        return (*before, own, other + (other >= own))
    return tuple(found)


def _classes(where: Cluster) -> dict[str, Links]:
    return {links.name: links for links in where.links}


def _inside(where: Cluster, rows: _Rows) -> Iterator[tuple[Column, Gap]]:
    """What joins the cards of a node, from the cards on."""
    found = _classes(where)
    if "card to card" in found:
        yield _mesh(found["card to card"], rows)
        return
    each = [(r, r) for r in range(rows.number)]
    unit = rows.of(*_index(found["card out"]))
    kind = where.inside.kind if where.inside.kind == "switch" else "socket"
    column = rows.boxes("nvswitch" if kind == "switch" else "host")
    if kind == "socket" and rows.single and where.sockets > 1:
        column = _sockets(where, rows)
    yield column, Gap(found["card out"], found["card in"], each, unit, unit)
    for out, into, name in (("socket out", "socket in", "memory"),
                            ("between sockets", "between sockets", "sockets")):  # fmt: skip
        if out in found:
            bundles, unit = _by_socket(where, rows, found[out], column, 1)
            other = _by_socket(where, rows, found[into], column, 2)[1] if out == into else unit
            yield rows.boxes(name), Gap(found[out], found[into], bundles, unit, other)


def _sockets(where: Cluster, rows: _Rows) -> Column:
    """The sockets of the node whose cards are rows."""
    boxes = []
    for socket in range(where.sockets):
        low = -(-socket * where.cards // where.sockets)
        high = -(-(socket + 1) * where.cards // where.sockets) - 1
        seen = [r for r in range(rows.number)
                if rows.span(r)[0] <= high and rows.span(r)[1] >= low]  # fmt: skip
        base = rows.node * where.cards
        if seen:
            boxes.append(Box((seen[0], seen[-1]), (socket, socket), (base + low, base + high)))
    return Column("socket", boxes)


def _by_socket(
    where: Cluster, rows: _Rows, links: Links, column: Column, side: int
) -> tuple[list[Span], Ints]:
    """Bundles of links of sockets; `side` is the dimension of the socket that counts."""
    index = _index(links)
    if column.kind != "socket":
        first = index[side] * where.cards // where.sockets
        node_only = rows.of(index[0], np.full_like(first, rows.first))
        every = rows.boxes("").boxes
        unit = np.where(node_only >= 0, 0, -1) if rows.single else node_only
        return [box.rows for box in every], unit
    place = {box.numbers[0]: k for k, box in enumerate(column.boxes)}
    numbered = np.array([place.get(s, -1) for s in range(where.sockets)])
    unit = np.where(index[0] == rows.node, numbered[index[side]], -1)
    return [box.rows for box in column.boxes], unit


def _mesh(links: Links, rows: _Rows) -> tuple[Column, Gap]:
    """Links between every two cards; of a single card, one for each peer."""
    node, own, other = _index(links)
    out, into = rows.of(node, own), rows.of(node, other)
    if not (rows.single and rows.number == rows.width == 1):
        each = [(r, r) for r in range(rows.number)]
        return rows.boxes("mesh"), Gap(links, links, each, out, into)
    peers = [k for k in range(rows.where.cards) if k != rows.first]
    place = np.full(rows.where.cards, -1)
    place[peers] = np.arange(len(peers))
    base = rows.node * rows.where.cards
    boxes = [Box((i, i), (k, k), (base + k, base + k)) for i, k in enumerate(peers)]
    gap = Gap(links, links, [b.rows for b in boxes], np.where(out == 0, place[other], -1),
              np.where(into == 0, place[own], -1))  # fmt: skip
    return Column("cards", boxes), gap


def _above(where: Cluster, rows: _Rows) -> Iterator[tuple[Column, Gap]]:
    """What leads out of the nodes, from the cards on."""
    found = _classes(where)
    each = [(r, r) for r in range(rows.number)]
    if "card PCIe out" in found:
        unit = rows.of(*_index(found["card PCIe out"]))
        column = Column("nic", [Box(b.rows, b.numbers, b.cards) for b in rows.column().boxes])
        yield column, Gap(found["card PCIe out"], found["card PCIe in"], each, unit, unit)
    if "torus" in found:
        yield rows.boxes("torus"), _torus(where, rows, found["torus"])
    if not where.levels:
        return
    bundles, unit = _ports(where, rows, found["NIC out"])
    steps = list(_levels(where.levels))
    column = _level(where, rows, steps[0])
    yield column, Gap(found["NIC out"], found["NIC in"], bundles, unit, unit)
    for level, upper in pairwise(steps):
        unit = _of_level(column, found[f"{level.name} up"])
        gap = Gap(found[f"{level.name} up"], found[f"{level.name} down"],
                  [b.rows for b in column.boxes], unit, unit)  # fmt: skip
        column = _level(where, rows, upper)
        yield column, gap
    if "group to group" in found:
        far = found["group to group"]
        _, own, other = _index(far)
        numbers = [b.numbers for b in column.boxes]
        gap = Gap(far, far, [b.rows for b in column.boxes], _numbered(numbers, own),
                  _numbered(numbers, other))  # fmt: skip
        yield rows.boxes("groups"), gap


def _levels(levels: Sequence[Level]) -> Iterator[Level]:
    """Those that join more than the one below does."""
    below = 0
    for level in levels:
        if level.count != below:
            yield level
        below = level.count


def _level(where: Cluster, rows: _Rows, level: Level) -> Column:
    """The switches of a level above the rows."""
    boxes: list[Box] = []
    for r in range(rows.number):
        low, high = (rows.node, rows.node) if rows.single else rows.span(r)
        numbers = low // level.nodes, high // level.nodes
        if boxes and boxes[-1].numbers[1] >= numbers[0]:
            boxes[-1].rows = boxes[-1].rows[0], r
            continue
        nodes = numbers[0] * level.nodes, min((numbers[1] + 1) * level.nodes, where.nodes)
        cards = nodes[0] * where.cards, nodes[1] * where.cards - 1
        boxes.append(Box((r, r), numbers, cards))
    return Column(level.name, boxes, level.parts)


def _of_level(column: Column, links: Links) -> Ints:
    group, _ = _index(links)
    return _numbered([box.numbers for box in column.boxes], group)


def _numbered(spans: list[Span], number: Ints) -> Ints:
    """The span that a number is in, -1 for none."""
    found = np.full(number.shape, -1)
    for k, (low, high) in enumerate(spans):
        found[(number >= low) & (number <= high)] = k
    return found


def _ports(where: Cluster, rows: _Rows, links: Links) -> tuple[list[Span], Ints]:
    """Bundles of network cards: one for each row, or for the rows whose cards share one."""
    node, port = _index(links)
    first = -(-port * where.cards // where.ports)
    if not rows.single:
        return [(r, r) for r in range(rows.number)], rows.of(node, first)
    card = np.arange(where.cards)
    used = card * where.ports // where.cards
    row = rows.of(np.full_like(card, rows.node), card)
    bundles: list[Span] = []
    unit_of_port = np.full(where.ports, -1)
    for p in range(where.ports):
        seen = row[(used == p) & (row >= 0)]
        if not seen.size:
            continue
        span = int(seen.min()), int(seen.max())
        if span not in bundles:
            bundles.append(span)
        unit_of_port[p] = bundles.index(span)
    return bundles, np.where(node == rows.node, unit_of_port[port], -1)


def _torus(where: Cluster, rows: _Rows, links: Links) -> Gap:
    """Links of nodes to their neighbours."""
    node, dim, back = _index(links)
    dims = np.array(where.fabric.dims)
    stride = np.array([math.prod(where.fabric.dims[d + 1 :]) for d in range(len(dims))])
    at = node // stride[dim] % dims[dim]
    to = node + ((at + np.where(back == 1, -1, 1)) % dims[dim] - at) * stride[dim]
    zero = np.full_like(node, rows.first)
    own, other = rows.of(node, zero), rows.of(to, zero)
    bundles = [(0, rows.number - 1)] if rows.single else [(r, r) for r in range(rows.number)]
    if rows.single:
        own, other = (np.where(x >= 0, 0, -1) for x in (own, other))
    return Gap(links, links, bundles, own, other)
