"""Rules about ranks that wait, by their watchdogs: in one call together, or each in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...formats.watchdog import Progress, Timeout, Watched
from ...i18n import counted
from ..finding import Figures, Finding, cited, names, numbers, tell
from .behind import behind

LATE: Final = 1.5
"""Times the limit, from which a watchdog spoke much too late."""
UNEQUAL: Final = frozenset({"SEND", "RECV", "COALESCED", "ALLTOALL", "ALLTOALL_BASE", "UNKNOWN",
                            "RECVANYSOURCE", "GATHER", "SCATTER"})  # fmt: skip
"""Calls in which ranks may do different things under one number."""
SAME_NUMBERS: Final = (
    "So it is not that one of them lacks calls: under the same numbers they do not make the same "
    "calls (another order, another size, or another group), or a call has ended on one side only."
)
COMPARE: Final = (
    "Compare what both ranks call from {low} on: dumps of all ranks (TORCH_FR_BUFFER_SIZE=2000, "
    "TORCH_NCCL_DUMP_ON_TIMEOUT=1) given here, or TORCH_DISTRIBUTED_DEBUG=DETAIL; look for a "
    "branch that depends on the rank or its data."
)


def over_limit(said: Watched, figures: Figures) -> list[str]:
    """A sentence where a watchdog spoke long after its limit; it adds its figures."""
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
    reason += over_limit(said, figures)
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
