"""What is said of who keeps whom waiting: see `waits`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..finding import Evidence, Figures, Finding, names, numbers, tell
from .waits import Open, Waits, reached

if TYPE_CHECKING:
    from ...formats.flight import Dump

LISTED: Final = 8


def _operation(call: Open) -> str:
    return next(iter(call.waiting.values())).operation


def held_findings(waits: Waits, dumps: Sequence[Dump]) -> list[Finding]:
    """The ranks that all wait for, the calls that all are in, or the circle."""
    of = {dump.rank: dump for dump in dumps}
    found = [_late(call, ranks, waits, of) for call, ranks in waits.late]
    found += [_silent(call, ranks, waits) for call, ranks in waits.silent]
    if waits.full:
        found.append(_full(waits.full, waits))
    if waits.circle:
        found.append(_circle(waits.circle))
    return found


def _behind(call: Open, ranks: Sequence[int], waits: Waits, figures: Figures) -> list[str]:
    """Who else waits, and where."""
    held, groups = waits.behind(ranks)
    others = sorted(held - {*call.waiting} - {*ranks})
    if not others:
        return []
    figures |= {
        "held": numbers(others, LISTED),
        "groups": names(sorted(groups - {call.key.group}), LISTED),
    }
    if not figures["groups"]:
        return ["Held up only because of that: rank {held}."]
    return ["Held up only because of that: rank {held} (group {groups})."]


def _late(call: Open, ranks: Sequence[int], waits: Waits, of: dict[int | None, Dump]) -> Finding:
    """Ranks that have not come to a call, and wait in none themselves."""
    group, waiting = call.group, sorted(call.waiting)
    figures: Figures = {"late": numbers(ranks, LISTED), "operation": _operation(call),
                        "waiting": numbers(waiting, LISTED)}  # fmt: skip
    if call.key.sequence:
        last = min(reached(group, of.get(rank), rank) or 0 for rank in ranks)
        figures |= {"sequence": call.key.sequence, "last": last}
        reason = ["Rank {late} holds up rank {waiting}: it never called {operation}, sequence "
                  "{sequence}; its last call is {last}."]  # fmt: skip
    else:
        reason = ["Rank {late} has not made its part of {operation}, in which rank {waiting} "
                  "waits."]  # fmt: skip
    reason += _behind(call, ranks, waits, figures)
    reason.append("All that rank {late} has called has ended, so it is busy, or stuck, outside of "
                  "its calls.")  # fmt: skip
    cited = [(r, call.waiting[r]) for r in waiting]
    cited += [(r, own[max(own)]) for r in ranks if (own := group.calls.get(r))]
    return tell("never_called", group.subject, figures, reason,
                "See what rank {late} does in its place (py-spy dump): data loading, a checkpoint, "
                "an exception, a branch of its own.", group.cited(cited), fault=True,
                confidence=0.9, area="hang")  # fmt: skip


def _silent(call: Open, ranks: Sequence[int], waits: Waits) -> Finding:
    """Ranks without a dump that others wait for."""
    group, waiting = call.group, sorted(call.waiting)
    shape = next(iter(call.waiting.values())).inputs[:1]
    figures: Figures = {
        "missing": numbers(ranks, LISTED), "there": len(group.calls), "ranks": len(group.members),
        "operation": _operation(call), "waiting": numbers(waiting, LISTED),
        "sequence": call.key.sequence, "shape": str(list(shape[0])) if shape else "[]",
    }  # fmt: skip
    most = 2 * len(group.calls) >= len(group.members)
    reason = ["Rank {missing} has left no dump ({there} of {ranks} are here): it has died, or "
              "hangs where it cannot write." if most else
              "No dump of rank {missing} is here ({there} of {ranks} are): whether one of them is "
              "late, or the network, cannot be told."]  # fmt: skip
    reason.append(
        "Rank {waiting} wait for it in sequence {sequence}, {operation} {shape}."
        if call.key.sequence
        else "Rank {waiting} waits for it in {operation}."
    )
    reason += _behind(call, ranks, waits, figures)
    advice = (
        "Look at the end of that rank's own log first; what it passed to that call may differ from "
        "what the others did."
        if most else "Give the dumps of all ranks at once."
    )  # fmt: skip
    return tell(
        "missing_dump", group.subject, figures, reason, advice,
        group.cited([(r, call.waiting[r]) for r in waiting]), fault=True, confidence=0.85,
        area="hang",
    )  # fmt: skip


def _full(calls: Sequence[Open], waits: Waits) -> Finding:
    """Calls that all have come to, and that do not end."""
    first = min(calls, key=lambda call: call.first)
    figures: Figures = {
        "ranks": len(first.waiting), "sequence": first.key.sequence, "calls": len(calls),
        "operation": _operation(first),
        "groups": names(list(dict.fromkeys(call.key.group for call in calls)), LISTED),
    }  # fmt: skip
    if len(calls) > 1:
        reason = ["All ranks have come to {calls} calls that do not end (groups {groups}), first "
                  "to {operation}: no mismatch, so a network or a card."]  # fmt: skip
    elif first.key.sequence:
        reason = ["All {ranks:rank|ranks} seen are in the same call, sequence {sequence} of "
                  "{operation}, and it does not end: no mismatch, so a network, a card or a rank "
                  "that is not seen."]  # fmt: skip
    else:
        reason = ["Both ranks are in {operation}, and it does not end: so the way between them, or "
                  "a card."]  # fmt: skip
    held, _ = waits.behind({rank for call in calls for rank in call.waiting})
    others = sorted(held - {rank for call in calls for rank in call.waiting})
    if others:
        figures["held"] = numbers(others, LISTED)
        reason.append("Held up only because of that: rank {held}.")
    subject = first.group.subject if len(calls) == 1 else f"groups {figures['groups']}"
    cited = [e for call in calls[:LISTED] for e in call.group.cited(sorted(call.waiting.items()))]
    return tell(
        "stuck_together", subject, figures, reason,
        "Look for Xid errors and link errors on all hosts, and run nccl-tests between them.",
        tuple(cited[:LISTED]), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def _circle(circle: Sequence[tuple[Open, int]]) -> Finding:
    """Each is in a call that lacks the next."""
    parts, cited = [], list[Evidence]()
    for call, absent in circle[:LISTED]:
        at = f"sequence {call.key.sequence}" if call.key.sequence else "a message"
        parts.append(f"rank {numbers(sorted(call.waiting), LISTED)} in group {call.key.group}, "
                     f"{_operation(call)}, {at}, for rank {absent}")  # fmt: skip
        cited += call.group.cited(sorted(call.waiting.items())[:1])
    figures: Figures = {"circle": "; ".join(parts), "length": len(circle)}
    return tell(
        "deadlock", f"groups {names(list(dict.fromkeys(c.key.group for c, _ in circle)), 4)}",
        figures,
        ["Ranks wait for one another in a circle of {length}: {circle}.",
         "None of these calls can end."],
        "Make the calls of these groups in the same order on all ranks, or wait for one before "
        "the other is made.",
        tuple(cited), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip
