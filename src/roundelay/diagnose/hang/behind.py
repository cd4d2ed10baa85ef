"""Who is behind, as ranks tell one another when a collective takes too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...formats.desync import Desync
from ...formats.watchdog import Signal, Watched
from ..finding import Figures, Finding, cited, numbers, tell

SEE = "See what rank {late} does in its place (py-spy dump): data loading, a checkpoint, an " \
      "exception, a branch of its own."  # fmt: skip


def desync(file: str, said: Watched) -> Finding | None:
    """What torch's own report says (TORCH_NCCL_DESYNC_DEBUG)."""
    for report in said.reports:
        for rule in (_never, _mixed, _ended, _inside):
            if (found := rule(file, report)) is not None:
                return found
    return None


def _figures(report: Desync, late: Sequence[int]) -> Figures:
    return {"late": numbers(late, 8), "rank": report.rank, "operation": report.operation,
            "sequence": report.sequence}  # fmt: skip


def _never(file: str, report: Desync) -> Finding | None:
    if not report.never:
        return None
    return tell(
        "never_called", file, _figures(report, report.never),
        ["Rank {late} has made no call at all, while rank {rank} waits in {operation}, sequence "
         "{sequence}: it has not started, has died, or is still busy before its first call."],
        "Read the log of rank {late} from its start; see that every process was started once.",
        cited(file, report.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def _mixed(file: str, report: Desync) -> Finding | None:
    """Ranks are in different calls under one number."""
    lowest = min((at for at, _, _ in report.states), default=0)
    calls = {op: ranks for (at, _, op), ranks in report.states.items() if at == lowest}
    if len(calls) < 2:
        return None
    parts = "; ".join(f"rank {numbers(ranks, 8)}: {op}" for op, ranks in list(calls.items())[:8])
    return tell(
        "calls_differ", file, {"sequence": lowest, "parts": parts},
        ["Under the same number (sequence {sequence}) ranks call different things: {parts}."],
        "Look for a branch that these ranks take differently, such as one under a condition on "
        "the rank or on the data.",
        cited(file, report.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def _ended(file: str, report: Desync) -> Finding | None:
    late, last = report.ended
    if not late:
        return None
    return tell(
        "never_called", file, {**_figures(report, late), "last": last},
        ["Rank {late} has ended call {last} and never come to the next, while rank {rank} waits in "
         "{operation}, sequence {sequence}.",
         "So rank {late} is busy, stuck outside of its calls, or dead."],
        SEE, cited(file, report.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def _inside(file: str, report: Desync) -> Finding | None:
    inside, at = report.joined
    if not inside:
        return None
    further = any(number > at for number, _, _ in report.states)
    figures: Figures = {**_figures(report, inside), "last": at}
    reason = ["Rank {late} is still in call {last}, which does not end there, and others are "
              "further: its card, or a kernel on it, does not come to it or does not get through."
              if further else
              "Rank {late} has come to call {last}, and it does not end: no mismatch is to be "
              "seen, so a network, a card, or a rank that does not report."]  # fmt: skip
    return tell(
        "stuck_together", file, figures, reason,
        "Look for Xid errors and link errors on the hosts of these ranks, and run nccl-tests "
        "between them.",
        cited(file, report.line), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def behind(file: str, said: Watched) -> Finding | None:
    """What ranks say of themselves when one has told them that it waited too long."""
    if not said.signals or said.reports:
        return None
    groups: dict[str, dict[int, Signal]] = {}
    for signal in said.signals:
        if signal.rank is not None and signal.enqueued >= signal.completed:
            groups.setdefault(signal.group, {}).setdefault(signal.rank, signal)
    _waiting(said, groups)
    for signals in groups.values():
        if (found := _late(file, list(signals.values()))) is not None:
            return found
    if said.timeouts or said.progress:
        return None
    first = next((s for s in said.signals if s.by is not None), None)
    own = next((s for s in said.signals if s.by is None and s.completed < s.enqueued), None)
    if own is not None and own.completed >= 0:
        return _own(file, own)
    if first is None:
        return None
    told = sorted({signal.rank for signal in said.signals if signal.rank is not None})
    figures: Figures = {"by": "?" if first.by is None else first.by, "ranks": numbers(told, 8)}
    idle = {s.enqueued for s in said.signals if s.enqueued == s.completed}
    if len(idle) == 1 and all(s.enqueued == s.completed > 0 for s in said.signals):
        figures["last"] = idle.pop()
        return tell(
            "stuck_together", file, figures,
            ["A call of rank {by} was the first that took too long. Rank {ranks} had by its own "
             "count ended all of its {last} calls and queued no further one: where rank {by} waits "
             "in a later call, it is rank {ranks} that has not come to it, being late, stuck "
             "outside of its calls or in the launching of one, or having left one out."],
            "See what rank {ranks} does (py-spy dump --native, its log), and in the log of rank "
            "{by} which call WorkNCCL(SeqNum=...) names.",
            cited(file, first.line), fault=True, confidence=0.75, area="hang",
        )  # fmt: skip
    return tell(
        "stuck_together", file, figures,
        ["A call of rank {by} was the first that took too long; rank {ranks} only say that they "
         "were told so."],
        "Read the log of rank {by}: WorkNCCL(SeqNum=...) there names the call; give the dumps of "
        "all ranks here (TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1).",
        cited(file, first.line), fault=True, confidence=0.75, area="hang",
    )  # fmt: skip


def _waiting(said: Watched, groups: Mapping[str, dict[int, Signal]]) -> None:
    """Add the ranks whose own watchdogs say how far they are in a group of these."""
    for p in said.progress:
        if p.rank is not None and p.group in groups and p.enqueued >= p.completed:
            groups[p.group].setdefault(
                p.rank, Signal(p.rank, p.group, None, p.enqueued, p.completed, p.line)
            )


def _own(file: str, signal: Signal) -> Finding:
    """A rank that says of itself alone that a call takes too long."""
    figures: Figures = {
        "rank": "?" if signal.rank is None else signal.rank, "last": signal.completed,
        "next": signal.completed + 1, "queued": signal.enqueued,
    }  # fmt: skip
    reason = ["A call of rank {rank} took too long: up to {last} all have ended, so it waits in "
              "{next}; up to {queued} they are queued."]  # fmt: skip
    if signal.enqueued > signal.completed + 1:
        reason.append("Those behind only follow: call {next} is the one to look at, by what each "
                      "rank calls there (which, in what order and size).")  # fmt: skip
    reason.append("What the other ranks do, these lines do not say: one may have left the call "
                  "out, made another, or not come to it; else a network or a card.")  # fmt: skip
    return tell(
        "stuck_together", file, figures, reason,
        "Compare the calls around it on all ranks: give their dumps here "
        "(TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1), or set "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL.",
        cited(file, signal.line), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def _late(file: str, signals: Sequence[Signal]) -> Finding | None:
    """Ranks that have ended all that they have called, where others have called more."""
    most = max(s.enqueued for s in signals)
    late = [s for s in signals if s.enqueued == s.completed and s.enqueued < most]
    waiting = [s for s in signals if s.completed < s.enqueued]
    if not late or not waiting:
        return None
    last = min(s.enqueued for s in late)
    figures: Figures = {
        "late": numbers(sorted(s.rank or 0 for s in late), 8), "last": last, "most": most,
        "waiting": numbers(sorted(s.rank or 0 for s in waiting), 8),
    }  # fmt: skip
    return tell(
        "never_called", file, figures,
        ["Rank {late} has ended all of its {last} calls and made no further one, while rank "
         "{waiting} has called up to {most} and waits.",
         "So rank {late} is late, stuck outside of its calls, or has left out a call."],
        SEE, cited(file, *[s.line for s in (*late, *waiting)][:4]), fault=True, confidence=0.85,
        area="hang",
    )  # fmt: skip
