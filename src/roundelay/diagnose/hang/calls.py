"""Rules about flight recorder dumps: who has called what, and who is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Final

from ...formats.flight import Call, Dump
from ..finding import Evidence, Figures, Finding, names, numbers, tell
from .held import held_findings
from .waits import waits_of

LISTED: Final = 8
UNEVEN: Final = frozenset(
    ("gather", "scatter", "broadcast", "_broadcast_oop", "all_gather_v", "reduce_scatter_v",
     "all_to_all", "all_to_all_single", "alltoall", "alltoall_base", "barrier", "split")
)  # fmt: skip
"""Operations whose shapes may differ between ranks."""
ONE_ROOT: Final = frozenset(("_broadcast_oop", "_reduce_oop"))
"""Parts of an uneven all_gather or reduce_scatter: each is one root's, and the same to all."""


@dataclass(frozen=True)
class Group:
    """A process group: its members, and each rank's collectives by sequence.

    Attributes:
        parts: by rank and sequence, calls that were put together in one (coalesced).
    """

    name: str
    title: str
    members: tuple[int, ...]
    calls: Mapping[int, Mapping[int, Call]]
    files: Mapping[int, str]
    parts: Mapping[int, Mapping[int, tuple[Call, ...]]] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """The group, in a few words."""
        title = f" ({self.title})" if self.title and self.title != self.name else ""
        return f"group {self.name}{title}, n = {len(self.members)}"

    def cited(self, calls: Iterable[tuple[int, Call]]) -> tuple[Evidence, ...]:
        """Calls as evidence; entries of a dump have numbers, not lines."""
        return tuple(
            Evidence(
                self.files.get(rank, "-"), 0, f"rank {rank}: entry {call.record}: {_told(call)}"
            )
            for rank, call in list(calls)[:LISTED]
        )


def _told(call: Call) -> str:
    state = f"{call.state} retired" if call.retired else call.state
    parts = (f"seq {call.sequence}", call.operation, _shape(call), call.dtype, state, call.where)
    return " ".join(filter(None, parts))


def _shape(call: Call) -> str:
    return " ".join(str(list(shape)) for shape in call.inputs[:4]) or "[]"


def groups_of(dumps: Sequence[Dump]) -> list[Group]:
    """The groups that dumps tell of; a dump whose rank is not known gets none."""
    members: dict[str, set[int]] = {}
    titles: dict[str, str] = {}
    calls: dict[str, dict[int, dict[int, Call]]] = {}
    parts: dict[str, dict[int, dict[int, tuple[Call, ...]]]] = {}
    files: dict[int, str] = {}
    known: dict[str, tuple[int, ...]] = {}
    for dump in dumps:
        if dump.rank is None:
            continue
        files.setdefault(dump.rank, dump.file)
        for name, ranks in dump.groups.items():
            if known.get(name) is not ranks:  # most dumps list the same ones
                members.setdefault(name, set()).update(ranks)
                known[name] = ranks
            titles.setdefault(name, dump.names.get(name, ""))
        for call in dump.calls:
            if not call.between:
                own = calls.setdefault(call.group, {}).setdefault(dump.rank, {})
                if call.sequence in own:
                    within = parts.setdefault(call.group, {}).setdefault(dump.rank, {})
                    before = within.get(call.sequence, (own[call.sequence],))
                    within[call.sequence] = (*before, call)
                own[call.sequence] = call
                members.setdefault(call.group, set()).add(dump.rank)
        for name, ranks in dump.groups.items():
            if dump.rank in ranks:
                calls.setdefault(name, {}).setdefault(dump.rank, {})
    return [
        Group(
            name,
            titles.get(name, ""),
            tuple(sorted(members[name])),
            calls[name],
            files,
            parts.get(name, {}),
        )
        for name in members
        if calls.get(name)
    ]


def jobs_of(dumps: Sequence[Dump]) -> list[list[Dump]]:
    """The dumps job by job: by folder if a rank is in several; a file of several ranks is one."""
    each = Counter(dump.file for dump in dumps)
    jobs: dict[str, list[Dump]] = {}
    for dump in dumps:
        job = dump.file if each[dump.file] > 1 else str(PurePath(dump.file).parent)
        jobs.setdefault(job, []).append(dump)
    ranks = Counter(rank for own in jobs.values() for rank in {d.rank for d in own} - {None})
    return list(jobs.values()) if any(n > 1 for n in ranks.values()) else [list(dumps)]


