"""What is said of files that make one picture: ranks of a job, each with a log, a dump, a trace."""

from __future__ import annotations

from collections.abc import Sequence

from ..formats.flight import Dump
from ..formats.nccl_log import joined
from ..formats.note import Note
from ..i18n import message
from .diagnosis import BROKEN, Diagnosis
from .finding import Finding
from .hang.calls import call_findings, jobs_of
from .hang.ended import Told, ended_findings
from .hang.orders import dump_findings, trace_findings
from .hang.phrases import LATER
from .hang.ras import ras_findings
from .hang.stacks import stack_findings
from .hang.watched import watched_findings
from .jobs import log_jobs, resting_on, said_jobs
from .nccl.apart import apart_findings
from .nccl.logs import log_findings
from .times import averaged_findings, inspected_findings, time_findings


def joint_findings(found: Diagnosis) -> list[Finding]:
    """What files say together; what only follows from it is taken out of what each says alone."""
    ended = ended_findings([end for end in found.ended if not end.alone], found.told)
    full = any(finding.kind == "out_of_memory" for finding in ended)
    logged = [f for f in _logged(found) if not (full and f.kind == "out_of_memory")]
    logged = [f for f in logged if not _rests_on(f, found.told)]
    dumped = _dumped(found)
    if any(f.kind in ("never_called", "broke_off") for f in found.findings):
        logged = [f for f in logged if f.kind not in ("timed_out", "peer_lost")]
    if any(f.kind == "card_failed" for f in ended):  # an Xid, by which kernels then fail
        logged = [f for f in logged if f.kind != "program_failed"]
    hangs = any(f.area == "hang" and f.fault and f.kind not in LATER
                for f in (*logged, *found.findings))  # fmt: skip
    if (
        dumped or hangs or any(_before(f, logged) for f in ended)
    ):  # which say more than an exit code
        ended = [f for f in ended if f.kind != "ended_first"]
    first = any(f.fault and f.kind not in LATER for f in (*ended, *logged, *found.findings))
    if not first and not dumped:
        ended = [*ended_findings(found.ended, found.told)]
    if first:
        found.findings = [f for f in found.findings if f.kind not in LATER]
    return [
        *ended, *dumped, *logged, *stack_findings(found.stacks),
        *time_findings(found.traces), *trace_findings(found.traces), *ras_findings(found.reports),
        *inspected_findings(found.inspected), *averaged_findings(found.averaged),
    ]  # fmt: skip


def _before(ended: Finding, logged: Sequence[Finding]) -> bool:
    """Whether NCCL's own error stands before the exit code that a launcher tells."""
    if ended.kind != "ended_first":
        return False
    at = {one.file: one.line for one in ended.evidence}
    errors = [f for f in logged if f.fault and f.kind in {*BROKEN, "nccl_warns"}]
    return any(one.line < at.get(one.file, 0) for f in errors for one in f.evidence)


def _rests_on(finding: Finding, told: Told) -> bool:
    """Whether all its lines are told of more exactly already."""
    lines = finding.evidence
    return bool(lines) and all(one.line in told.get(one.file, ()) for one in lines)


def _dumped(found: Diagnosis) -> list[Finding]:
    jobs = jobs_of(found.dumps)
    if len(jobs) > 1:
        what = message("dumps of one rank are of several jobs; each folder, and each file of "
                       "several ranks, is judged by itself")  # fmt: skip
        found.notes.append((jobs[0][0].file, Note(0, what)))
    return [f for job in jobs for f in _job(job)]


def _job(dumps: Sequence[Dump]) -> list[Finding]:
    """Of one job's dumps; a circle of calls none of which has ended is the reason of the rest."""
    called, circles = call_findings(dumps), dump_findings(dumps)
    if any(finding.kind == "deadlock" for finding in called):
        return called
    certain = any(finding.confidence > 0.8 for finding in circles)
    return [*circles, *called] if certain else [*called, *circles]


def _logged(found: Diagnosis) -> list[Finding]:
    jobs = log_jobs(found.logs)
    said = said_jobs(found.said)
    if len(jobs) > 1:
        what = message("logs are of several jobs, as ranks, sizes or communicators tell; each job "
                       "is judged by itself")  # fmt: skip
        found.notes.append((jobs[0].files[0], Note(0, what)))
    if len(said) > 1:
        what = message("a rank says different things in two files: they are of several jobs, and "
                       "each is judged by itself")  # fmt: skip
        found.notes.append((said[0][0], Note(0, what)))
    told = [resting_on(f, file) for file, one in said for f in watched_findings(file, one)]
    for job in jobs:
        whole = joined(job.logs)
        found_ = (*log_findings(job.name, whole), *apart_findings(job, whole))
        told += [resting_on(finding, job.name) for finding in found_]
    return told
