"""What summaries of a profile say: collectives, copies and waiting hosts beside one another."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...formats.kineto import words
from ...formats.profile_summary import Row, read_profile_summary
from ...units import format_time
from ..finding import Evidence, Figures, Finding, names, tell

LISTED: Final = 6
_ALL: Final = re.compile(r"^(?:all |total |gpu )?kernels?(?: time| total)?$|^total$", re.I)
_COPIES: Final = re.compile(
    r"^(?:total )?memcp(?:y|ies)\b|^\[?CUDA memcpy|^gpu mem(?:ory)? ?cop", re.I
)
_WAITS: Final = re.compile(r"^(?:cuda|hip|cu)\w{0,20}Synchronize")
_OF_HOST: Final = re.compile(r"^(?:cuda|hip|cu)[A-Z]\w|^(?:runtime|memset|osrt|nvtx)\b", re.I)
_OF_NCCL: Final = re.compile(r"^(?:nccl|rccl)\b(?: kernels?)?$", re.I)


def profile_summary_findings(file: str, data: bytes) -> list[Finding]:
    """What all tables of a text say together.

    Raises:
        RoundelayError: there is none.
    """
    rows = read_profile_summary(data)
    named = [row for row in rows if words.communicates(row.name)]
    sums = [row for row in rows if _OF_NCCL.match(row.name)]
    known = (_ALL, _COPIES, _WAITS, _OF_HOST, _OF_NCCL)
    others = [row for row in rows
              if row not in named and not any(p.match(row.name) for p in known)]  # fmt: skip
    copies = max((r for r in rows if _COPIES.match(r.name)), key=lambda r: r.seconds, default=None)
    waits = [row for row in rows if _WAITS.match(row.name)]
    whole = next((row for row in rows if _ALL.match(row.name)), None)
    if not named and not sums and not copies and not waits:
        return []
    figures: Figures = {}
    reason = [*_collectives(named or sums, others, whole, figures),
              *_of_copies(copies, whole, figures), *_of_waits(waits, figures)]  # fmt: skip
    cited = [*named[:2], *sums[:1], *([copies] if copies else []), *waits[:1]]
    return [tell(
        "profile_summary", file, figures, reason,
        "Give the profile of several ranks itself (torch's trace): then it is said what is exposed "
        "and who is late."
        if not copies or not whole or copies.seconds < whole.seconds else
        "Look first at what is copied, which way (host to card, card to host, within a card) and "
        "why (offloading, .cpu(), .item(), input data); then at the collectives.",
        tuple(Evidence(file, row.line, f"{row.name[:80]} {row.calls} {format_time(row.seconds)}")
              for row in cited[:4]), confidence=0.85, area="time",
    )]  # fmt: skip


def _collectives(
    told: Sequence[Row], others: Sequence[Row], whole: Row | None, figures: Figures
) -> list[str]:
    if not told:
        return ["No kernel of the tables communicates."]
    seconds = sum(row.seconds for row in told)
    each = [f"{row.name.split('(')[0][:60]} {row.calls} x "
            f"{format_time(row.seconds / max(row.calls, 1))}" for row in told]  # fmt: skip
    figures |= {"seconds": seconds, "told": names(each, LISTED)}
    reason = ["Collectives take {seconds} s in all: {told}."]
    if whole and whole.seconds >= seconds > 0:
        figures |= {"share": seconds / whole.seconds, "all_s": whole.seconds}
        reason = ["Collectives take {share} of the kernels' time, {seconds} s of {all_s} s: "
                  "{told}."]  # fmt: skip
    if largest := sorted(others, key=lambda row: -row.seconds)[:3]:
        figures["others"] = names([f"{row.name.split('(')[0][:60]} {format_time(row.seconds)}"
                                   for row in largest])  # fmt: skip
        reason.append("The largest of the other kernels: {others}.")
    reason.append("A collective's time includes waiting for other ranks, and a part of it may be "
                  "hidden behind computation.")  # fmt: skip
    return reason


def _of_copies(copies: Row | None, whole: Row | None, figures: Figures) -> list[str]:
    if copies is None or not copies.seconds:
        return []
    figures |= {"copies": copies.calls, "copy_s": copies.seconds}
    reason = ["{copies:copy takes|copies take} {copy_s} s."]
    if copies.size:
        figures |= {"copied_GB": copies.size / 1e9, "copy_GBps": copies.size / copies.seconds / 1e9}
        reason = ["{copies:copy takes|copies take} {copy_s} s for {copied_GB} GB, {copy_GBps} GB/s "
                  "(all directions together)."]  # fmt: skip
    if whole and copies.seconds > whole.seconds:
        reason.append("That is more than all kernels together ({all_s} s), so copies rather than "
                      "collectives come first here, unless they overlap.")  # fmt: skip
        figures["all_s"] = whole.seconds
    return reason


def _of_waits(waits: Sequence[Row], figures: Figures) -> list[str]:
    if not waits:
        return []
    figures |= {"wait_s": sum(row.seconds for row in waits), "waits": sum(r.calls for r in waits)}
    return ["The host waits {wait_s} s in calls that synchronize ({waits}); what it waits for such "
            "tables do not tell."]  # fmt: skip