def call_findings(dumps: Sequence[Dump]) -> list[Finding]:
    """What dumps show: where calls differ first, then who keeps all waiting, then what is well."""
    groups = groups_of(dumps)
    differ = {group.name: f for group in groups if (f := _first_difference(group)) is not None}
    waits = waits_of([group for group in groups if group.name not in differ], dumps)
    waiting = {call.key.group for call in waits.open}
    told = {rank for _, ranks in waits.silent for rank in ranks}
    well = [group for group in groups if group.name not in waiting | differ.keys()]
    apart = [f for group in well if (f := _apart(group)) is not None]
    found = [*differ.values(), *held_findings(waits, dumps), *apart]
    gone = _missing(groups, told)
    behind = {finding.subject for finding in apart}
    ended = _ended([group for group in well if group.subject not in behind])
    return [*found, *(f for f in (gone, ended) if f is not None)]


def _first_difference(group: Group) -> Finding | None:
    """The first sequence at which calls are not the same."""
    sequences = sorted({s for own in group.calls.values() for s in own})
    for sequence in sequences:
        made = {rank: own[sequence] for rank, own in group.calls.items() if sequence in own}
        if (inside := _parts_differ(group, sequence, made)) is not None:
            return inside
        operations = Counter(call.operation for call in made.values())
        if len(operations) > 1:
            return _differs(group, sequence, made, "calls_differ", lambda call: call.operation)
        operation = next(iter(operations))
        if operation not in UNEVEN and len({call.inputs for call in made.values()}) > 1:
            return _differs(group, sequence, made, "sizes_differ", _shape)
        if len({call.dtype for call in made.values()} - {""}) > 1:
            return _differs(group, sequence, made, "types_differ", lambda call: call.dtype)
        if operation not in UNEVEN and len({call.result for call in made.values()} - {""}) > 1:
            return _differs(group, sequence, made, "types_differ", lambda call: call.result)
    return None


def _parts_differ(group: Group, sequence: int, made: Mapping[int, Call]) -> Finding | None:
    """The first of calls put together in one that is not the same on all ranks."""
    within = {rank: group.parts.get(rank, {}).get(sequence, ()) for rank in made}
    if not all(within.values()) or len({len(calls) for calls in within.values()}) > 1:
        return None
    for calls in zip(*within.values(), strict=True):
        each = dict(zip(within, calls, strict=True))
        if len({call.operation for call in calls}) > 1:
            return _differs(group, sequence, each, "calls_differ", lambda call: call.operation)
        if len({call.inputs for call in calls}) > 1 and calls[0].operation in ONE_ROOT:
            return _differs(group, sequence, each, "sizes_differ", _shape)
    return None


_DIFFER: Final = {
    "calls_differ": ("Ranks call different operations at sequence {sequence}: {parts}.",
                     "Look for a branch that ranks take differently (a condition on data or rank), "
                     "and for threads that call in another order."),
    "sizes_differ": ("Sizes differ at sequence {sequence} of {operation}: {parts}.",
                     "Look for uneven batches, a last batch that is smaller, or parameters without "
                     "a gradient on one rank."),
    "types_differ": ("Data types differ at sequence {sequence} of {operation}: {parts}.",
                     "Look for autocast, or a conversion that one rank does not make."),
}  # fmt: skip


def _differs(
    group: Group, sequence: int, made: Mapping[int, Call], kind: str, key: Callable[[Call], str]
) -> Finding:
    """Ranks by what they have called, the most common first."""
    by: dict[str, list[int]] = {}
    for rank, call in sorted(made.items()):
        by.setdefault(key(call), []).append(rank)
    common = sorted(by.items(), key=lambda item: -len(item[1]))[:LISTED]
    parts = "; ".join(f"{what} on rank {numbers(ranks, LISTED)}" for what, ranks in common)
    odd = min(by.values(), key=len)
    figures: Figures = {
        "sequence": sequence, "operation": next(iter(made.values())).operation, "parts": parts,
        "odd": numbers(odd, LISTED),
    }  # fmt: skip
    reason, advice = _DIFFER[kind]
    ordered = sorted(made.items(), key=lambda item: item[0] not in odd)
    return tell(kind, group.subject, figures,
                [reason, "All before it agree, so this is where they part."], advice,
                group.cited(ordered), fault=True, confidence=0.95, area="hang")  # fmt: skip


