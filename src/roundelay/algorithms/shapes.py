"""Shapes that several algorithms share: the fold, butterflies and the binary tree."""

from __future__ import annotations

import numpy as np

from ..collectives import Ints
from ..schedule import COPY, REDUCE, Round, Schedule, ScheduleError
from ..verbs import on, then
from .formulas import floor_log, pow2_below


def nodes(n: int, group: int, *, equal: bool = True) -> Ints:
    """The ranks of full nodes of `group`, one row a node.

    Raises:
        ScheduleError: no such group size, or nodes are to be equal and are not.
    """
    if not 1 <= group <= n:
        raise ScheduleError(f"group = {group}; expected 1 to {n} ranks a node")
    if equal and n % group:
        raise ScheduleError(
            f"{n} ranks do not fill nodes of {group}; rails need nodes of equal size, "
            "so choose a group that divides n, or go by leader"
        )
    return np.arange(n - n % group).reshape(-1, group)


def folded(n: int) -> tuple[Ints, Ints]:
    """Pairs of the first ranks, as many as n is above a power of two, and the ranks that remain."""
    extra = n - pow2_below(n)
    return np.arange(2 * extra).reshape(-1, 2), np.r_[0 : 2 * extra : 2, 2 * extra : n]


def fold(n: int, core: Schedule) -> Schedule:
    """An all_reduce for n ranks from one for the largest power of two p below n.

    The first n - p odd ranks give their data to the even rank before them, and get the
    result back in the end. 2 steps and S bytes more.
    """
    if n == core.ranks:
        return core
    pairs, keepers = folded(n)
    give = Schedule("reduce", 2, 1, [Round(1, 0, 0, REDUCE)])
    take = Schedule("broadcast", 2, 1, [Round(0, 1, 0, COPY)])
    return then(on(pairs, give), on(keepers, core), on(pairs, take))


def doubling_peers(n: int) -> list[Ints]:
    """Peers at distance 1, 2, 4, ... of the largest power of two of ranks up to n."""
    rank = np.arange(pow2_below(n))
    return [rank ^ (1 << s) for s in range(floor_log(n))]


def swing_peers(n: int) -> list[Ints]:
    """Peers at distance 1, -1, 3, -5, 11, ... from even ranks, and mirrored from odd ones."""
    p = pow2_below(n)
    rank = np.arange(p)
    sign = 1 - 2 * (rank % 2)
    return [(rank + sign * ((1 - (-2) ** (s + 1)) // 3)) % p for s in range(floor_log(n))]


def blocks(peers: list[Ints]) -> list[Ints]:
    """Where the block that each rank keeps after every exchange begins.

    Ranks that still share a block after an exchange are a class; the classes give the pieces
    an order in which every exchange is one contiguous run. Block s is ``p >> (s + 1)`` long.
    """
    names = np.arange(2 ** len(peers))
    classes = []
    for peer in reversed(peers):
        classes.append(names)
        names = np.minimum(names, names[peer])
    first = np.zeros_like(names)
    found: list[Ints] = []
    for peer, kept in zip(peers, reversed(classes), strict=True):
        first = first + (kept > kept[peer]) * (len(names) >> (len(found) + 1))
        found.append(first)
    return found


def butterfly_all_reduce(peers: list[Ints]) -> Schedule:
    """Halve the data with each peer in turn, adding; then double it again, copying."""
    p, first = 2 ** len(peers), blocks(peers)
    rank = np.arange(p)
    exchanges = [
        (peer, f, p >> (s + 1)) for s, (peer, f) in enumerate(zip(peers, first, strict=True))
    ]
    halve = [Round(rank, peer, f[peer], REDUCE, count=c) for peer, f, c in exchanges]
    double = [Round(rank, peer, f, COPY, count=c) for peer, f, c in reversed(exchanges)]
    return Schedule("all_reduce", p, p, halve + double)


def butterfly_all_gather(n: int, peers: list[Ints]) -> Schedule:
    """Double the data with each peer, last one first, for any n.

    Beyond a power of two, a rank that is left over hands its piece to the rank before it, which
    takes part for both and sends it all the rest in the end.
    """
    p, first = 2 ** len(peers), blocks(peers)
    place = first[-1] if first else np.zeros(1, np.int64)
    extra = n - p
    double = place < extra
    rank = np.arange(p) + np.cumsum(double) - double
    start = np.arange(p + 1) + np.minimum(np.arange(p + 1), extra)
    giver, piece = rank[double] + 1, start[place[double]] + 1
    rounds = [Round(giver, giver - 1, piece, COPY)]
    for s in reversed(range(len(peers))):
        low, high = start[first[s]], start[first[s] + (p >> (s + 1))]
        rounds.append(Round(rank, rank[peers[s]], low, COPY, count=high - low))
    rounds.append(Round(giver - 1, giver, (piece + 1) % n, COPY, count=n - 1))
    owner = np.empty(n, np.int64)
    owner[start[place]] = rank
    owner[piece] = giver
    return Schedule("all_gather", n, n, rounds, owner=owner)


def binary_tree(n: int, pieces: int, *, last_first: bool = False) -> Schedule:
    """Broadcast down an in-order binary tree below rank 0, pipelined in `pieces` pieces.

    Odd ranks are leaves. A rank's parent is found by moving its lowest set bit up by one, or
    away where there is no such rank (the shape NCCL builds: src/graph/trees.cc).
    """
    rank = np.arange(1, n)
    low = rank & -rank
    up = (rank ^ low) | (low << 1)
    parent = np.where(up < n, up, rank ^ low)
    depth, above = np.zeros_like(rank), parent
    while (above > 0).any():
        depth += above > 0
        above = np.where(above > 0, parent[above - 1], 0)
    first, shift = (pieces - 1, -1) if last_first else (0, 1)
    move = Round(parent, rank, first, COPY, times=pieces, shift=shift, start=depth)
    return Schedule("broadcast", n, pieces, [move])
