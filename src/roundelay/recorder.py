"""Recording what the engine of this process does, for one communicator."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final, NamedTuple

import numpy as np

from . import _native
from .arrays import item_size
from .errors import RoundelayError
from .formats.chrome import write_chrome
from .program import Plan
from .requests import COLLECTIVES, NO_ROOT, OPS, UNEQUAL
from .run.findings import Doing
from .run.group import Group
from .timeline import OWN, UNKNOWN, Act, Column, Timeline, What

EVENTS: Final = 65536
"""Events that are kept of each participant, 64 bytes each."""
TEAM: Final = 10**9
"""Calls of the k-th group with helpers are numbered from k times this on."""

_EVENT: Final = np.dtype(
    [
        ("begin", "u8"), ("ready", "u8"), ("end", "u8"), ("call", "u8"), ("bytes", "u8"),
        ("stage", "u4"), ("slice", "u4"), ("peer", "i4"), ("peers", "u4"),
        ("did", "u1"), ("collective", "u1"), ("type", "u1"), ("op", "u1"), ("spare", "u4"),
    ]
)  # fmt: skip
_SENT, _CALLED = 1, 2


class Note(NamedTuple):
    """What the planner knows of a call that the engine makes.

    Attributes:
        algorithm: its name, and parameters.
        plans: [participant of this process], its plan, with the real participants as peers.
    """

    algorithm: str
    plans: Mapping[int, Plan]


Key = tuple[int, int, int]
"""What the engine knows of a call: collective, plan and root."""


class Notes(dict[Key, Note]):
    """The latest notes of a planner."""

    MOST: Final = 4096

    def keep(self, key: Key, note: Note) -> None:
        """Add one; the oldest goes where there are too many."""
        self[key] = note
        if len(self) > self.MOST:
            del self[next(iter(self))]


@dataclass(frozen=True, slots=True)
class LastCall:
    """One of the last calls of a rank, which are always kept.

    Attributes:
        number: of the call, as in messages of errors; see `Timeline.call` for calls with helpers.
        text: what it is, such as "all_reduce of 1024 float32, sum (two_shot)".
        begun: when it began, in seconds of `time.monotonic`.
        seconds: how long it took; None while it is under way, and where it has failed.
        collective: its name.
        elements: of all pieces together; None where this rank knows its own alone.
        dtype: name of the element type.
    """

    number: int
    text: str
    begun: float
    seconds: float | None
    collective: str
    elements: int | None
    dtype: str


class Recorder:
    """The events of all participants of a communicator that live in this process.

    Attributes:
        events: how many are kept of each; 0 while nothing is recorded.
        groups: that of the ranks alone, then those with helpers.
    """

    def __init__(
        self, rank: int, nodes: Sequence[Sequence[int]], notes: Mapping[Key, Note]
    ) -> None:
        """Record nothing yet.

        Args:
            rank: this process.
            nodes: the ranks of each node.
            notes: the planner's.
        """
        self.events = 0
        self._rank, self._notes, self._pid = rank, notes, os.getpid()
        self.groups: list[Group] = []
        self._node = {r: k for k, ranks in enumerate(nodes) for r in ranks}
        self._names = [f"rank {r}" for r in sorted(self._node)]
        self._nodes = [self._node[r] for r in sorted(self._node)]
        self._first: list[int] = []  # [group], participant of its first helper
        self._file: Path | None = None

    def add(self, group: Group) -> None:
        """Record this group, too; helpers come after those of the groups before."""
        self.groups.append(group)
        self._first.append(len(self._names))
        self._names += group.names[len(self._node) :]
        self._nodes += [self._node[host] for host in group.hosts[len(self._node) :]]
        if self.events:
            self._trace(group)

    def start(self, events: int = EVENTS) -> dict[tuple[int, int], int]:
        """Record from now on; where it does already, the room stays as it is.

        Returns:
            How many events there have been, by group and participant, for `timeline`.

        Raises:
            RoundelayError: there is no room for any event.
        """
        if events < 1:
            raise RoundelayError(f"room for {events} events; expected 1 or more, such as {EVENTS}")
        if not self.events:
            self.events = events
            for group in self.groups:
                self._trace(group)
        return {
            (g, p): endpoint.traced()[1]
            for g, group in enumerate(self.groups)
            for p, endpoint in group.endpoints.items()
        }

    def stop(self) -> None:
        """Forget what was recorded, and record no more."""
        self.events = 0
        for group in self.groups:
            self._trace(group)

    def _trace(self, group: Group) -> None:
        for endpoint in group.endpoints.values():
            endpoint.trace(self.events)

    def timeline(self, since: Mapping[tuple[int, int], int] | None = None) -> Timeline:
        """What was recorded after the counts that `start` gave, on this process's clock."""
        since = since or {}
        parts = [
            self._part(g, p, since.get((g, p), 0))
            for g, group in enumerate(self.groups)
            for p in group.endpoints
        ]
        return Timeline.joined(parts)

    def _part(self, g: int, participant: int, since: int) -> Timeline:
        """The events of one participant, and what they are."""
        data, count = self.groups[g].endpoints[participant].traced()
        raw = np.frombuffer(data, _EVENT)
        fresh = min(count - since, len(raw))
        raw = raw[len(raw) - fresh :]
        called = raw["did"] == _CALLED
        calls: dict[int, str] = {}
        acts: list[Act] = []
        known: dict[Key, tuple[int, int]] = {}
        places = [(UNKNOWN, 0)]  # [call], where its acts begin, and how many there are
        for e in raw[called]:
            key = (int(e["collective"]), int(e["stage"]), int(e["slice"]))
            note = self._notes.get(key)
            calls[int(e["call"]) + g * TEAM] = describe(e, note)
            if key not in known:
                fresh_acts = self._acts(g, note.plans[participant]) if note else []
                known[key] = len(acts), len(fresh_acts)
                acts += fresh_acts
            places.append(known[key])
        first, length = np.array(places, np.int64)[self._turn(raw, called)].T
        act = np.where(~called & (raw["stage"] < length), first + raw["stage"], UNKNOWN)
        return self._columns(g, participant, raw, act, acts, calls, count - since - fresh)

    @staticmethod
    def _turn(raw: Any, called: Any) -> Column:
        """[event], the turn of its call among those that are there, from 1; 0 where it is not."""
        numbers = raw["call"][called]
        turn = np.searchsorted(numbers, raw["call"])
        found = numbers[np.minimum(turn, len(numbers) - 1)] if len(numbers) else 0
        return np.where((len(numbers) > 0) & (found == raw["call"]), turn + 1, 0)

    def _columns(self, g: int, participant: int, raw: Any, act: Column, acts: list[Act],
                 calls: dict[int, str], lost: int) -> Timeline:  # fmt: skip
        called = raw["did"] == _CALLED
        wide = {name: raw[name].astype(np.int64) for name in raw.dtype.names}
        what = np.where(raw["did"] == _SENT, What.SEND, What.REDUCE)
        what[(raw["did"] == 0) & (raw["peers"] == 1)] = What.COPY
        what[called] = What.CALL
        others = [next((p for p in a.peers if p != OWN), UNKNOWN) for a in acts]
        peer = np.where(act >= 0, np.array([*others, UNKNOWN])[act], wide["peer"])
        return Timeline(
            rank=np.full(len(raw), self._participant(g, participant)),
            call=wide["call"] + g * TEAM,
            what=what,
            peer=peer,
            peers=wide["peers"],
            stage=np.where(called, UNKNOWN, wide["stage"]),
            slice=np.where(called, 0, wide["slice"]),
            bytes=np.where(called, 0, wide["bytes"]),
            begin=wide["begin"],
            ready=wide["ready"],
            end=wide["end"],
            act=act,
            calls=calls,
            names=self._names,
            nodes=self._nodes,
            acts=acts,
            lost=lost,
        )

    def _participant(self, g: int, participant: int) -> int:
        ranks = len(self._node)
        return participant if participant < ranks else participant - ranks + self._first[g]

    def _acts(self, g: int, made: Plan) -> list[Act]:
        """What the entries of a plan do."""
        acts = []
        for entry in made.entries:
            runs: list[tuple[int, int]] = []
            for segment in entry.segments:
                first, count = segment.first, segment.chunks
                if runs and sum(runs[-1]) == first:
                    runs[-1] = (runs[-1][0], runs[-1][1] + count)
                else:
                    runs.append((first, count))
            peers = tuple(self._participant(g, p) for p in entry.peers)
            acts.append(Act(entry.step, peers, tuple(runs)))
        return acts

    def last_calls(self) -> list[LastCall]:
        """The last calls of this rank, oldest first: 16 of each of its groups."""
        found = []
        for g, group in enumerate(self.groups):
            for number, *rest, begun, ended in group.endpoints[self._rank].last_calls():
                e = dict(zip(("bytes", "stage", "slice", "collective", "type", "op"), rest,
                             strict=True))  # fmt: skip
                note = self._notes.get((e["collective"], e["stage"], e["slice"]))
                seconds = (ended - begun) / 1e9 if ended else None
                elements = e["bytes"] if e["bytes"] != UNEQUAL else None
                found.append(LastCall(
                    number + g * TEAM, describe(e, note), begun / 1e9, seconds,
                    COLLECTIVES[e["collective"]], elements, _native.types[e["type"]],
                ))  # fmt: skip
        return sorted(found, key=lambda call: call.begun)

    def doing(self, name: str, tag: str, ranks: list[int]) -> list[Doing]:
        """What this rank does in each of its groups: the last call, or the one under way."""
        found = []
        for g, group in enumerate(self.groups):
            doing = Doing(name, f"{tag}+{g}" if g else tag, ranks)
            endpoint = group.endpoints[self._rank]
            if calls := endpoint.last_calls():
                call, elements, _, _, collective, kind, _, begun, ended = calls[-1]
                doing.call, doing.collective = call, COLLECTIVES[collective]
                if doing.collective != "barrier" and elements != UNEQUAL:
                    doing.size = elements * item_size(_native.types[kind])
                doing.active = not ended and not endpoint.failed()
                doing.seconds = (monotonic_ns() - (ended or begun)) / 1e9
            found.append(doing)
        return found

    def keep(self, file: Path) -> None:
        """Record from now on, and let `write` write this file.

        Raises:
            RoundelayError: its folder cannot be made.
        """
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RoundelayError(
                f"cannot make the folder for traces {file.parent}: {error.strerror}; set "
                "ROUNDELAY_TRACE to a folder that can be written, or unset it"
            ) from None
        self._file = file
        self.start()

    def write(self) -> None:
        """Write the file that was asked for, once."""
        if self._file is None or os.getpid() != self._pid:
            return
        file, self._file = self._file, None
        try:
            file.write_bytes(write_chrome(self.timeline()))
        except OSError as error:
            warnings.warn(f"cannot write the trace {file}: {error.strerror}", stacklevel=2)


def describe(call: Mapping[str, Any] | Any, note: Note | None) -> str:
    """What a call is, by what the engine and the planner know of it."""
    collective = COLLECTIVES[int(call["collective"])]
    text = collective
    if collective != "barrier":
        elements = int(call["bytes"])
        text += f" of {elements}" if elements != UNEQUAL else " of"
        text += f" {_native.types[int(call['type'])]}"
    if int(call["op"]) < len(OPS):
        text += f", {OPS[int(call['op'])]}"
    if int(call["slice"]) != NO_ROOT:
        text += f", root {int(call['slice'])}"
    return text if note is None else f"{text} ({note.algorithm})"
