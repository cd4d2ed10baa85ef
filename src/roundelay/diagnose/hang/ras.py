"""Rules about what NCCL's RAS and its Inspector say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ...formats.ras import Comm, Member, Ras, Spread
from ...i18n import counted
from ..finding import Evidence, Figures, Finding, names, tell

LISTED: Final = 8


def ras_findings(reports: Sequence[tuple[str, Ras]]) -> list[Finding]:
    """Of reports of one job, each with its file, in the order of time."""
    if not reports:
        return []
    # What has the same time is the same report, given twice.
    reports = list({r.time or str(i): (file, r) for i, (file, r) in enumerate(reports)}.values())
    file, last = reports[-1]
    found = [f for f in (_lost(file, last), _missing(file, last)) if f is not None]
    for comm in last.comms.values():
        for spread in comm.spreads[:LISTED]:
            found.append(_spread(file, last, comm, spread, reports))
    return found[: 4 * LISTED] or [_fine(file, last, len(reports))]


def _told(members: Iterable[Member]) -> str:
    shown = []
    for m in members:
        rank = "" if m.rank is None else f"rank {m.rank}"
        where = f"process {m.pid} on {m.host}, GPU {m.device}" if m.host else ""
        shown.append(f"{rank} ({where})" if rank and where else rank or where)
    return names(shown, LISTED)


def _cited(file: str, report: Ras, first: int, count: int = LISTED) -> tuple[Evidence, ...]:
    """Lines of text from one on; of JSON, where the report begins."""
    lines = [n for n in sorted(report.texts) if n >= first][:count]
    if not lines:
        return (Evidence(file, first, f"report of {report.time or 'RAS'}"),)
    return tuple(Evidence(file, n, report.texts[n]) for n in lines)


def _lost(file: str, report: Ras) -> Finding | None:
    """Processes that do not answer."""
    dead = [m for m in report.lost if m.dead]
    lost = dead or report.lost
    if not lost:
        return None
    first = next((n for n, text in sorted(report.texts.items()) if "Process" in text), report.line)
    return tell(
        "process_lost", file, {"lost": _told(lost), "count": len(lost)},
        ["RAS takes {lost} for dead: no answer within 60 s." if dead else
         "{lost} does not answer RAS: it was stopped, hangs in the kernel, or has just died."],
        "Go to that host: the end of the process's log, dmesg (out of memory, Xid), whether it "
        "still runs. The other ranks only wait for it.",
        _cited(file, report, first, 3), fault=True, confidence=0.95 if dead else 0.85, area="hang",
    )  # fmt: skip


def _missing(file: str, report: Ras) -> Finding | None:
    """Ranks of communicators of which nothing is heard."""
    comms = [comm for comm in report.comms.values() if comm.missing]
    if not comms:
        return None
    members = list(dict.fromkeys(m for comm in comms for m in comm.missing))
    figures: Figures = {"missing": _told(members), "count": len(members), "comms": len(comms),
                        "hash": names([comm.hash for comm in comms], 4)}  # fmt: skip
    return tell(
        "ranks_missing", file, figures,
        ["Nothing is heard from {missing}, in {comms:communicator|communicators} ({hash}): its "
         "process does "
         "not answer, or has left the communicator."],
        "See what these ranks do first (py-spy dump, their logs); ask RAS again to see whether "
        "they come back.",
        _cited(file, report, comms[0].line, 3), fault=True, confidence=0.85, area="hang",
    )  # fmt: skip


def _spread(
    file: str, report: Ras, comm: Comm, spread: Spread, reports: Sequence[tuple[str, Ras]]
) -> Finding:
    numbers = all(part.value.isdigit() for part in spread.parts)
    parts = sorted(spread.parts, key=lambda p: (int(p.value) if numbers else 0, p.ranks))
    low, high = parts[0], parts[-1]
    who = _told(low.members) or counted(low.ranks, "rank", "ranks")
    figures: Figures = {
        "what": spread.what, "hash": comm.hash, "who": who, "low": low.value, "high": high.value,
        "ranks": high.ranks, "reports": len(reports),
        "parts": "; ".join(f"{part.value}: {part.ranks}" for part in parts[:LISTED]),
    }  # fmt: skip
    reason = ["Ranks of communicator {hash} differ in {what} (value: ranks): {parts}."]
    if numbers:
        reason.append("Behind is {who}, at {low}, while {ranks:other is|others are} at {high}.")
        if high.members:
            figures["ahead"] = _told(high.members)
            reason.append("Ahead is {ahead}.")
    before = _before(comm, spread, reports[:-1]) if numbers else None
    if before is None:
        sure = 0.5
        reason.append("One report does not tell whether that lasts: counts are taken while ranks "
                      "run, and a start or an end looks the same for a moment.")  # fmt: skip
    elif before == spread.parts:
        sure = 0.9
        reason.append("{reports:report|reports} in a row say the same, so it hangs: the ranks "
                      "ahead wait "
                      "for this one.")  # fmt: skip
    else:
        sure = 0.7
        reason.append("Counts go on from report to report, so it does not hang: that rank is late "
                      "again and again.")  # fmt: skip
    return tell(
        "counts_differ", f"communicator {comm.hash}", figures, reason,
        "Ask RAS again after 10 s (ncclras -v) and give all its answers here; then see what the "
        "rank behind does (py-spy dump): loading of data, a branch of its own, a slower card.",
        _cited(file, report, spread.line), fault=True, confidence=sure, area="hang",
    )  # fmt: skip


def _before(
    comm: Comm, spread: Spread, reports: Sequence[tuple[str, Ras]]
) -> tuple[object, ...] | None:
    """What an earlier report says of the same, if there is one."""
    for _, report in reversed(reports):
        known = report.comms.get(comm.hash)
        same = [s for s in known.spreads if s.what == spread.what] if known else []
        if same:
            return same[0].parts
    return None


def _fine(file: str, report: Ras, count: int) -> Finding:
    figures: Figures = {"communicators": report.communicators, "ranks": report.ranks,
                        "timeouts": report.timeouts, "reports": count}  # fmt: skip
    reason = ["RAS finds nothing wrong in {communicators:communicator|communicators} "
              "({ranks:rank|ranks} in all): "
              "all answer, and none is behind."]  # fmt: skip
    if report.timeouts:
        reason.append("While it asked, {timeouts:process was|processes were} slow to answer.")
    return tell(
        "ras_fine", file, figures, reason,
        "Where the job hangs all the same, look at each rank's stack (py-spy dump): all may wait "
        "in the same call for the network.",
        _cited(file, report, report.line, 2), confidence=0.8, area="hang",
    )  # fmt: skip
