"""Where cards stand in a picture, as their algorithm sees them: read off the moves alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

import numpy as np

from ...rounds import REDUCE
from ...schedule import Schedule

Point = tuple[float, float]
Pairs = set[tuple[int, int]]

CROWD: Final = 24
"""Ranks up to which a circle has one row."""


def places(schedule: Schedule, pairs: Iterable[tuple[int, int]]) -> tuple[str, list[Point]]:
    """How ranks and switches are laid out, and where each stands.

    Args:
        schedule: the schedule; with `group` or `groups` among its parameters it has nodes.
        pairs: who sends to whom.

    Returns:
        "switch" (in the middle of its ranks), "switches" (in levels), "star", "tree", "trees"
        (two, one upside down), "grid" (a row a node, a column a rail) or "circle"; and (x, y) of
        each, from 0 to 1, downwards.
    """
    n, links = schedule.ranks, {(min(p), max(p)) for p in pairs if p[0] != p[1]}
    if schedule.helpers == 1:
        return "switch", [*_circle(n), (0.5, 0.5)]
    if schedule.helpers:
        return "switches", _levels(schedule, links)
    if n > 2 and (leader := _leader(n, links)) is not None:
        return "star", _around(n, leader)
    if n > 3 and (tree := _tree(n, links)):
        return "tree", tree
    if n > 3 and (both := _two_trees(schedule)):
        return "trees", both
    if width := _node(schedule):
        rows = n // width
        return "grid", [((r % width + 0.5) / width, (r // width + 0.5) / rows) for r in range(n)]
    return "circle", _circle(n)


def _circle(n: int) -> list[Point]:
    """Round a circle; where there are many, every second one stands further in, to have room."""
    found = []
    for i in range(n):
        turn, far = 2 * math.pi * i / n, 0.41 if n > CROWD and i % 2 else 0.5
        found.append((round(0.5 + far * math.sin(turn), 4), round(0.5 - far * math.cos(turn), 4)))
    return found


def _around(n: int, middle: int) -> list[Point]:
    ring = iter(_circle(n - 1))
    return [(0.5, 0.5) if rank == middle else next(ring) for rank in range(n)]


def _leader(n: int, links: Pairs) -> int | None:
    """The one rank that every link has at one end."""
    return next((r for r in range(n) if len(links) == n - 1 and all(r in p for p in links)), None)


def _node(schedule: Schedule) -> int:
    """Ranks of a node, where the algorithm knows of nodes."""
    group = schedule.params.get("group") or schedule.params.get("groups")
    width = group[0] if isinstance(group, tuple) else group
    return width if isinstance(width, int) and 1 < width < schedule.ranks else 0


def _tree(n: int, links: Pairs) -> list[Point]:
    """Levels from the root down, leaves evenly; nothing where the links are no tree, or a chain."""
    near = _neighbours(links)
    root = max(range(n), key=lambda r: (len(near[r]), -r))
    if len(links) != n - 1 or len(near[root]) < 3:
        return []
    parent, order = {root: root}, [root]
    for rank in order:
        for other in sorted(near[rank] - parent.keys()):
            parent[other] = rank
            order.append(other)
    return _stacked(parent, order) if len(order) == n else []


def _stacked(parent: dict[int, int], order: list[int]) -> list[Point]:
    level = {order[0]: 0}
    below: dict[int, list[int]] = defaultdict(list)
    for rank in order[1:]:
        level[rank] = level[parent[rank]] + 1
        below[parent[rank]].append(rank)
    leaves = [r for r in _in_depth(order[0], below) if not below[r]]
    x = {rank: (i + 0.5) / len(leaves) for i, rank in enumerate(leaves)}
    for rank in reversed(order):
        if below[rank]:
            x[rank] = sum(x[r] for r in below[rank]) / len(below[rank])
    deep = max(level.values())
    return [(round(x[r], 4), (level[r] + 0.5) / (deep + 1)) for r in range(len(order))]


def _in_depth(root: int, below: dict[int, list[int]]) -> Iterable[int]:
    waiting = [root]
    while waiting:
        rank = waiting.pop()
        yield rank
        waiting += reversed(below[rank])


def _two_trees(schedule: Schedule) -> list[Point]:
    """Two trees over the same ranks, each for some pieces: one from above, one from below.

    Ranks stand in their order, each where its children are, in one tree or the other.
    """
    links: dict[int, Pairs] = defaultdict(set)
    for step in schedule.moves():
        add = np.broadcast_to(np.equal(step.op, REDUCE), step.src.shape)
        # What is copied down a tree goes the other way than what is added on its way up.
        for src, dst, piece, up in zip(*map(np.ndarray.tolist, (step.src, step.dst, step.col, add)),
                                       strict=True):  # fmt: skip
            links[piece].add((src, dst) if up else (dst, src))
    n, trees = schedule.ranks, sorted({tuple(sorted(each)) for each in links.values()})
    if len(trees) != 2 or any(len(tree) != n - 1 for tree in trees):
        return []
    up, down = (_depths(n, dict(tree)) for tree in trees)
    if not up or not down:
        return []
    high, low = max(up.values()), max(down.values())
    middle, bottom = high + 0.5, high + 1 + low
    at = [up[r] if r in up else bottom - down[r] if r in down else middle for r in range(n)]
    return [(round(r / (n - 1), 4), round(y / bottom, 4)) for r, y in enumerate(at)]


def _depths(n: int, parent: dict[int, int]) -> dict[int, int]:
    """How far below the root each rank stands that has children; nothing where that is no tree."""
    roots = set(range(n)) - parent.keys()
    depths: dict[int, int] = {}
    for rank in set(parent.values()):
        seen, at = 0, rank
        while at not in roots and seen < n:
            seen, at = seen + 1, parent[at]
        depths[rank] = seen
    return depths if len(roots) == 1 and max(depths.values()) < n else {}


def _levels(schedule: Schedule, links: Pairs) -> list[Point]:
    """Ranks below, switches above them by how far they are from the ranks."""
    n, near = schedule.ranks, _neighbours(links)
    level, edge, depth = dict.fromkeys(range(n), 0), set(range(n)), 0
    while edge:
        depth += 1
        edge = {s for r in edge for s in near[r] if s not in level}
        level |= dict.fromkeys(edge, depth)
    rows: dict[int, list[int]] = defaultdict(list)
    for place in range(n + schedule.helpers):
        rows[level.get(place, depth)].append(place)
    top = max(rows)
    x: dict[int, Point] = {}
    for height, row in rows.items():
        for i, place in enumerate(row):
            x[place] = ((i + 0.5) / len(row), round((top - height + 0.5) / (top + 1), 4))
    return [x[place] for place in range(n + schedule.helpers)]


def _neighbours(links: Pairs) -> dict[int, set[int]]:
    near: dict[int, set[int]] = defaultdict(set)
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    return near
