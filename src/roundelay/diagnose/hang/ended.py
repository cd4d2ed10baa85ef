"""What is said of processes that have ended: the ranks that others then wait for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ...formats.ended import Cause, End
from ..finding import Figures, Finding, cited, names, numbers, tell
from ..machine.xids import FOLLOWS, XIDS

LISTED: Final = 4
ABORT: Final = 6
"""The signal by which a process ends itself."""
Told = Mapping[str, Collection[int]]
"""Numbers of lines by file."""


class _Told(NamedTuple):
    kind: str
    reason: str
    advice: str
    confidence: float


_SAID: Final[MappingProxyType[Cause, _Told]] = MappingProxyType({
    "xid": _Told(
        "card_failed", "The driver reports an error of a card: {said}.",
        "Look the number up in NVIDIA's table of Xid errors. 79 (fallen off the bus), 48, 63, 64, "
        "94, 95 (memory) and 74 (NVLink) are the card's: reset or replace it; 13 and 31 are as a "
        "rule the program's.", 0.9),
    "sxid": _Told(
        "switch_failed", "The driver reports an error of an NVSwitch: {said}.",
        "Where it says Fatal, the cards on that switch are lost to the job: end it, look at "
        "nvidia-fabricmanager's log, reset all cards and the switch (nvidia-smi -r) or restart the "
        "host; if a link comes again and again, have the board or cable changed. Non-fatal ones "
        "mostly tell of links going down as cards are reset.", 0.9),
    "memory": _Told(
        "out_of_memory", "Rank {ranks} ran out of the card's memory: {said}.",
        "Give that rank less: a smaller batch or shorter sequences, activation checkpointing, "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; see whether ranks get unequal shares, "
        "and what else uses the card (nvidia-smi).", 0.95),
    "killed": _Told(
        "killed", "Rank {ranks} was killed from outside (signal 9): {said}.",
        "As a rule the host, the container or the job had no memory left: see dmesg and the limits "
        "of cgroup and scheduler, start fewer data workers, hold fewer copies of the data.", 0.85),
    "crashed": _Told(
        "crashed", "Rank {ranks} crashed: {said}.",
        "Read what stands before it; run that rank with PYTHONFAULTHANDLER=1 and keep the core. "
        "Signal 7 is often a full /dev/shm, 11 a fault in a library.", 0.85),
    "raised": _Told(
        "raised", "Rank {ranks} ended with an error of its own: {said}.",
        "Mend that first; read the lines above it.", 0.75),
    "left": _Told(
        "ended_first", "Rank {ranks} ended with {said}, the first of those that the launcher "
        "names; why, only its own error tells, which is not in this text.",
        "Read what that process wrote before it: its traceback stands further up, or in a file of "
        "its own (torchrun --log-dir DIR --redirects 3). Where error_file is <N/A>, put @record "
        "(torch.distributed.elastic.multiprocessing.errors) on main.", 0.8),
})  # fmt: skip


def ended_findings(ends: Sequence[End], told: Told = MappingProxyType({})) -> list[Finding]:
    """A finding for each cause, with its ranks; each rank of a file by what it met first.

    Args:
        ends: of all files.
        told: by file, the lines of which something more exact is said already.
    """
    first: dict[object, End] = {}
    ends = [end for end in ends if not _follows(end, ends, told)]
    telling = {end.line.file for end in ends if end.cause != "left" and not end.went_on}
    telling |= {file for file, lines in told.items() if lines}
    for end in sorted(ends, key=lambda end: end.cause == "left" and not end.first):
        if end.cause == "left" and end.line.file in telling:
            continue
        who = (end.cause, end.said, end.local) if end.rank is None else end.rank
        at = (end.line.file, who)
        first.setdefault(at, end)
    by: dict[Cause, list[End]] = {}
    known = [end for end in first.values() if end.line.number not in told.get(end.line.file, ())]
    for end in known:
        if not end.went_on:
            by.setdefault(end.cause, []).append(end)
    handled = [end for end in known if end.went_on]
    return [*(_told(cause, by[cause]) for cause in _SAID if cause in by),
            *([_handled(handled)] if handled else [])]  # fmt: skip


def _follows(end: End, ends: Sequence[End], told: Told) -> bool:
    """Whether it was killed when something else had ended before: launchers end what is left."""
    if end.cause != "killed" or end.first or end.said != "signal 9":
        return False
    lines = [other.line.number for other in ends if other.line.file == end.line.file
             and other.cause != "xid" and not other.went_on
             and (other.rank is None or other.rank != end.rank)
             and (other.cause != "killed" or other.said != end.said)]  # fmt: skip
    return min((*lines, *told.get(end.line.file, ())), default=end.line.number) < end.line.number


def _handled(ends: Sequence[End]) -> Finding:
    """Exceptions behind which the text goes on."""
    lines = [end.line for end in ends][:LISTED]
    subject = names(list(dict.fromkeys(line.file for line in lines)), 3)
    return tell(
        "handled", subject, {"said": ends[0].said.rstrip("."), "count": len(ends)},
        ["An exception stands in the text ({said}), and the text goes on behind it as before: the "
         "program seems to have caught it."],
        "If that process did end, give its own log.", cited(subject, *lines), confidence=0.7,
        area="hang",
    )  # fmt: skip


def _told(cause: Cause, ends: Sequence[End]) -> Finding:
    if cause == "left":
        ends = ends[:1]
    elif cause == "xid":
        ends = sorted(ends, key=lambda end: end.code == FOLLOWS)
    said, ranks = _SAID[cause], sorted({end.rank for end in ends if end.rank is not None})
    local = sorted({end.local for end in ends if end.local is not None and end.rank is None})
    figures: Figures = {"ranks": numbers(ranks, 8) or "?",
                        "said": ends[0].said.rstrip("."), "count": len(ends)}  # fmt: skip
    if local and not ranks:
        figures["ranks"] = f"? (local rank {numbers(local, 8)})"
    reason = [said.reason]
    if cause == "xid" and (known := XIDS.get(ends[0].code)):
        reason.append(known)
    elif cause not in ("xid", "sxid"):
        reason.append("The others wait for it, or lose their connections to it, and say so later.")
    lines = list(dict.fromkeys(end.line for end in ends))[:LISTED]
    subject = names(list(dict.fromkeys(line.file for line in lines)), 3)
    if cause == "left" and ends[0].code == ABORT:
        reason.insert(1, "So a process ends itself: torch's watchdog after a timeout, a failed "
                         "assertion, an error in C++.")  # fmt: skip
    return tell(said.kind, f"rank {figures['ranks']}, {subject}", figures, reason,
                said.advice, cited(subject, *lines), fault=True, confidence=said.confidence,
                area="hang")  # fmt: skip
