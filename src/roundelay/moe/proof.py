"""What is to be proved of a dispatch: that all arrives, and how it goes between nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..schedule import Schedule
from ..verify import Verdict, verify
from .layout import nodes
from .schemes import combine


class Proof(NamedTuple):
    """What was found of a dispatch and the combine that belongs to it.

    Attributes:
        there: each token reaches each card with an expert for it.
        back: each card's part of a token is added once at its home; None where `there` is wrong.
        most: copies of a token between nodes, at most.
        same_index: whether each of them goes to the card with the sender's index.
        limit: what `most` may be, where the scheme is two_hop, which then promises both.
    """

    there: Verdict
    back: Verdict | None
    most: int
    same_index: bool
    limit: int | None

    @property
    def kept(self) -> bool:
        """Whether it goes between nodes as promised."""
        return self.limit is None or (self.most <= self.limit and self.same_index)

    @property
    def ok(self) -> bool:
        """Whether all of it holds."""
        return bool(self.there) and bool(self.back) and self.kept


def prove(dispatch: Schedule, group: int, max_nodes: int | None = None) -> Proof:
    """Prove a dispatch and its combine.

    Args:
        dispatch: the schedule of a scheme.
        group: cards of a node.
        max_nodes: nodes that a token may go to; without it, all.

    Raises:
        RoundelayError: not the schedule of a dispatch, or a group that does not divide its ranks.
    """
    back, count = combine(dispatch), nodes(dispatch.ranks, group)
    there = verify(dispatch)
    copies, same = np.zeros(dispatch.pieces, np.int64), True
    for r in dispatch:
        away = r.src // group != r.dst // group
        np.add.at(copies, r.chunk[away], 1)
        same = same and bool((r.src[away] % group == r.dst[away] % group).all())
    limit = min(count, max_nodes or count) if dispatch.name == "two_hop" else None
    return Proof(there, verify(back) if there else None, int(copies.max()), same, limit)
