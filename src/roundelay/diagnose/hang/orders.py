"""What is said of orders of calls: of recorded programs, flight recorder dumps, and traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from ...formats.flight import Dump
from ...formats.kineto import Trace
from ..finding import Evidence, Figures, Finding, names, numbers, tell
from ..times.breakdown import calls_ran
from .order import Circle, Group, Link, Programs, Use, circle, unmade

MOST: Final = 4 * 10**6
"""Calls whose order is looked at."""
LISTED: Final = 8


def program_findings(programs: Programs, file: str) -> list[Finding]:
    """Of programs that are known from their first call to the last."""
    found = [f for f in (_differs(programs, file), _unmade(programs, file)) if f is not None]
    ring = circle(programs)
    if ring:
        cited = tuple(_cited(file, ring.links))
        found.append(_certain(ring, cited) if ring.certain else _may(ring, cited, 0.6))
    return found or [_safe(programs, file)]


def _counted(programs: Programs) -> Figures:
    uses = [use for program in programs.values() for use in program if isinstance(use, Use)]
    return {"calls": len({use[:2] for use in uses}), "groups": len({use.group for use in uses}),
            "ranks": len(programs)}  # fmt: skip


def _safe(programs: Programs, file: str) -> Finding:
    return tell(
        "no_deadlock", f"n = {len(programs)}", _counted(programs),
        ["No order of execution can deadlock: {calls:call|calls} of {groups:group|groups} on "
         "{ranks:rank|ranks} "
         "make no circle, whatever runs first."],
        "Nothing; record the program again when its calls change.",
        (Evidence(file, 0, "every rank, to its end"),), confidence=0.95, area="hang",
    )  # fmt: skip


def _name(use: Use) -> str:
    number = use.number if isinstance(use.number, int) else "/".join(map(str, use.number))  # type: ignore[call-overload]
    return f"{use.group[0] or '?'}#{number}"


def _cited(file: str, links: Iterable[Link]) -> Iterable[Evidence]:
    for link in [*links][:LISTED]:
        told = [f"{use.what} ({_name(use)}{f', {use.where}' if use.where else ''})"
                for use in (link.before, link.after)]  # fmt: skip
        yield Evidence(file, 0, f"rank {link.rank}: {told[0]}, then {told[1]}")


def _figures(ring: Circle) -> Figures:
    parts = [f"rank {x.rank}: {_name(x.before)} -> {_name(x.after)}" for x in ring.links]
    rest = ["..."] if len(parts) > LISTED else []
    return {"circle": "; ".join(parts[:LISTED] + rest), "length": len(parts)}


SAME: Final = ("Make the calls of these groups in the same order on all ranks, or wait for one "
               "before the other is made.")  # fmt: skip


def _subject(ring: Circle) -> str:
    groups = dict.fromkeys(link.before.group[0] or "?" for link in ring.links)
    return f"groups {names(list(groups), 4)}"


def _certain(ring: Circle, cited: tuple[Evidence, ...]) -> Finding:
    return tell(
        "deadlock", _subject(ring), _figures(ring),
        ["This must hang: calls wait for one another in a circle of {length} ({circle}).",
         "Each rank comes to its second call only when the first has ended."],
        SAME, cited, fault=True, confidence=0.95, area="hang",
    )  # fmt: skip


def _may(ring: Circle, cited: tuple[Evidence, ...], confidence: float, *more: str,
         fault: bool = True) -> Finding:  # fmt: skip
    return tell(
        "may_deadlock", _subject(ring), _figures(ring),
        ["Ranks make calls of several groups in orders that are a circle of {length} ({circle}).",
         "It hangs where a device cannot run both calls at once: kernels of NCCL take up its "
         "processors until all ranks have come.", *more],
        SAME, cited, fault=fault, confidence=confidence, area="hang",
    )  # fmt: skip


def _differs(programs: Programs, file: str) -> Finding | None:
    """The first call that is not the same on all ranks."""
    made: dict[object, dict[int, Use]] = {}
    for rank, program in programs.items():
        for use in program:
            if isinstance(use, Use):
                made.setdefault(use[:2], {})[rank] = use
    for by in made.values():
        counts = Counter(use.what for use in by.values())
        if len(counts) > 1:
            shown = {what: next(r for r, use in by.items() if use.what == what) for what in counts}
            use = next(iter(by.values()))
            parts = "; ".join(f"{what} (rank {r})" for what, r in list(shown.items())[:LISTED])
            cited = [Evidence(file, 0, f"rank {r}: {by[r].what}, {by[r].where}")
                     for r in [*shown.values()][:LISTED]]  # fmt: skip
            return tell(
                "calls_differ", f"group {use.group[0]}", {"number": f"{use.number}",
                                                          "parts": parts},
                ["Call {number} of this group is not the same on all ranks: {parts}."],
                "Look for a branch that ranks take differently.", tuple(cited), fault=True,
                confidence=0.95, area="hang",
            )  # fmt: skip
    return None


def _unmade(programs: Programs, file: str) -> Finding | None:
    found = unmade(programs)
    if not found:
        return None
    use, rank, missing = found[0]
    figures: Figures = {
        "what": use.what,
        "number": f"{use.number}",
        "rank": rank,
        "missing": numbers(missing, 8),
        "calls": len(found),
    }
    return tell(
        "unmatched_call", f"group {use.group[0]}", figures,
        ["Rank {rank} makes call {number} of this group ({what}), and rank {missing} ends without "
         "it: that call never ends.", "Calls of that kind: {calls}."],
        "Make the same calls on all ranks of the group.",
        (Evidence(file, 0, f"rank {rank}: {use.what}, {use.where}"),), fault=True,
        confidence=0.95, area="hang",
    )  # fmt: skip


def dump_findings(dumps: Sequence[Dump]) -> list[Finding]:
    """Of flight recorder dumps, which have calls in the order they were made."""
    programs: dict[int, list[Use]] = {}
    open_: set[tuple[int, object]] = set()
    files: dict[int, str] = {}
    numbered = _Numbered()
    for dump in dumps:
        if dump.rank is None or dump.rank in programs:
            continue
        files[dump.rank] = dump.file
        group = numbered.of(dump.groups)
        calls = [
            (Use(group(c.group), c.sequence, what=c.operation, where=c.where), c.done)
            for c in dump.calls if not c.between and c.sequence
        ]  # fmt: skip
        programs[dump.rank] = _once(use for use, _ in calls)
        open_ |= {(dump.rank, use[:2]) for use, done in calls if not done}
    ring = _ring(programs)
    if ring is None:
        return []
    hangs = all((x.rank, use[:2]) in open_ for x in ring.links for use in (x.before, x.after))
    more = ["None of these calls has ended, so this is the likeliest reason of the hang."]
    return [_may(ring, _of_files(ring, files), 0.9 if hangs else 0.6, *(more if hangs else []))]


class _Numbered:
    """Groups by name and a number for their ranks, which may be thousands to go by at each call."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, ...], int] = {}

    def of(self, groups: Mapping[str, tuple[int, ...]]) -> Callable[[str], Group]:
        """The group of a name, among those that one rank knows."""
        known = {
            name: (name, (self._numbers.setdefault(ranks, len(self._numbers)),))
            for name, ranks in groups.items()
        }
        return lambda name: known.get(name, (name, ()))


