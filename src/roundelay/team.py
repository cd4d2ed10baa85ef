"""Who works on a schedule: ranks, and threads that play the switches which add.

Here a schedule becomes what the participants of this process do, as numbers for the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from .arrays import Array
from .errors import RoundelayError
from .plan import plan
from .program import Plan
from .run.group import Group
from .run.handles import Worker
from .schedule import Schedule


class Team(NamedTuple):
    """Who works on a schedule: the communicator's own group, or one with helpers.

    Attributes:
        group: its participants.
        workers: a thread for each helper in this process.
    """

    group: Group
    workers: Mapping[int, Worker]


class Planned(NamedTuple):
    """A schedule over the ranks, in some order, and what this process does for it.

    Attributes:
        order: [rank of the schedule], the real rank that plays it.
        plans: [participant of this process], its plan with the real participants as peers.
        numbers: [participant of this process], the same as the engine reads it.
        peers: ranks that this one exchanges messages with.
        pairs: participants that exchange messages, one of each pair being a helper.
        identity: equal where the schedules are.
    """

    schedule: Schedule
    order: Array
    team: Team
    plans: Mapping[int, Plan]
    numbers: Mapping[int, Array]
    peers: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    identity: str


class Teams:
    """The teams of a communicator: its ranks alone, or with helpers where a schedule has some."""

    def __init__(self, rank: int, ranks: int, group: Group,
                 grow: Callable[[list[int]], Group]) -> None:  # fmt: skip
        """For the planner's `rank`, `group` and `grow`."""
        self._rank, self._ranks, self._grow = rank, ranks, grow
        self.plain = Team(group, {})
        self._teams: dict[tuple[int, ...], Team] = {}

    def plan(self, schedule: Schedule, order: Array) -> Planned:
        """What this process does for a schedule, whose ranks are played in some order."""
        hosts = self._hosts(schedule, order)
        team = self.plain
        if schedule.helpers:
            if hosts not in self._teams:
                group = self._grow([*range(self._ranks), *hosts])
                names = [p for p in group.endpoints if p >= self._ranks]
                workers = {
                    p: Worker(f"roundelay-switch-{p}", group.endpoints[p].interrupt) for p in names
                }
                self._teams[hosts] = Team(group, workers)
            team = self._teams[hosts]
        virtual = np.argsort(order)
        plans = {
            p: self._played(plan(schedule, int(virtual[p]) if p < self._ranks else p), order)
            for p in team.group.endpoints
        }
        peers = {p for e in plans[self._rank].entries for p in e.peers if 0 <= p < self._ranks}
        return Planned(
            schedule, order, team, plans, {p: encode(made) for p, made in plans.items()},
            tuple(sorted(peers - {self._rank})), tuple(sorted(self._pairs(schedule, order))),
            identity(schedule),
        )  # fmt: skip

    def _played(self, made: Plan, order: Array) -> Plan:
        """The plan with the real participants as peers."""
        entries = (
            e._replace(peers=tuple(self._real(p, order) for p in e.peers)) for e in made.entries
        )
        return replace(made, entries=tuple(entries))

    def _pairs(self, schedule: Schedule, order: Array) -> set[tuple[int, int]]:
        """Participants that exchange messages, one of each pair being a helper."""
        pairs: set[tuple[int, int]] = set()
        for r in schedule:
            some = (r.src >= self._ranks) | (r.dst >= self._ranks)
            for a, b in zip(r.src[some].tolist(), r.dst[some].tolist(), strict=True):
                pairs.add((self._real(min(a, b), order), max(a, b)))
        return pairs

    def _real(self, participant: int, order: Array) -> int:
        return int(order[participant]) if 0 <= participant < self._ranks else participant

    def _hosts(self, schedule: Schedule, order: Array) -> tuple[int, ...]:
        """The lowest rank below each helper: there it lives."""
        n = self._ranks
        below = np.full(n + schedule.helpers, n, np.int64)
        below[:n] = order
        while schedule.helpers and (below == n).any():
            before = below.copy()
            for r in schedule:
                for up, down in ((r.dst, r.src), (r.src, r.dst)):
                    to_helper = up >= n
                    np.minimum.at(below, up[to_helper], before[down[to_helper]])
            if (below == before).all():
                raise RoundelayError("a helper of the schedule exchanges with no rank at all")
        return tuple(below[n:].tolist())

    def close(self) -> None:
        """Ends the helpers."""
        for team in self._teams.values():
            for worker in team.workers.values():
                worker.close()
            team.group.close()


def run(team: Team, rank: int, tasks: Mapping[int, Any], x: Any, y: Any, in_place: bool) -> None:
    """Have all participants of this process do their tasks, and wait for them."""
    pending = [
        worker.submit(partial(team.group.endpoints[p].run, tasks[p], None, None, False))
        for p, worker in team.workers.items()
    ]
    team.group.endpoints[rank].run(tasks[rank], x, y, in_place)
    for handle in pending:
        handle.wait()


def carrying(made: Plan, length: Array) -> Plan:
    """The plan without messages of no length, as both ends of each know it.

    Args:
        made: a plan.
        length: [piece], elements as this rank knows them.
    """
    some = length > 0
    in_piece = made.chunks // len(some)
    kept = [
        i
        for i, e in enumerate(made.entries)
        if any(some[s.first // in_piece : (s.first + s.chunks - 1) // in_piece + 1].any()
               for s in e.segments)
    ]  # fmt: skip
    now = {old: new for new, old in enumerate(kept)}
    entries = (made.entries[i] for i in kept)
    return replace(made, entries=tuple(
        e._replace(after=tuple((now[i], only) for i, only in e.after if i in now)) for e in entries
    ))  # fmt: skip


def encode(made: Plan) -> Array:
    """A plan as native/engine/plan.cpp reads it."""
    flat = [made.chunks, made.steps, len(made.entries)]
    for e in made.entries:
        flat += [e.send, e.bounce, e.step, len(e.peers), *e.peers, len(e.segments)]
        for s in e.segments:
            flat += s
        flat.append(len(e.after))
        for entry, only_in_place in e.after:
            flat += [entry, only_in_place]
    return np.array(flat, np.int64)


def identity(schedule: Schedule) -> str:
    """What ranks compare: name and parameters, or for a schedule without a name its moves."""
    text = f"{schedule!r}{schedule.root}"
    if schedule.name:
        return text
    total = 0
    for r in schedule:
        for part in (r.src, r.dst, r.chunk, np.atleast_1d(r.op), np.atleast_1d(r.count)):
            total = crc32(np.asarray(part, np.int64).tobytes(), total)
    return f"{text}{total}"
