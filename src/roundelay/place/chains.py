"""Ranks that exchange messages in pairs, as chains of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

Pair = tuple[int, int]
Ranks = tuple[int, ...]


def chains(pairs: Sequence[Pair]) -> list[list[Ranks]]:
    """Lots of chains of one length, in none of which a rank stands twice.

    A pipeline is a chain. What has circles or branches is cut into lots of pairs.

    >>> chains([(0, 4), (4, 8), (1, 5), (5, 9)])
    [[(0, 4, 8), (1, 5, 9)]]
    >>> chains([(0, 1), (1, 2), (0, 2)])
    [[(0, 1)], [(0, 2)], [(1, 2)]]
    """
    near: dict[int, list[int]] = defaultdict(list)
    for a, b in sorted(pairs):
        near[a].append(b)
        near[b].append(a)
    lots: dict[int, list[Ranks]] = defaultdict(list)
    rest: list[Pair] = []
    seen: set[int] = set()
    for first in sorted(near):
        if first not in seen:
            part = _part(near, first)
            seen |= {*part}
            ends = [rank for rank in part if len(near[rank]) == 1]
            if len(ends) == 2 and all(len(near[rank]) <= 2 for rank in part):
                chain = _part(near, min(ends))
                lots[len(chain)].append(tuple(chain))
            else:
                rest += [(a, b) for a in part for b in near[a] if a < b]
    return [*lots.values(), *_rounds(sorted(rest))]


def _part(near: dict[int, list[int]], first: int) -> list[int]:
    """All that hang together with a rank; along a chain from its end in their order."""
    found, known = [first], {first}
    for rank in found:
        for other in near[rank]:
            if other not in known:
                known.add(other)
                found.append(other)
    return found


def _rounds(pairs: Sequence[Pair]) -> list[list[Ranks]]:
    found: list[tuple[list[Ranks], set[int]]] = []
    for pair in pairs:
        for lot, ranks in found:
            if not ranks & {*pair}:
                lot.append(pair)
                ranks |= {*pair}
                break
        else:
            found.append(([pair], {*pair}))
    return [lot for lot, _ in found]
