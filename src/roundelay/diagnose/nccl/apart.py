"""What the logs of one job's ranks show beside one another: who is missing, and who differs."""

from __future__ import annotations

from typing import Final

from ...formats.nccl_log import Last, Line, NcclLog, last_of
from ..finding import Figures, Finding, cited, names, numbers, tell
from ..jobs import Job

OWN: Final = ("NCCL_HOSTID", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE")
"""Variables that a rank has for itself."""
LISTED: Final = 8
VALUES: Final = 4
"""Of a variable that are told."""


def apart_findings(job: Job, whole: NcclLog) -> list[Finding]:
    """Of the logs of a job, and of all of them as one."""
    found = [_behind(job, whole)]
    if len(job.files) > 1:
        found += [_missing(job), _differ(job)]
    return [finding for finding in found if finding is not None]


def _missing(job: Job) -> Finding | None:
    """Ranks without a log."""
    size, seen = job.size, job.ranks()
    missing = [str(rank) for rank in range(min(size or 0, 10**5)) if rank not in seen]
    if not seen or not missing:
        return None
    first = [line for log in job.logs for t in log.ranks()
             if (line := t.complete or t.started or t.first_tree)][:2]  # fmt: skip
    waiting = [str(t.rank) for log in job.logs for t in log.ranks() if t.started and not t.complete]
    figures: Figures = {"missing": names(missing), "seen": len(seen), "ranks": size or 0,
                        "files": len(job.files), "waiting": names(waiting) or "-"}  # fmt: skip
    reason = ["Of rank {missing} nothing is in these {files:file|files} ({seen} of "
              "{ranks:rank|ranks} are)."]  # fmt: skip
    if waiting:
        reason.append("Start-up is not through on rank {waiting}, which may wait for them.")
    return tell(
        "missing_log", job.name, figures, reason,
        "Where the job hangs, read the logs of these ranks first; a rank that has none has died "
        "before its first call, or writes elsewhere (NCCL_DEBUG_FILE).",
        cited(job.name, *first), fault=bool(waiting), confidence=0.9, area="hang",
    )  # fmt: skip


def _differ(job: Job) -> Finding | None:
    """Versions, variables and networks that are not the same in all files."""
    parts, lines = [], list[Line]()
    for what, by in _compared(job).items():
        values = [f"{value[:80] or '-'} ({names(files, 2)})" for value, (files, _) in by.items()]
        more = ["..."] if len(values) > VALUES else []
        parts.append(f"{what}: " + "; ".join([*values[:VALUES], *more]))
        lines += [line for _, line in by.values() if line is not None]
    if not parts:
        return None
    return tell(
        "logs_differ", job.name, {"parts": names(parts, LISTED)},
        ["Ranks of one job do not have the same: {parts} (-: not there)."],
        "Give all ranks the same library and the same variables (mpirun -x, srun --export, the "
        "image); ranks that choose differently wait for one another for ever.",
        cited(job.name, *lines[:LISTED]), fault=True, confidence=0.8, area="machine",
    )  # fmt: skip


_By = dict[str, tuple[list[str], Line | None]]


def _compared(job: Job) -> dict[str, _By]:
    """What differs, by its name: each value with its files and a line."""
    found: dict[str, _By] = {}
    pairs = list(zip(job.files, job.logs, strict=True))
    for file, log in pairs:
        for version, first in log.versions.items():
            library, _, number = version.partition(" ")
            _note(found, library, number, file, first)
        kinds = sorted({way.name.partition("/")[0] for way in log.networks.values()})
        if kinds:
            ways = log.networks.values()
            line = next((x for w in ways if (x := w.first_direct or w.first_staged)), None)
            _note(found, "NET", " / ".join(kinds), file, line)
    telling = [(file, log) for file, log in pairs if log.environment]
    variables = sorted({name for _, log in telling for name in log.environment} - {*OWN})
    for name in variables:
        for file, log in telling:
            value, line = log.environment.get(name, ("", None))
            _note(found, name, value, file, line)
    return {what: by for what, by in found.items() if len(by) > 1}


def _note(found: dict[str, _By], what: str, value: str, file: str, line: Line | None) -> None:
    found.setdefault(what, {}).setdefault(value, ([], line))[0].append(file)


def _behind(job: Job, whole: NcclLog) -> Finding | None:
    """Ranks whose last call is an earlier one than others'."""
    last = _last(whole, job.size)
    counts = {call.count for call in last.values()}
    if len(last) < 2 or len(counts) < 2:
        return None
    low, high = min(counts), max(counts)
    late = sorted(rank for rank, call in last.items() if call.count == low)
    ahead = sorted(rank for rank, call in last.items() if call.count == high)
    a, b = last[late[0]], last[ahead[0]]
    figures: Figures = {
        "late": numbers(late), "ahead": numbers(ahead),
        "low": low, "high": high, "function": a.function, "elements": a.elements,
        "other": b.function, "others": b.elements,
    }  # fmt: skip
    return tell(
        "counts_differ", job.name, figures,
        ["The last call of rank {late} is number {low}, {function} of {elements:element|elements}; "
         "rank "
         "{ahead} has come to {high}, {other} of {others}.",
         "In a job that hangs the others wait for rank {late}; in one that runs, or a log that "
         "is cut off, it is only a moment's difference."],
        "See what rank {late} does after that call (py-spy dump, the end of its log).",
        cited(job.name, a.line, b.line),
        fault=high - low > 1, confidence=0.6, area="hang",
    )  # fmt: skip


def _last(log: NcclLog, size: int | None) -> dict[int, Last]:
    """The last call of each rank that has one communicator only, that of all ranks."""
    found: dict[int, Last] = {}
    for thread in log.threads.values():
        calls = last_of(thread) if thread.rank is not None and thread.ranks == size else []
        if len(calls) == 1 and thread.rank is not None:
            found[thread.rank] = calls[0]
    return found
