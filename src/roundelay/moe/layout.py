"""Who gets what: the counts and masks that everybody works from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from .experts import Placement

Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Layout:
    """Tokens, where they are and where they go.

    Attributes:
        home: [token], the rank it is on.
        targets: [token, k], slots of experts, numbered rank by rank; -1 for none.
        ranks: how many there are.
        slots: of each rank.
    """

    home: Ints
    targets: Ints
    ranks: int
    slots: int

    @classmethod
    def of(cls, experts: npt.ArrayLike, home: npt.ArrayLike, placement: Placement) -> Layout:
        """The layout of a gate's choice.

        Args:
            experts: [token, k], -1 where a token has fewer.
            home: [token], the rank it comes from.
            placement: which expert is where.

        Raises:
            RoundelayError: an expert or rank that there is not, or shapes that do not go together.
        """
        chosen, at = np.asarray(experts), np.asarray(home)
        if at.ndim != 1 or at.dtype.kind not in "iu":
            raise RoundelayError(f"home is {at.dtype} of shape {at.shape}; expected a rank a token")
        if at.size and not 0 <= at.min() <= at.max() < placement.ranks:
            raise RoundelayError(f"homes from {at.min()} to {at.max()}; expected ranks, 0 to "
                                 f"{placement.ranks - 1}")  # fmt: skip
        targets = placement.targets(chosen, at)
        return cls(at, targets, placement.ranks, placement.slots.shape[1])

    @property
    def cards(self) -> Ints:
        """[token, k], ranks of the targets; -1 for none."""
        return np.where(self.targets < 0, -1, self.targets // self.slots)

    @cached_property
    def in_rank(self) -> Bools:
        """[token, rank], whether the token has an expert there."""
        return marked(self.cards, self.ranks)

    def in_node(self, group: int) -> Bools:
        """[token, node], whether the token has an expert there; `group` ranks are a node."""
        shape = len(self.home), nodes(self.ranks, group), group
        found: Bools = np.any(self.in_rank.reshape(shape), axis=2)
        return found

    def per_rank(self) -> Ints:
        """[rank], tokens that have an expert there."""
        return np.asarray(self.in_rank.sum(axis=0))

    def per_slot(self) -> Ints:
        """[slot], choices that fell on it."""
        return np.bincount(self.targets[self.targets >= 0], minlength=self.ranks * self.slots)

    def work(self) -> Ints:
        """[rank], choices that fell on its slots: rows that its experts compute."""
        return np.asarray(self.per_slot().reshape(self.ranks, self.slots).sum(axis=1))


def marked(numbers: Ints, count: int) -> Bools:
    """[row, number], whether the number stands in the row; -1 is none."""
    marks = np.zeros((len(numbers), count + 1), np.bool_)
    marks[np.arange(len(numbers))[:, None], numbers] = True
    return marks[:, :count]


def nodes(ranks: int, group: int) -> int:
    """Number of nodes of `group` ranks each.

    Raises:
        RoundelayError: the group does not divide the ranks.
    """
    if not isinstance(group, int | np.integer) or group < 1 or ranks % group:
        raise RoundelayError(f"group = {group!r}; expected a divisor of the {ranks} ranks: a token "
                             "first goes to the card with its index in the node")  # fmt: skip
    return ranks // int(group)
