"""When each step of a schedule has ended on a cluster."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from .clock import Clock
from .pricing import PS
from .recurrence import events
from .way import Way

EVENTS_LIMIT: Final = 10**6
"""Messages, with their repetitions, that are gone through one by one."""


def step_ends(clock: Clock, size: int, protocol: str | None = None) -> npt.NDArray[np.float64]:
    """[step] seconds until its last message, and all before it, has ended; in one slice.

    A step may begin before the one before it has ended everywhere. What a collective takes once
    (starting, a card's copy of its own piece) stands before the first step. Slow ranks and links
    of the clock are not counted.

    Args:
        clock: a schedule on a cluster.
        size: bytes, as in nccl-tests' size column.
        protocol: by which messages go; without it, the quickest.

    Raises:
        RoundelayError: as `Clock.time`, or too many messages to go through one by one.
    """
    phases, schedule = clock.phases, clock.schedule
    if (count := sum(int(p.repeated.sum()) for p in phases.phases)) > EVENTS_LIMIT:
        raise RoundelayError(f"{count:,} messages; at most {EVENTS_LIMIT:,} are timed one by one. "
                             "Try fewer ranks")  # fmt: skip
    found, _, _ = clock.choose(size, protocol)
    way = Way(clock.usual.roads, shortcuts=False)
    price = way.price(found, clock.chunk(size))
    begins = sorted(r.at for r in schedule)
    ends = np.zeros(schedule.steps, np.int64)
    for event in events(way.kinds.phases, price):
        begin = begins[event.phase.first] + int(event.phase.start[event.message])
        step = begin + event.repetition
        ends[step] = max(ends[step], event.end)
    return np.maximum.accumulate(ends) / PS + clock.once(found, size)
