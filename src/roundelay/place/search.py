"""Nodes and their order for a job, so that its exchange is cheap.

Domains are filled in units that groups of ranks make (a pipeline, a data group), so that groups
don't straddle borders; blocks follow one another in every order of the job's degrees; what is
cheapest is then improved by exchanging blocks and moving them to free slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from math import prod
from typing import Final

import numpy as np

from .baselines import _descend, best_fit, first_fit, packed, per_domain, slice_of
from .job import Ints, Job
from .traffic import Floats

Score = Callable[[Ints], Floats]
STARTS: Final = 6
"""Placements that are improved."""
WORK: Final = 120_000
"""Messages that are looked at in all, about, while placements are improved."""
BATCH: Final = 4_000_000
"""Messages of placements that are scored at once."""
PAIRS: Final = 2_000_000
"""Of blocks that are listed, to exchange them or to move one; of more, some are drawn."""
BETTER: Final = 1e-9


def block_layout(job: Job, block: int) -> tuple[int, ...]:
    """The degrees of a job over its blocks, innermost first."""
    rest, found = block, []
    for degree in job.layout:
        if rest == 1:
            found.append(degree)
        elif degree % rest == 0:
            found.append(degree // rest)
            rest = 1
        elif rest % degree == 0:
            rest //= degree
        else:
            return (job.ranks // block,)
    return tuple(d for d in found if d > 1) or (1,)


def orders(layout: tuple[int, ...]) -> list[Ints]:
    """Orders of blocks: every order of the degrees, and tiles of two of them."""
    blocks = np.arange(prod(layout)).reshape(layout[::-1])
    found = [blocks.transpose(axes).ravel() for axes in permutations(range(len(layout)))]
    if len(layout) == 2:
        b, a = blocks.shape
        for x, y in ((x, y) for x in _parts(a) for y in _parts(b)):
            tiles = blocks.reshape(b // y, y, a // x, x)
            found += [tiles.transpose(axes).ravel() for axes in ((0, 2, 1, 3), (2, 0, 3, 1))]
    return list({order.tobytes(): order for order in found}.values())


def group_orders(job: Job, block: int) -> list[Ints]:
    """Orders of blocks in which those of a group follow one another, for each exchange."""
    every = np.arange(job.ranks // block)
    found = []
    for e in job.exchanges:
        first = np.unique(e.groups.ravel() // block, return_index=True)
        ordered = first[0][np.argsort(first[1])]
        found.append(np.concatenate([ordered, np.setdiff1d(every, ordered)]))
    return found


def _parts(n: int) -> list[int]:
    return [k for k in (2, 4, 8, 16) if k < n and n % k == 0]


def units(layout: tuple[int, ...]) -> list[int]:
    """Numbers of blocks that groups are made of, the largest first."""
    found = {1}
    for axes in permutations(layout):
        found |= {prod(axes[:k]) for k in range(1, len(axes))}
    return sorted(found, reverse=True)


def choices(
    room: Ints, blocks: int, sizes: list[int], layout: tuple[int, ...], *, spread: bool
) -> Iterator[Ints]:
    """[block] nodes that may be taken, in ascending order; the tightest first."""
    yield best_fit(room, blocks, sizes)
    for height, domain in _places(room, blocks, sizes):
        nodes = slice_of(domain, sizes[height])
        for unit in units(layout):
            take = np.zeros(len(room), np.int64)
            _fill(room, take, blocks, sizes[:height], nodes, unit)
            yield np.repeat(np.arange(len(room)), take)
        if height:
            yield from _evenly(room, blocks, sizes, height, domain)
    for size in sizes[1:-1] if spread else ():
        yield _spread(room, blocks, size)
    yield first_fit(room, blocks)


def _places(room: Ints, blocks: int, sizes: list[int]) -> Iterator[tuple[int, int]]:
    """Domains with room for all: the tightest and the emptiest of the two lowest levels."""
    levels = 0
    for height, size in enumerate(sizes):
        free = per_domain(room, size)
        fits = np.flatnonzero(free >= blocks)
        if len(fits):
            for domain in dict.fromkeys((int(fits[np.argmin(free[fits])]),
                                         int(fits[np.argmax(free[fits])]))):  # fmt: skip
                yield height, domain
            levels += 1
        if levels == 2:
            return


def _fill(room: Ints, take: Ints, blocks: int, sizes: list[int], nodes: slice, unit: int) -> None:
    """As `best_fit` fills a domain, by units as far as they go."""
    if not sizes or unit == 1:
        _descend(room, take, blocks, sizes, nodes)
        return
    size = sizes[-1]
    inside = room[nodes]
    for child, count in enumerate(packed(per_domain(inside, size), blocks, unit)):
        if count:
            first = nodes.start + child * size
            end = min(first + size, nodes.stop, len(room))
            _fill(room, take, int(count), sizes[:-1], slice(first, end), unit)


def _evenly(room: Ints, blocks: int, sizes: list[int], height: int, domain: int) -> Iterator[Ints]:
    """Equal parts in as few domains below as have room for them."""
    nodes, size = slice_of(domain, sizes[height]), sizes[height - 1]
    free = per_domain(room[nodes], size)
    for k in range(2, 9):
        fits = np.flatnonzero(free >= -(-blocks // k))
        if len(fits) < k or blocks < k:
            continue
        chosen = fits[np.argsort(free[fits], kind="stable")[:k]]
        take = np.zeros(len(room), np.int64)
        for i, child in enumerate(chosen):
            count = blocks // k + (i < blocks % k)
            first = nodes.start + int(child) * size
            end = min(first + size, nodes.stop, len(room))
            _descend(room, take, count, sizes[: height - 1], slice(first, end))
        yield np.repeat(np.arange(len(room)), take)
        return


def _spread(room: Ints, blocks: int, size: int) -> Ints:
    """One slot of each domain in turn: each then has most of what leads out of it."""
    nodes = np.repeat(np.arange(len(room)), room)
    turn = np.arange(len(nodes)) - np.searchsorted(nodes // size, nodes // size)
    return np.sort(nodes[np.argsort(turn, kind="stable")[:blocks]])


def search(
    room: Ints,
    blocks: int,
    sizes: list[int],
    layout: tuple[int, ...],
    score: Score,
    messages: int,
    *,
    more: Sequence[Ints] = (),
    order_only: bool = False,
    spread: bool = False,
    starts: int = STARTS,
) -> Ints:
    """[block] the node of each.

    Args:
        room: [node] slots, enough of them.
        blocks: how many.
        sizes: nodes of a domain, by level.
        layout: degrees over the blocks.
        score: [placement] seconds of [placement, block] nodes.
        messages: between blocks, of one placement.
        more: orders of blocks to try besides those of the degrees.
        order_only: take the nodes as they are, which have room for no more.
        spread: try nodes of as many domains as there are, too.
        starts: placements that are improved; 0: take the best as it is.
    """
    found = (
        [first_fit(room, blocks)]
        if order_only
        else choices(room, blocks, sizes, layout, spread=spread)
    )
    taken = list({nodes.tobytes(): nodes for nodes in found}.values())
    tries = {order.tobytes(): order for order in (*orders(layout), *more)}.values()
    first = []
    for nodes in taken:
        for order in tries:
            placed = np.empty(blocks, np.int64)
            placed[order] = nodes
            first.append(placed)
    tried = np.array(first)
    scores = _scored(tried, score, messages)
    if not starts:
        return np.asarray(tried[int(np.argmin(scores))])
    best = np.argsort(scores, kind="stable")[:starts]
    ends = [_improved(tried[i], float(scores[i]), room, score, messages) for i in best]
    return min(ends, key=lambda end: end[1])[0]


def _scored(tried: Ints, score: Score, messages: int) -> Floats:
    step = max(1, BATCH // max(1, messages))
    return np.concatenate([score(tried[i : i + step]) for i in range(0, len(tried), step)])


def _improved(
    placed: Ints, value: float, room: Ints, score: Score, messages: int
) -> tuple[Ints, float]:
    """Exchange two blocks, or move one to a free slot, as long as that helps."""
    left = WORK
    rng = np.random.default_rng(1)
    while left > 0:
        near = _neighbours(placed, room, rng, max(1, left // max(1, messages)))
        if not len(near):
            break
        scores = _scored(near, score, messages)
        left -= len(near) * max(1, messages)
        least = int(np.argmin(scores))
        if scores[least] >= value * (1 - BETTER):
            break
        placed, value = near[least], float(scores[least])
    return placed, value


def _pairs(n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """All pairs of blocks, or some by chance where they are more than can be looked at."""
    if n * (n - 1) // 2 <= PAIRS:
        return np.triu_indices(n, 1)
    a, b = rng.integers(n, size=(2, WORK))
    return a, b


def _neighbours(placed: Ints, room: Ints, rng: np.random.Generator, most: int) -> Ints:
    n = len(placed)
    a, b = _pairs(n, rng)
    differ = placed[a] != placed[b]
    a, b = a[differ], b[differ]
    free = np.flatnonzero(room > np.bincount(placed, minlength=len(room)))
    if len(free) > most // n + 1:
        free = rng.choice(free, most // n + 1, replace=False)
    if len(a) > most:
        some = rng.choice(len(a), most, replace=False)
        a, b = a[some], b[some]
    swaps = np.repeat(placed[None, :], len(a), axis=0)
    rows = np.arange(len(a))
    swaps[rows, a], swaps[rows, b] = placed[b], placed[a]
    moved, to = np.tile(np.arange(n), len(free)), np.repeat(free, n)
    if len(moved) * n > PAIRS:
        some = rng.choice(len(moved), min(len(moved), most), replace=False)
        moved, to = moved[some], to[some]
    moves = np.repeat(placed[None, :], len(moved), axis=0)
    moves[np.arange(len(moves)), moved] = to
    return np.concatenate([swaps, moves])