def _once(uses: Iterable[Use]) -> list[Use]:
    """The first of each number: what is coalesced into one call has one number."""
    found: dict[object, Use] = {}
    for use in uses:
        found.setdefault(use[:2], use)
    return list(found.values())


def trace_findings(traces: Sequence[Trace]) -> list[Finding]:
    """Of traces, which have calls in the order they ran: it went well, and yet may not always."""
    programs: dict[int, list[Use]] = {}
    files: dict[int, str] = {}
    for trace in traces:
        if trace.rank is None or trace.rank in programs or not calls_ran(trace):
            continue
        files[trace.rank] = trace.file
        programs[trace.rank] = _once(
            Use((c.group, c.ranks or trace.groups.get(c.group, ())), c.seq,
                stream=f"stream {c.stream}", what=c.name)
            for c in trace.calls if c.seq >= 0 and c.peer < 0 and trace.on_device
        )  # fmt: skip
    ring = _ring(programs)
    if ring is None:
        return []
    more = "These calls ran, so it did not happen here."
    return [_may(ring, _of_files(ring, files), 0.5, more, fault=False)]


def _ring(programs: Mapping[int, Sequence[Use]]) -> Circle | None:
    groups = {use.group for program in programs.values() for use in program}
    if len(programs) < 2 or len(groups) < 2 or sum(map(len, programs.values())) > MOST:
        return None
    return circle(programs)


def _of_files(ring: Circle, files: Mapping[int, str]) -> tuple[Evidence, ...]:
    return tuple(e for x in ring.links[:LISTED] for e in _cited(files[x.rank], [x]))
