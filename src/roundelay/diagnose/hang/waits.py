"""Who waits for whom in the dumps of a job, over all its process groups and messages.

Behind one late rank the others wait, also in groups that it is no member of. So it is not asked of
each group who is late there, but who keeps others waiting and waits for nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ...formats.flight import Call, Dump

if TYPE_CHECKING:
    from .calls import Group

_MESSAGE: Final = re.compile(r"(send|recv) (\d{1,7})(->|<-)(\d{1,7})")


class Key(NamedTuple):
    """Which call of a group: a collective by its sequence, a message by its ends."""

    group: str
    sequence: int
    ends: tuple[int, int] = (-1, -1)


@dataclass
class Open:
    """A call that has not ended.

    Attributes:
        key: which.
        group: in which.
        waiting: ranks that are in it, with their record of it.
        absent: ranks that it needs and that have not come to it, as far as is known.
    """

    key: Key
    group: Group
    waiting: dict[int, Call] = field(default_factory=dict)
    absent: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """The least number of a record of it, which tells how early it was made."""
        return min(call.record for call in self.waiting.values())


@dataclass(frozen=True)
class Waits:
    """What is open, and who is at the root of it.

    Attributes:
        open: all open calls.
        late: open calls whose absent ranks wait for nobody themselves, each such rank in the first
            call that lacks it.
        silent: the same for ranks without a dump.
        full: open calls to which all have come.
        circle: open calls each of which waits for a rank in the next.
    """

    open: tuple[Open, ...]
    late: tuple[tuple[Open, tuple[int, ...]], ...]
    silent: tuple[tuple[Open, tuple[int, ...]], ...]
    full: tuple[Open, ...]
    circle: tuple[tuple[Open, int], ...]

    def behind(self, ranks: Iterable[int]) -> tuple[set[int], set[str]]:
        """Ranks that wait for these, by way of others too; and the groups they wait in."""
        held, groups, todo = set[int](), set[str](), set(ranks)
        lacking: dict[int, list[Open]] = {}
        for call in self.open:
            for rank in call.absent:
                lacking.setdefault(rank, []).append(call)
        while todo:
            calls = lacking.get(todo.pop(), ())
            groups |= {call.key.group for call in calls}
            new = {rank for call in calls for rank in call.waiting} - held
            held |= new
            todo |= new
        return held, groups


def reached(group: Group, dump: Dump | None, rank: int) -> int | None:
    """The last collective that a rank has called in a group; None if that is not known."""
    known = max(group.calls.get(rank, ()), default=None)
    told = dump.enqueued.get(group.name) if dump else None
    if known is None and told is None:
        wrapped = dump is not None and bool(dump.calls) and dump.calls[0].record > 1
        return None if wrapped else 0
    return max(known or 0, told or 0)


def waits_of(groups: Sequence[Group], dumps: Sequence[Dump]) -> Waits:
    """The picture of a job."""
    of: dict[int, Dump] = {}
    sent: dict[tuple[str, int], list[Call]] = {}
    for dump in dumps:
        if dump.rank is not None and of.setdefault(dump.rank, dump) is dump:
            for call in dump.calls:
                if call.between:
                    sent.setdefault((call.group, dump.rank), []).append(call)
    found = [open_ for group in groups
             for open_ in (*_collectives(group, of), *_messages(group, sent))]  # fmt: skip
    busy = {rank for call in found for rank in call.waiting}
    roots: dict[int, Open] = {}
    for lacking in sorted(found, key=lambda c: c.first):
        for rank in lacking.absent:
            if rank not in busy:
                roots.setdefault(rank, lacking)
    by: dict[Key, tuple[Open, list[int]]] = {}
    for rank, lacking in sorted(roots.items(), key=lambda pair: pair[0]):
        by.setdefault(lacking.key, (lacking, []))[1].append(rank)
    late = [(call, tuple(r for r in ranks if r in of)) for call, ranks in by.values()]
    silent = [(call, tuple(r for r in ranks if r not in of)) for call, ranks in by.values()]
    full = tuple(call for call in found if not call.absent)
    return Waits(
        tuple(found), tuple(pair for pair in late if pair[1]),
        tuple(pair for pair in silent if pair[1]), full,
        () if roots or full else _circle(found),
    )  # fmt: skip


def _collectives(group: Group, of: Mapping[int, Dump]) -> Iterator[Open]:
    found: dict[Key, Open] = {}
    for rank, own in group.calls.items():
        done = max((s for s, call in own.items() if call.done), default=0)
        first = min((s for s, call in own.items() if s > done and not call.done), default=None)
        if first is not None:
            key = Key(group.name, first)
            found.setdefault(key, Open(key, group)).waiting[rank] = own[first]
    if not found:
        return
    at = {rank: reached(group, of.get(rank), rank) if rank in group.calls else 0
          for rank in group.members}  # fmt: skip
    for key, call in found.items():
        call.absent = tuple(
            rank for rank, last in at.items()
            if rank not in call.waiting and last is not None and last < key.sequence
        )  # fmt: skip
        yield call


def _messages(group: Group, sent: Mapping[tuple[str, int], Sequence[Call]]) -> Iterator[Open]:
    found: dict[Key, Open] = {}
    for rank in group.members if sent else ():
        for call, ends in _open_messages(group, sent.get((group.name, rank), ())):
            key = Key(group.name, 0, ends)
            found.setdefault(key, Open(key, group)).waiting.setdefault(rank, call)
    for key, message in found.items():
        message.absent = tuple(rank for rank in key.ends if rank not in message.waiting)
        yield message


def _open_messages(group: Group, own: Sequence[Call]) -> list[tuple[Call, tuple[int, int]]]:
    """Messages of a rank that have not ended, with sender and receiver.

    Of messages that were begun together only the whole, "coalesced", is told to have ended.
    """
    together = {call.sequence for call in own if call.operation == "coalesced" and call.done}
    ended: dict[tuple[int, int], int] = {}
    found: list[tuple[Call, tuple[int, int]]] = []
    for call in own:
        match = _MESSAGE.match(call.operation)
        if match is None:
            continue
        a, b = (_member(group, int(match[i])) for i in (2, 4))
        ends = (a, b) if match[1] == "send" else (b, a)
        if call.done or call.sequence in together:
            ended[ends] = max(ended.get(ends, 0), call.sequence)
        else:
            found.append((call, ends))
    return [(call, ends) for call, ends in found if call.sequence > ended.get(ends, -1)]


def _member(group: Group, index: int) -> int:
    """A rank of the job by its number in the group."""
    return group.members[index] if index < len(group.members) else index


def _circle(calls: Sequence[Open]) -> tuple[tuple[Open, int], ...]:
    """Calls each of which lacks a rank that is in the next, with that rank."""
    into: dict[int, Open] = {}
    for call in sorted(calls, key=lambda c: c.first):
        for rank in call.waiting:
            into.setdefault(rank, call)
    path: list[tuple[Open, int]] = []
    at = min(calls, key=lambda c: c.first, default=None)
    while at is not None and at.absent:
        seen = [i for i, (call, _) in enumerate(path) if call is at]
        if seen:
            return tuple(path[seen[0] :])
        rank = at.absent[0]
        path.append((at, rank))
        at = into.get(rank)
    return ()