def _apart(group: Group) -> Finding | None:
    """Ranks that are further on than others, where nothing waits."""
    last = {rank: max(own) for rank, own in group.calls.items() if own}
    if len(set(last.values())) < 2:
        return None
    low, high = min(last.values()), max(last.values())
    late = sorted(rank for rank, sequence in last.items() if sequence == low)
    ahead = sorted(rank for rank, sequence in last.items() if sequence == high)
    figures: Figures = {
        "late": numbers(late, LISTED),
        "low": low,
        "ahead": numbers(ahead, LISTED),
        "high": high,
    }
    cited = [(ahead[0], group.calls[ahead[0]][high]), (late[0], group.calls[late[0]][low])]
    return tell(
        "counts_differ", group.subject, figures,
        ["The last call of rank {late} is {low}, that of rank {ahead} is {high}, and all of them "
         "have ended: nothing waits in this group, so the dumps are of different moments, or rank "
         "{late} has stopped."],
        "Take the dumps of all ranks at the same time; where rank {late} has ended, read the end "
        "of its log.",
        group.cited(cited), confidence=0.7, area="hang",
    )  # fmt: skip


def _missing(groups: Sequence[Group], told: set[int]) -> Finding | None:
    """Members without a dump for whom nobody is seen to wait, by the group that lacks most."""
    gone = {group.name: [r for r in group.members if r not in group.calls and r not in told]
            for group in groups}  # fmt: skip
    group = max(groups, key=lambda g: len(gone[g.name]), default=None)
    if group is None or not gone[group.name]:
        return None
    last = {rank: own[max(own)] for rank, own in group.calls.items() if own}
    top = max((call.sequence for call in last.values()), default=0)
    at = next((call for call in last.values() if call.sequence == top), None)
    figures: Figures = {
        "missing": numbers(gone[group.name], LISTED), "there": len(group.calls),
        "ranks": len(group.members), "sequence": top, "operation": at.operation if at else "?",
        "shape": _shape(at) if at else "[]",
    }  # fmt: skip
    most = 2 * len(group.calls) >= len(group.members)
    reason = [
        "Rank {missing} has left no dump ({there} of {ranks} are here): it has died, or hangs "
        "where it cannot write."
        if most else "No dump of rank {missing} is here ({there} of {ranks} are): what is said "
        "holds for the others."
    ]  # fmt: skip
    if at is not None:
        reason.append("The last call that the others tell of is sequence {sequence}, {operation} "
                      "{shape}.")  # fmt: skip
    advice = (
        "Look at the end of that rank's own log first; what it passed to that call may differ from "
        "what the others did."
        if most else "Give the dumps of all ranks at once."
    )  # fmt: skip
    return tell("missing_dump", group.subject, figures, reason, advice,
                group.cited(sorted(last.items())), fault=most, confidence=0.85,
                area="hang")  # fmt: skip


def _ended(groups: Sequence[Group]) -> Finding | None:
    """Groups in which all ranks seen have made the same calls, and all ended."""
    used = [group for group in groups if any(group.calls.values())]
    if not used:
        return None
    first = used[0]
    last = {rank: own[max(own)] for rank, own in first.calls.items() if own}
    figures: Figures = {
        "ranks": len(first.calls), "groups": len(used),
        "calls": max(len(own) for group in used for own in group.calls.values()),
        "names": names([group.name for group in used], LISTED),
    }  # fmt: skip
    if len(used) == 1:
        reason = "All {ranks:rank|ranks} made the same {calls:call|calls}, and all of them ended."
        subject = first.subject
    else:
        reason = ("In each of {groups} groups ({names}) all ranks made the same calls, up to "
                  "{calls}, and all of them ended.")  # fmt: skip
        subject = f"{len(used)} groups"
    return tell("matched", subject, figures, [reason],
                "Nothing hangs there; look at others, or at what comes after.",
                first.cited(sorted(last.items())[:2]), confidence=0.95,
                area="hang")  # fmt: skip
