"""The channels that NCCL's search finds on a node: how many, and how fast each is.

NCCL tries speeds from the highest down and keeps the first with the greatest sum over channels.
On a switch the search has a closed form: as many channels as the links carry. Rates are GB/s one
way, as in `tables`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from . import tables
from .shape import Shape


class Graph(NamedTuple):
    """Channels of an algorithm.

    Attributes:
        channels: how many; a run has twice as many, see `Cost.channels`.
        inside: GB/s one way of each, inside a node.
        between: the same between nodes.
    """

    channels: int
    inside: float
    between: float


def row(shape: Shape) -> str:
    """The row of the tables that is for these cards."""
    return tables.ROWS[shape.cluster.generation]


def usable(shape: Shape) -> float:
    """GB/s one way that NCCL believes a card to have inside its node."""
    inside = shape.cluster.inside
    if inside.medium == "nvlink":
        return inside.links * tables.NVLINK[row(shape)]
    return inside.rate / 1e9 * tables.PCI_SHARE


def ring(shape: Shape) -> Graph:
    """Channels of a ring."""
    if shape.nodes > 1:
        return _between(shape)
    channels, speed = _most(tables.SPEEDS_INSIDE[row(shape)], usable(shape))
    few_fast = row(shape) in ("hopper", "blackwell") and speed < 50 and channels > 4
    if speed >= 25 and not few_fast:
        doubled = min(2 * channels, tables.SEARCHED_CHANNELS)
        speed /= math.ceil(doubled / channels)
        channels = doubled
    return Graph(channels, speed, speed)


def tree(shape: Shape) -> Graph:
    """Channels of a tree: those of the ring, faster inside where the network is slow."""
    found = ring(shape)
    if shape.nodes == 1:
        return found
    inside = min(2 * found.between, usable(shape) / found.channels)
    return found._replace(inside=max(inside, found.between))


def nvls(shape: Shape) -> Graph:
    """Channels that reduce on the switch: one a card at most, which carries twice its part."""
    heads = min(shape.cards, tables.NVLS_HEADS)
    between = _between(shape) if shape.nodes > 1 else None
    if between is not None:
        heads = min(heads, between.channels)
    for speed in tables.SPEEDS_INSIDE[row(shape)]:
        if (heads + 1) * speed <= usable(shape) + 1e-6:
            return Graph(heads, speed, between.between if between else speed)
    return Graph(0, 0.0, 0.0)


def _most(speeds: tuple[float, ...], total: float) -> tuple[int, float]:
    """Channels and the speed of each, of the greatest sum; the faster, if equal.

    One of what there is, where that is below every speed.
    """
    if total < speeds[-1]:
        return 1, total
    fits = [(min(int(total / s + 1e-6), tables.SEARCHED_CHANNELS), s) for s in speeds]
    return max(fits, key=lambda found: (found[0] * found[1], found[1]))


def _between(shape: Shape) -> Graph:
    """Rings that leave the node: each goes out by one network card and in by one.

    Several network cards of one card count as one.
    """
    cluster = shape.cluster
    line, speeds = cluster.nics.rate * cluster.cables / 1e9, tables.SPEEDS_BETWEEN[row(shape)]
    room = usable(shape) * shape.cards / max(1, shape.cards - 1)
    each, speed = _most(speeds, line)
    channels = max(1, min(each * cluster.ports, tables.SEARCHED_CHANNELS))
    while channels * speed > room + 1e-6 and channels > 1:
        slower = [s for s in speeds if s < speed and s * channels <= room + 1e-6]
        if slower:
            speed = slower[0]
            break
        channels -= 1
    return Graph(channels, speed, speed)
