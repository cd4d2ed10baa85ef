"""What a run's time was made of: the chain of events, each begun by the one before, to its end.

Found backwards from the event that ended last. What a reception waited for is the send that came
last, where that came after the rank's own work before; else it is that work. Between two events
of a rank lies the program, or the engine between two events of one call. Other chains may be
nearly as long: what does not lie on this one can be shorter without the run being so.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from .timeline import Column, Timeline, What


class Part(IntEnum):
    """Kind of a stretch: an event works; its message is on the way; the engine, the program."""

    WORK, MESSAGE, ENGINE, PROGRAM = range(4)


class Chain(NamedTuple):
    """A chain of stretches, the first one first; each begins where the one before ends.

    Attributes:
        event: [stretch], that works or waits for the stretch's end; index into the timeline.
        rank: [stretch], participant; of a message, the one that receives it.
        source: [stretch], of a message, who sent it; else the participant itself.
        begin, end: [stretch], ns.
        part: [stretch], a `Part`.
    """

    event: Column
    rank: Column
    source: Column
    begin: Column
    end: Column
    part: Column

    def share(self, participants: int) -> Column:
        """[participant, part], ns of the path; a message counts for who receives it."""
        found = np.zeros((participants, len(Part)), np.int64)
        np.add.at(found, (self.rank, self.part), self.end - self.begin)
        return found


def longest_path(timeline: Timeline, messages: Column | None = None) -> Chain:
    """The chain that ends with the run's last event.

    Args:
        timeline: of the run.
        messages: its `last_messages`, where they are known already.
    """
    moves = np.flatnonzero(timeline.what != What.CALL)
    if not len(moves):
        return Chain(*(np.empty(0, np.int64) for _ in Chain._fields))
    own = _own(timeline, moves)
    message = last_messages(timeline) if messages is None else messages
    begin, ready, end = timeline.begin, timeline.ready, timeline.end
    came = np.where(message >= 0, np.minimum(end[message], ready), -1)
    done = np.where(own >= 0, end[own], -1)
    waited = (came >= 0) & (came >= done) & (ready > begin)
    events = _followed(np.where(waited, message, own), int(moves[np.argmax(end[moves])]))
    # Each event worked until the next of the chain could begin; clocks may be off by a little.
    bounds = np.stack([end[events], ready[events]], axis=1).ravel()
    bounds = np.minimum.accumulate(np.append(bounds, timeline.span[0]))
    before = np.append(events[1:], events[-1])
    inside = (timeline.call[before] == timeline.call[events]) & (before != events)
    way = np.where(waited[events], Part.MESSAGE, np.where(inside, Part.ENGINE, Part.PROGRAM))
    sender = np.where(way == Part.MESSAGE, timeline.rank[before], timeline.rank[events])
    columns = (
        np.repeat(events, 2), np.repeat(timeline.rank[events], 2),
        np.stack([timeline.rank[events], sender], axis=1).ravel(), bounds[1:], bounds[:-1],
        np.stack([np.full(len(events), Part.WORK), way], axis=1).ravel(),
    )  # fmt: skip
    real = np.flatnonzero(bounds[:-1] > bounds[1:])[::-1]
    return Chain(*(column[real] for column in columns))


def last_messages(timeline: Timeline) -> Column:
    """[event]: of the sends that a reception takes, the one that ended last, or -1."""
    found = np.full(len(timeline), -1, np.int64)
    send, reception = timeline.messages()
    order = np.argsort(timeline.end[send], kind="stable")
    found[reception[order]] = send[order]
    return found


def _own(timeline: Timeline, moves: Column) -> Column:
    """[event]: the last one of the same rank that had ended when this one began to work, or -1."""
    found = np.full(len(timeline), -1, np.int64)
    for rank in np.unique(timeline.rank[moves]):
        mine = moves[timeline.rank[moves] == rank]
        order = mine[np.lexsort((mine, timeline.end[mine]))]
        place = np.searchsorted(timeline.end[order], timeline.ready[order], "right") - 1
        place = np.minimum(place, np.arange(len(order)) - 1)  # events of no length
        found[order] = np.where(place >= 0, order[place], -1)
    return found


def _followed(before: Column, last: int) -> Column:
    """The events from the last one back to one with none before it."""
    following, seen, found = before.tolist(), bytearray(len(before)), [last]
    seen[last] = 1
    while (at := following[found[-1]]) >= 0 and not seen[at]:
        seen[at] = 1
        found.append(at)
    return np.array(found, np.int64)
