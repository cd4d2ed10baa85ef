"""Findings about time, from the traces of some or all ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from ...formats.kineto import Trace
from ..finding import Evidence, Figures, Finding, names, numbers, tell
from .breakdown import Breakdown, breakdown, calls_ran
from .late import late_findings

MS: Final = 1e6
"""ns."""
EXPOSED: Final = 0.1
IDLE: Final = 0.25
"""Shares of the time from which they are worth a word."""
FEWEST: Final = 100
"""Kernels, or operators of the host, below which a file is an excerpt whose shares say little."""
LISTED, WORST = 16, 4


def time_findings(traces: Sequence[Trace]) -> list[Finding]:
    """What the traces show, the gravest first."""
    if not traces:
        return []
    parts = [breakdown(trace) for trace in traces]
    worked = [part for part in parts if part.span]
    by_rank: dict[int, Breakdown] = {}
    for part in parts:
        if part.trace.rank is not None:
            by_rank.setdefault(part.trace.rank, part)
    found = [*late_findings(by_rank)] if len(by_rank) > 1 else []
    if worked:
        full = [part for part in worked if _events(part.trace) >= FEWEST]
        found += [f for f in (_exposed(full), _idle(full)) if f is not None] if full else []
        found.append(_where(worked))
    return [*found, _what(traces)]


def _events(trace: Trace) -> int:
    return len(trace.begin) if trace.on_device else len(trace.host_begin)


def _subject(traces: Iterable[Trace]) -> str:
    ranks = [f"{t.rank}" if t.rank is not None else "?" for t in traces]
    return f"rank {names(ranks, 8)}"


def _line(part: Breakdown) -> Evidence:
    span = max(part.span, 1)
    who = "?" if part.trace.rank is None else part.trace.rank
    return Evidence(part.trace.file, 0, (
        f"rank {who}: {part.span / MS:.4g} ms: computation "
        f"{100 * part.computation.length / span:.1f} %, "
        f"non-compute {100 * part.non_compute / span:.1f} %, idle {100 * part.idle / span:.1f} %; "
        f"communication {part.communication.length / MS:.4g} ms, exposed "
        f"{part.exposed.length / MS:.4g} ms"
    ))  # fmt: skip


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _where(parts: Sequence[Breakdown]) -> Finding:
    """The temporal breakdown, as a mean over ranks."""
    span = _mean(p.span for p in parts)
    communication = _mean(p.communication.length for p in parts)
    hidden = _mean(p.overlap for p in parts)
    figures: Figures = {
        "ranks": len(parts), "span_ms": span / MS,
        "compute_share": _mean(p.computation.length for p in parts) / span,
        "non_compute_share": _mean(p.non_compute for p in parts) / span,
        "idle_share": _mean(p.idle for p in parts) / span, "communication_ms": communication / MS,
        "overlap_ms": hidden / MS, "exposed_ms": (communication - hidden) / MS,
        "overlap_share": hidden / communication if communication else 0.0,
    }  # fmt: skip
    reason = ["Of {span_ms} ms (ranks: {ranks}, mean) {compute_share} are computation, "
              "{non_compute_share} communication and copies alone, {idle_share} idle."]  # fmt: skip
    if communication:
        reason.append("Communication takes {communication_ms} ms: {overlap_share} of it is hidden "
                      "behind computation, {exposed_ms} ms are exposed.")  # fmt: skip
    worst = sorted(parts, key=lambda p: -p.exposed.length)[:LISTED]
    advice = (
        "Of what is exposed or idle as much can be won at most; begin with the larger of the two."
    )
    if communication <= hidden and not any(p.idle for p in parts):
        advice = "Nothing is exposed or idle: only computation that is faster would win time."
    return tell(
        "time_breakdown", _subject(p.trace for p in parts), figures, reason, advice,
        tuple(map(_line, worst)), confidence=0.95, area="time",
    )  # fmt: skip


def _exposed(parts: Sequence[Breakdown]) -> Finding | None:
    """Communication for which ranks wait."""
    span, exposed = (sum(x) for x in zip(*((p.span, p.exposed.length) for p in parts), strict=True))
    if exposed < EXPOSED * span:
        return None
    by_call: Counter[str] = Counter()
    for part in parts:
        by_call.update(part.exposed_by_call())
    calls = names([f"{name} {t / len(parts) / MS:.4g} ms" for name, t in by_call.most_common(4)])
    figures: Figures = {"share": exposed / span, "exposed_ms": exposed / len(parts) / MS,
                        "calls": calls}  # fmt: skip
    worst = sorted(parts, key=lambda p: -p.exposed.length / p.span)[:WORST]
    return tell(
        "exposed_communication", _subject(p.trace for p in parts), figures,
        ["Ranks do nothing but communicate in {share} of the time, {exposed_ms} ms of each: "
         "{calls}.", "A part of it may be waiting for a rank that is late."],
        "Begin such calls earlier, so that computation runs beside them (prefetch, smaller "
        "buckets, a stream of their own); then send less of them.",
        tuple(map(_line, worst)), fault=True, confidence=0.85, area="time",
    )  # fmt: skip


def _idle(parts: Sequence[Breakdown]) -> Finding | None:
    """Devices that have nothing to do."""
    parts = [p for p in parts if p.trace.on_device]
    span, idle = sum(p.span for p in parts), sum(p.idle for p in parts)
    if not span or idle < IDLE * span:
        return None
    waits = sum(p.host_wait for p in parts)
    figures: Figures = {"share": idle / span, "idle_ms": idle / len(parts) / MS,
                        "host_share": waits / idle}  # fmt: skip
    reason = ["Devices are idle in {share} of the time, {idle_ms} ms of each."]
    if waits:
        reason.append("In {host_share} of that the host had not launched the next kernel yet.")
    worst = sorted(parts, key=lambda p: -p.idle / p.span)[:WORST]
    return tell(
        "idle_device", _subject(p.trace for p in parts), figures, reason,
        "Look at what the host does in between: loading of data, synchronisation (.item(), "
        ".cpu()), many small kernels (then CUDA graphs or torch.compile), garbage collection.",
        tuple(map(_line, worst)), fault=True, confidence=0.8, area="time",
    )  # fmt: skip


def _what(traces: Sequence[Trace]) -> Finding:
    """What the files are of."""
    ranks = sorted({t.rank for t in traces if t.rank is not None})
    calls = Counter(call.name for trace in traces for call in trace.calls)
    groups = max((_groups(t) for t in traces), default=0)
    steps = [s.end - s.begin for t in traces for s in t.steps]
    figures: Figures = {
        "files": len(traces), "ranks": numbers(ranks, 8), "groups": groups,
        "backend": names(sorted({t.backend for t in traces} - {""})),
        "kernels": sum(len(t.begin) for t in traces), "steps": len(steps),
        "calls": names([f"{name} {n}" for name, n in calls.most_common(8)]),
    }  # fmt: skip
    reason = [*_who(traces, ranks, figures)]
    if groups:
        of = "It has {groups:process group|process groups}, of {backend}."
        alone = "It has {groups:process group|process groups}."
        reason.append(of if figures["backend"] else alone)
    reason.append("{kernels} kernels and copies ran on devices." if figures["kernels"] else
                  "No kernel ran: these are times of the host.")  # fmt: skip
    if calls:
        reason.append("Calls: {calls}.")
    if waits := sum(t.waits for t in traces if t.unmatched):
        figures |= {"waits": waits, "unmatched": sum(t.unmatched for t in traces)}
        reason.append("{unmatched} of {waits:wait|waits} for CUDA events name no record of the "
                      "event (wait_on_cuda_event_record_corr_id is -1): the profiler has not "
                      "matched them, so what they wait for is not told.")  # fmt: skip
    if not calls and not steps and all(_events(t) < FEWEST for t in traces):
        reason.append("So few events and no collectives: a part or a test, which tells nothing of "
                      "a job's speed.")  # fmt: skip
    if calls and not any(map(calls_ran, traces)):
        reason.append("No kernel communicates, so these calls tell when they were begun, and not "
                      "how long they ran.")  # fmt: skip
    if steps:
        figures["step_ms"] = float(np.median(steps)) / MS
        reason.append("Steps: {steps}, of {step_ms} ms (median).")
    advice = ("Trace all ranks for some of the same steps and give all files at once: then it is "
              "said who is late, and whom that delays.")  # fmt: skip
    if len(ranks) > 1 and len(ranks) == figures.get("world"):
        advice = "All ranks are here. More steps make it surer who is late."
    return tell(
        "traced", _subject(traces), figures, reason, advice,
        tuple(Evidence(t.file, 0, repr(t)) for t in traces[:LISTED]), confidence=0.95, area="time",
    )  # fmt: skip


def _who(traces: Sequence[Trace], ranks: Sequence[int], figures: Figures) -> list[str]:
    """Whose traces there are."""
    worlds = {t.world for t in traces if t.world is not None}
    if not ranks:
        return ["The trace does not say which rank it is of."]
    if not worlds:
        return ["The trace is of rank {ranks}; it does not say how many ranks there are."]
    figures["world"] = max(worlds)
    reason = ["The trace is of rank {ranks} of {world}."]
    silent = [r for r in range(min(max(worlds), 10**5)) if r not in set(ranks)]
    if len(ranks) > 1 and silent:
        figures["silent"] = numbers(silent, 8)
        reason.append("Of rank {silent} there is none.")
    return reason


def _groups(trace: Trace) -> int:
    """Process groups of the job, as torch counts them."""
    count = trace.other["distributedInfo"].get("pg_count")
    return count if isinstance(count, int) and 0 <= count < 10**6 else len(trace.groups)
