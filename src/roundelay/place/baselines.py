"""What schedulers choose that don't know what a job exchanges.

All of them number ranks in the order of the nodes they take.
"""

from __future__ import annotations

import numpy as np

from ..topology import Cluster
from .job import Ints


def domains(cluster: Cluster) -> list[int]:
    """Nodes of a domain, from a node to the whole cluster: the levels that a scheduler is told."""
    sizes = [1, *(level.nodes for level in cluster.levels), cluster.nodes]
    return sorted({size for size in sizes if size <= cluster.nodes})


def first_fit(room: Ints, blocks: int) -> Ints:
    """[block] the first nodes that have room.

    Args:
        room: [node] slots.
        blocks: to be placed; no more than there are slots.
    """
    take = np.minimum(room, np.maximum(blocks - (np.cumsum(room) - room), 0))
    return np.repeat(np.arange(len(room)), take)


def random(room: Ints, blocks: int, seed: int) -> Ints:
    """[block] nodes by chance."""
    each = np.repeat(np.arange(len(room)), room)
    return np.random.default_rng(seed).choice(each, blocks, replace=False)


def best_fit(room: Ints, blocks: int, sizes: list[int]) -> Ints:
    """[block] nodes as Kueue's BestFit and KAI's bin packing take them.

    The lowest level with a domain that has room for all; there the domain with the least room.
    Below
    it the domains with most room first, and the last as tight as can be.
    (Kueue, topology-aware scheduling, concepts page and KEP-2724; KAI-Scheduler, docs/topology.)
    """
    take = np.zeros(len(room), np.int64)
    for height, size in enumerate(sizes):
        free = per_domain(room, size)
        fits = np.flatnonzero(free >= blocks)
        if len(fits):
            domain = int(fits[np.argmin(free[fits])])
            _descend(room, take, blocks, sizes[:height], slice_of(domain, size))
            break
    return np.repeat(np.arange(len(room)), take)


def per_domain(room: Ints, size: int) -> Ints:
    """[domain] slots of domains of so many nodes."""
    return np.add.reduceat(room, np.arange(0, len(room), size)) if size > 1 else room


def slice_of(domain: int, size: int) -> slice:
    """The nodes of a domain."""
    return slice(domain * size, (domain + 1) * size)


def _descend(room: Ints, take: Ints, blocks: int, sizes: list[int], nodes: slice) -> None:
    if not sizes:
        take[nodes] = blocks
        return
    size = sizes[-1]
    inside = room[nodes]
    for child, count in enumerate(packed(per_domain(inside, size), blocks)):
        if count:
            first = nodes.start + child * size
            end = min(first + size, nodes.stop, len(room))
            _descend(room, take, int(count), sizes[:-1], slice(first, end))


def packed(free: Ints, need: int, unit: int = 1) -> Ints:
    """[domain] how many of `need` slots each gives: most room first, the last as tight as can be.

    Args:
        free: [domain] slots.
        need: no more than there are.
        unit: slots are given by so many, as far as they go.
    """
    give = np.zeros(len(free), np.int64)
    whole = free // unit * unit
    for domain in np.argsort(-whole, kind="stable"):
        if need < unit:
            break
        fits = np.flatnonzero((whole - give >= need) & (give == 0))
        if len(fits):
            give[fits[np.argmin(free[fits])]] += need
            return give
        if not whole[domain]:
            break
        some = min(int(whole[domain]), need // unit * unit)
        give[domain] += some
        need -= some
    if need:
        give += packed(free - give, need)
    return give
