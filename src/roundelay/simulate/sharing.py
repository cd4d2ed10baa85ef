"""How messages under way at one time share links: max-min fair.

Every message gets as much as every other, until a link is full; those on it have what they have,
and the others go on growing (Bertsekas and Gallager, Data Networks, section 6.5.2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .phases import Phase

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def fair_rates(links: Ints, capacity: Floats) -> Floats:
    """[message], bytes a second of each; infinite for one without links.

    Args:
        links: [hop, message], numbers of the links it goes over; -1 for none.
        capacity: [link], bytes a second.
    """
    rate = np.full(links.shape[1], np.inf)
    room = np.concatenate([[np.inf], capacity])  # link -1 becomes 0, which is never full
    going = np.flatnonzero((links >= 0).any(axis=0))
    while going.size:
        some = links[:, going] + 1
        count = np.bincount(some.ravel(), minlength=len(room))
        count[0] = 0
        share = np.divide(room, count, out=np.full(len(room), np.inf), where=count > 0)
        least = share[some].min(axis=0)
        # A link is full where none of its messages is held to less elsewhere.
        lowest = np.full(len(room), np.inf)
        np.minimum.at(lowest, some, np.broadcast_to(least, some.shape))
        full = (lowest >= share) & (count > 0)
        held = full[some].any(axis=0)
        rate[going[held]] = least[held]
        if held.all():
            break
        spread = np.broadcast_to(least[held], (len(links), int(held.sum())))
        taken = np.bincount(some[:, held].ravel(), spread.ravel(), minlength=len(room))
        taken[0] = 0
        room = np.maximum(room - taken, 0.0)
        going = going[~held]
    return rate


def together(phase: Phase) -> Ints:
    """[message], number of its set: those whose steps overlap, one after the other, share links.

    Where one round hands on piece by piece what another brings, they overlap whatever their steps.
    """
    if phase.by_piece or not len(phase) or (phase.start == phase.start[0]).all():
        return np.zeros(len(phase), np.int64)
    end = phase.start + phase.repeated
    order = np.argsort(phase.start, kind="stable")
    reach = np.maximum.accumulate(end[order])
    fresh = np.ones(len(phase), bool)
    fresh[1:] = phase.start[order][1:] >= reach[:-1]
    number = np.empty(len(phase), np.int64)
    number[order] = np.cumsum(fresh) - 1
    return number
