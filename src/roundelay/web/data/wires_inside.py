"""What joins the cards of a node, as columns and gaps from the cards on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...topology import Cluster, Links
from .wire_rows import Box, Column, Gap, Ints, Rows, Span, classes, indices


def inside(where: Cluster, rows: Rows) -> Iterator[tuple[Column, Gap]]:
    """What joins the cards of a node, from the cards on."""
    found = classes(where)
    if "card to card" in found:
        yield _mesh(found["card to card"], rows)
        return
    each = [(r, r) for r in range(rows.number)]
    unit = rows.of(*indices(found["card out"]))
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


def _sockets(where: Cluster, rows: Rows) -> Column:
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
    where: Cluster, rows: Rows, links: Links, column: Column, side: int
) -> tuple[list[Span], Ints]:
    """Bundles of links of sockets; `side` is the dimension of the socket that counts."""
    index = indices(links)
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


def _mesh(links: Links, rows: Rows) -> tuple[Column, Gap]:
    """Links between every two cards; of a single card, one for each peer."""
    node, own, other = indices(links)
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
