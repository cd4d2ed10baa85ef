"""A cluster from its top switches down to its cards, as columns of boxes with links between them.

What is drawn is a range of cards, in at most eight rows: groups of nodes, nodes, groups of cards,
or cards. Left of the rows stands what leads out of a node, right of them what is inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...topology import Cluster, Level, Links
from .wire_rows import Box, Column, Gap, Ints, Rows, Span, classes, indices
from .wires_inside import inside


class Picture(NamedTuple):
    """Columns from left to right, the gap after each but the last, and the column of the rows."""

    columns: list[Column]
    gaps: list[Gap]
    middle: int


def picture(where: Cluster, first: int, last: int) -> Picture:
    """What is drawn of the cards `first` to `last`; whole nodes where there are several."""
    rows = Rows(where, first, last)
    above, below = list(_above(where, rows)), list(inside(where, rows))
    columns: list[Column] = [rows.column()]
    gaps: list[Gap] = []
    for column, gap in above:
        columns.insert(0, column)
        gaps.insert(0, gap)
    for column, gap in below:
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


def _above(where: Cluster, rows: Rows) -> Iterator[tuple[Column, Gap]]:
    """What leads out of the nodes, from the cards on."""
    found = classes(where)
    each = [(r, r) for r in range(rows.number)]
    if "card PCIe out" in found:
        unit = rows.of(*indices(found["card PCIe out"]))
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
        _, own, other = indices(far)
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


def _level(where: Cluster, rows: Rows, level: Level) -> Column:
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
    group, _ = indices(links)
    return _numbered([box.numbers for box in column.boxes], group)


def _numbered(spans: list[Span], number: Ints) -> Ints:
    """The span that a number is in, -1 for none."""
    found = np.full(number.shape, -1)
    for k, (low, high) in enumerate(spans):
        found[(number >= low) & (number <= high)] = k
    return found


def _ports(where: Cluster, rows: Rows, links: Links) -> tuple[list[Span], Ints]:
    """Bundles of network cards: one for each row, or for the rows whose cards share one."""
    node, port = indices(links)
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


def _torus(where: Cluster, rows: Rows, links: Links) -> Gap:
    """Links of nodes to their neighbours."""
    node, dim, back = indices(links)
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
