"""Where the pieces of a collective lie in the caller's buffers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .collectives import everyone, owner, receiver, root, sender
from .schedule import Schedule

Offsets = npt.NDArray[np.int64]


class Layout(NamedTuple):
    """Places of the schedule's pieces, in elements; -1 where the rank's buffer has none.

    Attributes:
        input, output: [piece], where it begins in the rank's input and output.
        length: [piece].
    """

    input: Offsets
    output: Offsets
    length: Offsets


def layout(schedule: Schedule, me: int, order: Offsets, counts: Offsets) -> Layout:
    """Where a rank finds and puts the pieces.

    Args:
        schedule: over virtual ranks.
        me: the real rank.
        order: [virtual rank], the real rank that plays it.
        counts: elements of the user's pieces, in the order of real ranks: one number, or
            [rank], or [from, to] for an all-to-all.
    """
    kind = schedule.kind
    if kind.pieces == 0:
        zero = np.zeros(1, np.int64)
        return Layout(zero, zero, np.array([counts.item()], np.int64))
    who = order if schedule.owner is None else order[schedule.owner]
    if kind.pieces == 1:
        length = counts[who]
        whole = (np.cumsum(counts) - counts)[who]
        return Layout(_of(kind.before, who, whole, me), _of(kind.after, who, whole, me), length)
    source, target = np.repeat(who, len(who)), np.tile(who, len(who))
    sent = np.cumsum(counts[me]) - counts[me]
    got = np.cumsum(counts[:, me]) - counts[:, me]
    return Layout(
        np.where(source == me, sent[target], -1),
        np.where(target == me, got[source], -1),
        counts[source, target],
    )


def _of(where: object, who: Offsets, whole: Offsets, me: int) -> Offsets:
    """Places in a buffer that holds all pieces, or only the rank's own."""
    if where in (everyone, root):
        return whole
    if where is owner:
        return np.where(who == me, 0, -1)
    assert where not in (sender, receiver)
    return np.where(np.roll(who, -1) == me, 0, -1)  # of the rank before
