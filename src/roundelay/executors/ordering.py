"""Acts of thread blocks: an order that keeps what waits for what, and a check that it is enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

from ..errors import RoundelayError


class NotProved(RoundelayError):
    """Too large, or of a form that is read but not proved: it may be right or wrong."""


Key = tuple[Any, ...]
"""A place: its rank (-1 of a switch), its buffer and its number; of a message, what names it."""


class Unit(NamedTuple):
    """One chunk of an act: the places whose values are added up, in order, and where they go."""

    reads: tuple[Key, ...]
    writes: tuple[Key, ...]


class Act(NamedTuple):
    """What one thread block does at once.

    Attributes:
        where: it stands.
        after: numbers of acts that are done before.
        units: its chunks.
        turns: what it takes turns at with others, such as a channel: the order must be known.
    """

    where: str
    after: tuple[int, ...]
    units: tuple[Unit, ...]
    turns: tuple[Key, ...] = ()


def in_order(acts: Sequence[Act]) -> list[int]:
    """The acts' numbers, so that each stands behind what it waits for.

    Raises:
        RoundelayError: acts wait for one another.
    """
    left = [len(act.after) for act in acts]
    behind: dict[int, list[int]] = defaultdict(list)
    for i, act in enumerate(acts):
        for j in act.after:
            behind[j].append(i)
    ready = [i for i, count in enumerate(left) if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(heappop(ready))
        for i in behind[order[-1]]:
            left[i] -= 1
            if not left[i]:
                heappush(ready, i)
    if len(order) < len(acts):
        stuck = [acts[i].where for i, count in enumerate(left) if count]
        raise RoundelayError(f"{len(stuck)} steps wait for one another and never run, such as "
                             f"{'; '.join(stuck[:3])}")  # fmt: skip
    return order


def refuse_races(acts: Sequence[Act], order: list[int], same: Callable[[Unit], Unit]) -> None:
    """Refuse two acts that use a place, one of them to write, and are ordered by nothing.

    `same` gives a unit's places one name where they are the same memory.

    Raises:
        RoundelayError: it names both.
    """
    earlier = [0] * len(acts)
    written: dict[Key, int] = {}
    read: dict[Key, list[int]] = {}
    for i in order:
        for j in acts[i].after:
            earlier[i] |= earlier[j] | 1 << j
        for unit in (*map(same, acts[i].units), Unit((), acts[i].turns)):
            for place in unit.reads:
                _ordered(acts, earlier[i], i, written.get(place), place)
                read.setdefault(place, []).append(i)
            for place in unit.writes:
                for j in (written.get(place), *read.get(place, ())):
                    _ordered(acts, earlier[i], i, j, place)
                written[place], read[place] = i, []


def _ordered(acts: Sequence[Act], earlier: int, i: int, j: int | None, place: Key) -> None:
    if j is not None and j != i and not earlier >> j & 1:
        raise RoundelayError(
            f"{acts[i].where} and {acts[j].where} use {told(place)}, and nothing orders them"
        )


def told(place: Key) -> str:
    """A place in words."""
    return f"chunk {place[2]} of {place[1]} on rank {place[0]}"
