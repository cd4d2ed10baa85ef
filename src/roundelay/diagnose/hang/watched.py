"""Rules about what watchdogs, fingerprints, RAS and Gloo say of a hang."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd
from typing import Final

from ...formats.watchdog import Print, Progress, Timeout, Watched
from ...i18n import counted
from ..finding import Figures, Finding, cited, names, numbers, tell
from .behind import behind, desync
from .gloo import gloo_finding

STRAY: Final = 10**7
"""Calls: a rank that is so far from another has not counted from the same start; old versions
begin at a random number that rank 0 chooses for all."""
QUEUED: Final = 8
"""Calls that a rank may well have queued ahead of the one it waits in."""
LATE: Final = 1.5
"""Times the limit, from which a watchdog spoke much too late."""
UNEQUAL: Final = frozenset({"SEND", "RECV", "COALESCED", "ALLTOALL", "ALLTOALL_BASE", "UNKNOWN",
                            "RECVANYSOURCE", "GATHER", "SCATTER"})  # fmt: skip
"""Calls in which ranks may do different things under one number."""

SAME_NUMBERS = "So it is not that one of them lacks calls: under the same numbers they do not " \
               "make the same calls (another order, another size, or another group), or a call " \
               "has ended on one side only."  # fmt: skip
COMPARE = "Compare what both ranks call from {low} on: dumps of all ranks " \
          "(TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1) given here, or " \
          "TORCH_DISTRIBUTED_DEBUG=DETAIL; look for a branch that depends on the rank or its " \
          "data."  # fmt: skip


def prints_differ(file: str, said: Watched) -> Finding | None:
    """Fingerprints of a call that are not the same."""
    if len(said.prints) < 2:
        return _one_print(file, said.prints)
    a, b = said.prints[:2]
    if a.sequence != b.sequence:
        return _apart(file, a, b)
    kind = ("calls_differ" if a.operation != b.operation else
            "sizes_differ" if a.shape != b.shape else "types_differ")  # fmt: skip
    figures: Figures = {
        "sequence": a.sequence, "rank": a.rank, "other": b.rank, "operation": a.operation,
        "one": _print(kind, a), "two": _print(kind, b),
    }  # fmt: skip
    reason = ["At sequence {sequence} rank {rank} calls {operation} with {one}, rank {other} with "
              "{two}."]  # fmt: skip
    if kind == "calls_differ" and not a.sequence:
        reason = ["Rank {rank} calls {one}, rank {other} {two}, where all must call the same."]
    elif not a.sequence:
        reason = ["In one call rank {rank} calls {operation} with {one}, rank {other} with {two}."]
    advice = "Look for a branch that the two ranks take differently."
    if kind == "sizes_differ" and "REDUCE_SCATTER" in a.operation:
        reason.append("Where these are gradients of shards (FSDP, ZeRO), the ranks share out "
                      "another part of the model in this call: another order of its parts, parts "
                      "that one rank does not use or has frozen, or another model.")  # fmt: skip
        advice = ("Print model, wrapping and order of use on both ranks; make every rank use the "
                  "same parts of the model in each step.")  # fmt: skip
    if kind == "sizes_differ" and "GATHER" in a.operation:
        reason.append("Every rank must bring a piece of the same size: that is not so where what "
                      "is shared out does not divide evenly, for one.")  # fmt: skip
        advice = "Fill the pieces up to one size, or gather them into a list of tensors."
    if kind == "sizes_differ" and a.operation.startswith(("ALLREDUCE", "_ALLREDUCE")):
        reason.append("Where these are gradients, a part of the model was not used on one rank, "
                      "such as a batch without images.")  # fmt: skip
        advice = ("Make every rank use all of the model in each step (a zero-weighted pass), or "
                  "set find_unused_parameters=True.")  # fmt: skip
    return tell(kind, file, figures, reason, advice, cited(file, a.line), fault=True,
                confidence=0.9, area="hang")  # fmt: skip


def _one_print(file: str, prints: Sequence[Print]) -> Finding | None:
    """A fingerprint alone, as versions before 2.0 print it."""
    if not prints:
        return None
    one = prints[0]
    figures: Figures = {"rank": one.rank, "operation": one.operation, "shape": str(list(one.shape)),
                        "dtype": one.dtype or "?"}  # fmt: skip
    return tell(
        "calls_differ", file, figures,
        ["Rank {rank} calls {operation} of shape {shape} ({dtype}), and at least one other rank "
         "calls something else, which this version of PyTorch does not print."],
        "Look for the same line of the other ranks: those that name another operation or shape are "
        "where they part. PyTorch 2.0 and later print both sides.",
        cited(file, one.line), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def _apart(file: str, a: Print, b: Print) -> Finding:
    """Fingerprints of different calls: one rank is further on."""
    figures: Figures = {
        "rank": a.rank, "sequence": a.sequence, "operation": a.operation,
        "other": b.rank, "elsewhere": b.sequence, "another": b.operation,
    }  # fmt: skip
    if abs(a.sequence - b.sequence) > STRAY:
        return tell(
            "counts_differ", file, figures,
            ["Rank {rank} is at sequence {sequence} ({operation}) while rank {other} is at "
             "{elsewhere} ({another}). That is too far apart for calls that one of them has left "
             "out: they did not begin at the same number, so they are in different groups, or one "
             "of them has made its group anew."],
            "Compare the groups that both ranks make, and their order (new_group must be called by "
            "all ranks); see whether a rank was started again.",
            cited(file, a.line), fault=True, confidence=0.75, area="hang",
        )  # fmt: skip
    return tell(
        "counts_differ", file, figures,
        ["Rank {rank} is at sequence {sequence} ({operation}) while rank {other} is at {elsewhere} "
         "({another}): they have made different numbers of calls."],
        "Look for a call that only some ranks make (under a condition on the rank, or after an "
        "error that one rank alone has met), and read the end of both ranks' logs.",
        cited(file, a.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def _print(kind: str, print_: object) -> str:
    shape = list(getattr(print_, "shape", ()))
    what = {"sizes_differ": shape, "types_differ": getattr(print_, "dtype", "")}
    return str(what.get(kind, getattr(print_, "operation", "")))


def counts_differ(file: str, said: Watched) -> Finding | None:
    """Ranks time out at different sequences of one group."""
    if len({said.group_of(timeout) for timeout in said.timeouts} - {""}) > 1:
        return None
    first: dict[int, Timeout] = {}
    for timeout in said.timeouts:
        rank = -1 if timeout.rank is None else timeout.rank
        if rank not in first or timeout.sequence < first[rank].sequence:
            first[rank] = timeout
    places = {timeout.sequence for timeout in first.values()}
    if len(places) < 2 or 0 in places:
        return None
    low, high = min(places), max(places)
    behind = sorted(rank for rank, t in first.items() if t.sequence == low)
    ahead = sorted(rank for rank, t in first.items() if t.sequence == high)
    if (crossed := _crossed(file, said, first)) is not None:
        return crossed
    figures: Figures = {
        "low": low, "high": high, "behind": numbers(behind), "apart": high - low,
        "ahead": numbers(ahead), "ratio": low / high, "near": _ratio(low, high),
    }  # fmt: skip
    reason = ["Rank {behind} waits in sequence {low}, rank {ahead} in {high}: they have made "
              "different numbers of calls, {apart} apart."]  # fmt: skip
    if high - low < QUEUED and not any(p.rank in behind for p in said.progress):
        reason = ["Rank {behind} waits in sequence {low}, rank {ahead} in {high}, {apart} apart: "
                  "one has made calls that the other has not, or they have queued the same calls "
                  "and one of these has ended on one side only."]  # fmt: skip
    if high - low > 100 and figures["near"]:
        reason.append("That is about {near}: it has gone on for long, call after call.")
    reason += _late(said, figures)
    return tell(
        "counts_differ", file, figures, reason,
        "Look for uneven numbers of batches (drop_last, join()), a loop whose length depends on "
        "data, or a call under a condition on the rank.",
        cited(file, *[t.line for t in first.values()][:4]), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def _crossed(file: str, said: Watched, first: Mapping[int, Timeout]) -> Finding | None:
    """A rank behind that has queued the call of the other, too: it is not calls that it lacks."""
    low, high = (end(first.values(), key=lambda t: t.sequence) for end in (min, max))
    queued = max((p.enqueued for p in said.progress if p.rank == low.rank), default=0)
    if queued < high.sequence:
        return None
    figures: Figures = {
        "low": low.sequence, "high": high.sequence, "queued": queued, "one": low.operation,
        "two": high.operation, "behind": "?" if low.rank is None else low.rank,
        "ahead": "?" if high.rank is None else high.rank,
    }  # fmt: skip
    return tell(
        "out_of_step", file, figures,
        ["Rank {behind} waits in sequence {low} ({one}) and has queued up to {queued}; rank "
         "{ahead} has ended that number and waits in {high} ({two}).",
         SAME_NUMBERS],
        COMPARE, cited(file, low.line, high.line), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def groups_stuck(file: str, said: Watched) -> Finding | None:
    """Calls of several groups wait at once; their sequences cannot be compared."""
    first: dict[str, Timeout] = {}
    for timeout in said.timeouts:
        first.setdefault(said.group_of(timeout), timeout)
    first.pop("", None)
    if len(first) < 2:
        return None
    parts = [f"group {group}: rank {t.rank if t.rank is not None else '?'}, {t.operation}, "
             f"sequence {t.sequence}" for group, t in first.items()]  # fmt: skip
    return tell(
        "groups_stuck", file, {"groups": len(first), "parts": "; ".join(parts[:8])},
        ["Calls of {groups} process groups wait at once ({parts}). Each group counts for itself, "
         "so these numbers say nothing of who is behind.",
         "Either one is stuck and the others wait behind it, or ranks use their groups in "
         "different orders, such as from two threads or streams: then each waits for the other."],
        "Make all ranks call their groups in one order, from one thread; where that cannot be, let "
        "the calls of one group end before those of the other begin. Dumps of all ranks "
        "(TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1) given here show the circle.",
        cited(file, *[t.line for t in first.values()][:4]), fault=True, confidence=0.75,
        area="hang",
    )  # fmt: skip


def _ratio(low: int, high: int) -> str:
    """A ratio of small numbers that is near, such as 2:3."""
    for b in range(2, 9):
        a = round(b * low / high)
        if 0 < a < b and gcd(a, b) == 1 and abs(low / high - a / b) < 0.002:
            return f"{a}:{b}"
    return ""


def _late(said: Watched, figures: Figures) -> list[str]:
    worst = max(said.timeouts, key=lambda t: (t.ran_ms or 0) / max(t.timeout_ms, 1), default=None)
    if worst is None or not worst.ran_ms or worst.ran_ms < LATE * worst.timeout_ms:
        return []
    figures |= {"ran_ms": worst.ran_ms, "limit_ms": worst.timeout_ms}
    return ["The watchdog spoke after {ran_ms} ms, though the limit is {limit_ms} ms: the time "
            "counts from when the call was queued, or the watchdog was held up."]  # fmt: skip


def stuck_together(file: str, said: Watched) -> Finding | None:
    """All ranks that report are in the same call."""
    timeouts = said.timeouts
    if not timeouts or len({(t.sequence, t.operation, t.elements) for t in timeouts}) > 1:
        return None
    if len({said.group_of(t) for t in timeouts} - {""}) > 1:
        return None
    if behind(file, said) is not None:
        return None
    one = timeouts[0]
    ranks = {t.rank for t in timeouts} | {p.rank for p in said.progress if p.at == one.sequence}
    if said.cut and said.cut[1] == one.sequence:
        ranks.add(said.cut[0])
    seen = sorted(rank for rank in ranks if rank is not None)
    if not one.sequence:
        return _unnumbered(file, said, seen)
    figures: Figures = {
        "sequence": one.sequence, "operation": one.operation,
        "ranks": numbers(seen),
        "elements": one.elements if one.elements is not None else "?",
        "silent": numbers([r for r in range(max(seen, default=0)) if r not in seen]) or "-",
        "limit_ms": one.timeout_ms,
    }  # fmt: skip
    reason = ["All that report (rank {ranks}) wait in the same call: sequence {sequence}, "
              "{operation} of {elements:element|elements}. Among them is no mismatch."]  # fmt: skip
    if len(seen) == 1:
        figures["silent"] = "-"
        reason = ["Only rank {ranks} reports: it waits in sequence {sequence}, {operation} of "
                  "{elements:element|elements}."]  # fmt: skip
    if figures["silent"] != "-":
        reason.append("Of lower rank numbers, {silent} do not report.")
    enqueued = max((p.enqueued for p in said.progress), default=0)
    if enqueued > one.sequence:
        figures |= {"queued": enqueued, "completed": _completed(said)}
        reason.append("Behind it calls up to {queued} are queued."
                      if figures["completed"] == "?" else
                      "Behind it calls up to {queued} are queued; the last that ended is "
                      "{completed}.")  # fmt: skip
    first = one.sequence == 1 and len(seen) > 1 and figures["silent"] == "-"
    if first:
        reason.append("It is the first call of the group: none has ended yet. If these are all its "
                      "ranks, they do not get through to one another: within a machine look at the "
                      "way between cards (P2P over PCIe, which IOMMU or ACS can block), between "
                      "machines at the network.")  # fmt: skip
    reason.append("Else look for a rank that does not report." if first else
                  "So look for a rank that does not report (it never came, or has died), then for "
                  "a fault of network or card.")  # fmt: skip
    if figures["silent"] == "0":
        reason.append("Where rank 0 alone does something long (evaluation, saving, preparing "
                      "data), the others wait for it beyond the limit: do it on all ranks, or "
                      "raise the limit (timeout= of init_process_group).")  # fmt: skip
    if seen == [0]:
        reason.append("Where rank 0 alone makes this call (saving, state_dict(), evaluation or "
                      "logging under a condition on the rank), it waits for ever.")  # fmt: skip
        if said.saving is not None:
            figures["saving"] = said.saving.number
            reason.append("Line {saving} is of saving or of a state dict, whose calls all ranks "
                          "must make: see that they do.")  # fmt: skip
    reason += _late(said, figures)
    if first:
        return tell(
            "stuck_together", file, figures, reason,
            "Run once with NCCL_P2P_DISABLE=1: if it gets through, turn off IOMMU or ACS "
            "(iommu=pt) or keep to it; with NCCL_DEBUG=INFO see which way and network card NCCL "
            "takes (NCCL_SOCKET_IFNAME, NCCL_IB_HCA).",
            cited(file, *[t.line for t in timeouts[:4]]), fault=True, confidence=0.75, area="hang",
        )  # fmt: skip
    return tell(
        "stuck_together", file, figures, reason,
        "Find the ranks that say nothing, and read the end of their logs; have every rank write a "
        "flight recorder dump (TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1).",
        cited(file, *[t.line for t in timeouts[:4]]), fault=True, confidence=0.85, area="hang",
    )  # fmt: skip


def _completed(said: Watched) -> int | str:
    last = max(p.completed for p in said.progress)
    return "?" if last < 0 else last


def _unnumbered(file: str, said: Watched, ranks: Sequence[int]) -> Finding:
    """All are in the same call, whose number old versions do not say."""
    one = said.timeouts[0]
    figures: Figures = {
        "ranks": numbers(ranks) or "?", "operation": one.operation,
        "elements": one.elements if one.elements is not None else "?", "limit_ms": one.timeout_ms,
    }  # fmt: skip
    return tell(
        "stuck_together", file, figures,
        ["Rank {ranks} waits in {operation} of {elements:element|elements}, for longer than "
         "{limit_ms} ms. Which call of the run it is, this version of PyTorch does not say.",
         "So look for a rank that does not report (it never came, or has died), then for a fault "
         "of network or card."],
        "Find the ranks that say nothing, and read the end of their logs; TORCH_DISTRIBUTED_DEBUG="
        "DETAIL and NCCL_DESYNC_DEBUG=1 make torch name who differs and who is behind.",
        cited(file, *[t.line for t in said.timeouts[:4]]), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def different_calls(file: str, said: Watched) -> Finding | None:
    """Ranks wait under the same number in different calls, or in sizes that differ."""
    if len({said.group_of(t) for t in said.timeouts} - {""}) > 1:
        return None
    first: dict[int | None, Timeout] = {}
    for timeout in said.timeouts:
        first.setdefault(timeout.rank, timeout)
    first.pop(None, None)
    by: dict[tuple[str, int | None], list[Timeout]] = {}
    for timeout in first.values():
        by.setdefault((timeout.operation, timeout.elements), []).append(timeout)
    operations = {operation for operation, _ in by}
    if len({t.sequence for t in first.values()}) > 1 or len(by) < 2 or operations & UNEQUAL:
        return None
    parts = [f"rank {names([str(t.rank) for t in told], 8)}: {operation}, "
             f"{counted('?' if size is None else size, 'element', 'elements')}"
             for (operation, size), told in by.items()]  # fmt: skip
    at = next(iter(first.values())).sequence
    figures: Figures = {"parts": "; ".join(parts[:8]), "sequence": at or "?"}
    reason = ["Under the same number (sequence {sequence}) ranks wait in calls that do not fit "
              "together: {parts}. Where these are of one group, none of them can end."
              if at else
              "Ranks wait in calls that do not fit together: {parts}. Where these are of one "
              "group, none of them can end."]  # fmt: skip
    return tell(
        "calls_differ" if len(operations) > 1 else "sizes_differ", file, figures, reason,
        "Look for a branch that the ranks take differently, or for data of different lengths; "
        "TORCH_DISTRIBUTED_DEBUG=DETAIL names the first call that differs.",
        cited(file, *[told[0].line for told in by.values()][:4]), fault=True, confidence=0.8,
        area="hang",
    )  # fmt: skip


def stuck_at(file: str, said: Watched) -> Finding | None:
    """How far ranks have got, where no line names their calls."""
    if said.timeouts or not said.progress or len({p.group for p in said.progress}) > 1:
        return None
    low, high = min(said.progress, key=_at), max(said.progress, key=_at)
    ranks = sorted({p.rank for p in said.progress if p.rank is not None})
    figures: Figures = {
        "low": low.at, "high": high.at, "ranks": numbers(ranks) or "?",
        "behind": "?" if low.rank is None else low.rank,
        "ahead": "?" if high.rank is None else high.rank, "sequence": low.at,
        "queued": max(p.enqueued for p in said.progress),
        "completed": _completed(said), "apart": high.at - low.at,
    }  # fmt: skip
    evidence = cited(file, *[p.line for p in said.progress][:4])
    if low.at != high.at and low.enqueued >= high.at:
        figures["queued"] = low.enqueued
        return tell(
            "out_of_step", file, figures,
            ["Rank {behind} waits in sequence {low} and has queued up to {queued}; rank {ahead} "
             "has ended that number and waits in {high}.", SAME_NUMBERS],
            COMPARE, evidence, fault=True, confidence=0.75, area="hang",
        )  # fmt: skip
    if low.at != high.at:
        return tell(
            "counts_differ", file, figures,
            ["Rank {behind} waits in sequence {low}, rank {ahead} in {high}: they have made "
             "different numbers of calls, {apart} apart."],
            "Look for uneven numbers of batches (drop_last, join()), a loop whose length depends "
            "on data, or a call under a condition on the rank.",
            evidence, fault=True, confidence=0.85, area="hang",
        )  # fmt: skip
    reached = ("Rank {ranks} waited in vain in sequence {sequence}; up to {completed} all calls "
               "have ended, and up to {queued} they are queued. Which call it is, no line here "
               "says.")  # fmt: skip
    if low.at == 1:
        reached = ("Rank {ranks} waited in vain in the first call of its group ({queued} queued): "
                   "not all ranks have come to it, or they do not reach one another. Which call it "
                   "is, no line here says.")  # fmt: skip
    return tell(
        "stuck_together", file, figures,
        [reached,
         "So look for a rank that does not report (it never came, or has died), then for "
         "a fault of network or card."],
        "Look above in the log for WorkNCCL(SeqNum=...), which names the call and its size; have "
        "every rank write a flight recorder dump (TORCH_FR_BUFFER_SIZE=2000, "
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1).",
        evidence, fault=True, confidence=0.75, area="hang",
    )  # fmt: skip


def _at(progress: Progress) -> int:
    return progress.at


def watchdog_stuck(file: str, said: Watched) -> Finding | None:
    """Watchdogs that have not moved themselves."""
    if not said.stuck or said.timeouts:
        return None
    ranks = sorted({s.rank for s in said.stuck if s.rank is not None})
    figures: Figures = {"ranks": numbers(ranks) or "?",
                        "seconds": max(s.seconds for s in said.stuck)}  # fmt: skip
    return tell(
        "watchdog_stuck", file, figures,
        ["The watchdog of rank {ranks} has itself not moved for {seconds} s: a call of CUDA or "
         "NCCL in that process does not come back, or another thread holds Python's lock (GIL) in "
         "one. It does not tell which collective waits, nor that one does."],
        "See what the process does: py-spy dump --native. Where a step may take that long "
        "(loading, compiling, a checkpoint), raise TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC; look for Xid "
        "errors in dmesg.",
        cited(file, *[s.line for s in said.stuck][:4]), fault=True, confidence=0.85, area="hang",
    )  # fmt: skip


def never_joined(file: str, said: Watched) -> Finding | None:
    """What torch's analyser of dumps has printed."""
    first = next((a for a in said.absent if a.ranks), None)
    if first is None:
        return None
    figures: Figures = {"late": numbers(first.ranks), "sequence": first.sequence,
                        "operation": first.operation}  # fmt: skip
    return tell(
        "never_called", file, figures,
        ["Rank {late} never joined {operation}, sequence {sequence}, by what torch's analyser of "
         "dumps says: the others wait there."],
        "See what rank {late} does in its place (py-spy dump): data loading, a checkpoint, "
        "an exception, a branch of its own.",
        cited(file, first.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def ras(file: str, said: Watched) -> Finding | None:
    """NCCL's RAS says who is behind."""
    if not said.ras:
        return None
    ahead = max(said.ras, key=lambda r: r.sequence)
    behind = min(said.ras, key=lambda r: r.sequence)
    late = numbers(said.missing) or str(behind.rank)
    figures: Figures = {
        "late": late, "sequence": ahead.sequence, "completed": behind.sequence,
        "operation": said.next_operation or "?", "ahead": ahead.rank,
    }  # fmt: skip
    return tell(
        "never_called", file, figures,
        ["Rank {late} never enqueued call {sequence} ({operation}), in which rank {ahead} waits: "
         "its last one that ended is {completed}.", "So rank {late} is late or stalled before it."],
        "See what rank {late} does (py-spy dump, its log); the others are not at fault.",
        cited(file, ahead.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def gloo(file: str, said: Watched) -> Finding | None:
    """What Gloo's connections say."""
    return gloo_finding(file, said.gloo)


Rule = Callable[[str, Watched], Finding | None]
RULES: Final[tuple[Rule, ...]] = (
    prints_differ, desync, groups_stuck, counts_differ, different_calls, behind, stuck_together,
    stuck_at, never_joined, ras, watchdog_stuck, gloo,
)  # fmt: skip


def watched_findings(file: str, said: Watched) -> list[Finding]:
    """All that the rules find in messages."""
    return [finding for rule in RULES if (finding := rule(file, said)) is not None]
