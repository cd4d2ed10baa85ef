"""Which ranks have the same times: those that are as quick, and whose groups look alike.

Colour refinement: ranks begin with the colour of their speed, and part where the sets of colours in
one of their groups differ, until no more do. One rank of each colour is then timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import RoundelayError
from .tasks import Group

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Members(NamedTuple):
    """The kinds in each kind of group.

    Attributes:
        kinds: those of one group after those of another.
        starts: [kind of group] where its own begin.
        of: [kind of rank] the kind of its group.
    """

    kinds: Ints
    starts: Ints
    of: Ints

    def last(self, moments: Ints) -> Ints:
        """[..., kind] the latest of the moments in its group."""
        found: Ints = np.maximum.reduceat(moments[..., self.kinds], self.starts, axis=-1)
        return found[..., self.of]


@dataclass(frozen=True, eq=False)
class Kinds:
    """Ranks that are alike.

    Attributes:
        of: [rank] its kind.
        first: [kind] the first rank of it.
        members: by group.
    """

    of: Ints
    first: Ints
    members: dict[Group | None, Members]

    @property
    def counts(self) -> Ints:
        """[kind] how many ranks are of it."""
        return np.bincount(self.of, minlength=len(self.first))


def kinds(groups: Sequence[Group | None], speed: Floats) -> Kinds:
    """The kinds of ranks.

    Args:
        groups: in which they exchange; None: all of them.
        speed: [rank], equal for those that are as quick.

    Raises:
        RoundelayError: ranks do not fall into such groups.
    """
    shapes = {group: _shape(group, len(speed)) for group in groups}
    of = np.unique(speed, return_inverse=True)[1].astype(np.int64)
    count = 0
    while of.max() + 1 > count:
        count = int(of.max()) + 1
        for shape in shapes.values():
            which = _spread(_sets(of, shape)[1], shape)
            of = np.unique(np.stack([of, which]), axis=1, return_inverse=True)[1].reshape(-1)
    first = np.unique(of, return_index=True)[1]
    return Kinds(of, first, {g: _members(of, first, shape) for g, shape in shapes.items()})


Shape = tuple[int, int, int]
"""Blocks, ranks of a group, groups of a block: [rank] is an array of this shape."""


def _shape(group: Group | None, ranks: int) -> Shape:
    if group is None:
        return 1, ranks, 1
    if ranks % group.block:
        raise RoundelayError(f"{group}: {ranks:,} ranks do not fall into such; expected a multiple "
                             f"of {group.block:,} ranks")  # fmt: skip
    return ranks // group.block, group.size, group.stride


def _sets(of: Ints, shape: Shape) -> tuple[Ints, Ints]:
    """The sets of colours of groups, each a row, filled up with -1; and [group] its row."""
    rows = np.sort(of.reshape(shape).transpose(0, 2, 1).reshape(-1, shape[1]))
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
    rows = np.ascontiguousarray(np.sort(rows))
    row = np.dtype((np.void, rows.itemsize * shape[1]))  # as one value, which sorts quickly
    whole = rows.view(row).reshape(-1)
    _, where, which = np.unique(whole, return_index=True, return_inverse=True)
    return rows[where], which


def _spread(which: Ints, shape: Shape) -> Ints:
    """[rank] what is given for its group."""
    blocks, size, stride = shape
    return np.repeat(which.reshape(blocks, 1, stride), size, axis=1).reshape(-1)


def _members(of: Ints, first: Ints, shape: Shape) -> Members:
    rows, which = _sets(of, shape)
    counts = (rows >= 0).sum(axis=1)
    return Members(rows[rows >= 0], np.cumsum(counts) - counts, _spread(which, shape)[first])
