"""What Slurm's lists say: which nodes are out, and why jobs wait."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from ...formats.slurm_lists import NodeState, Queued, Reason, read_slurm_lists
from ..finding import Evidence, Figures, Finding, names, tell

LISTED: Final = 8
NEVER: Final = MappingProxyType(
    {
        "DependencyNeverSatisfied": "DependencyNeverSatisfied: the job that it waits for has "
        "failed, so it never starts; cancel it.",
        "JobHeldAdmin": "JobHeldAdmin: an administrator holds it.",
        "JobHeldUser": "JobHeldUser: its user holds it; scontrol release lets it go.",
        "BadConstraints": "BadConstraints: no nodes can ever satisfy what it asks for.",
        "PartitionNodeLimit": "PartitionNodeLimit: it asks for more nodes than its partition "
        "gives a job.",
        "PartitionTimeLimit": "PartitionTimeLimit: it asks for more time than its partition gives.",
        "launch failed requeued held": "It failed to start on a node and is held; see that node's "
        "slurmd, then scontrol release.",
        "InvalidQOS": "InvalidQOS: its quality of service isn't allowed here.",
        "InvalidAccount": "InvalidAccount: its account isn't allowed here.",
    }
)  # fmt: skip
"""Reasons that time alone does not remove (squeue's manual, Job Reason Codes)."""
WAITS: Final = MappingProxyType(
    {
        "Resources": "Resources: it is the next and waits until as many nodes are free together.",
        "Priority": "Priority: others come before it.",
        "ReqNodeNotAvail": "ReqNodeNotAvail: nodes that it needs are down, drained or reserved.",
        "Nodes required": "Nodes that it needs are down, drained or reserved for others.",
        "Dependency": "Dependency: it waits for another job to end.",
        "QOS": "QOS...: a limit of its quality of service is reached; it waits for its own jobs "
        "or those of its group to end.",
        "Assoc": "Assoc...: a limit of its account or user is reached; it waits for their jobs to "
        "end.",
        "BeginTime": "BeginTime: its time has not come.",
        "Reservation": "Reservation: it waits for its reservation to begin.",
        "Licenses": "Licenses: it waits for a licence.",
        "Cleaning": "Cleaning: it runs again, and its last run is being cleared away.",
    }
)  # fmt: skip
CAUSES: Final = MappingProxyType(
    {
        "reported lower than configured": "Fewer cards than configured: slurmd finds fewer than "
        "gres.conf or slurm.conf say, as one is missing there (nvidia-smi, Xid in dmesg) or the "
        "configuration names too many.",
        "Not responding": "Not responding: the controller gets no answer from slurmd; the node or "
        "its network may be down, or slurmd.",
        "Low RealMemory": "Low RealMemory: the node reports less memory than RealMemory says.",
        "Low socket*core": "Low socket*core count: the node reports fewer cores than configured.",
        "Kill task failed": "Kill task failed: processes of a job did not end in time, mostly as "
        "they hang in the kernel (driver, file system).",
        "Prolog": "Prolog: the prolog, or a step of it, failed on the node; see slurmd's log.",
        "Epilog": "Epilog: the epilog failed on the node; see slurmd's log.",
        "unexpectedly rebooted": "Unexpectedly rebooted: the node came back after a reboot that "
        "Slurm had not ordered.",
        "Duplicate jobid": "Duplicate jobid: a job of that number still runs on the node.",
    }
)  # fmt: skip
"""Parts of reasons that Slurm itself writes, and what they stand for."""
OUT: Final = ("down", "drain", "fail", "maint", "inval", "unk", "no_r", "error", "drng", "boot")
"""Beginnings of states in which a node takes no jobs."""


def reason_of(reason: str) -> tuple[bool, str]:
    """Of a job's reason whether time alone does not remove it, and what it stands for."""
    never = next((text for start, text in NEVER.items() if reason.startswith(start)), "")
    return bool(never), never or next(
        (text for start, text in WAITS.items() if reason.startswith(start)), "")  # fmt: skip


def queue_findings(file: str, data: bytes) -> list[Finding]:
    """What the lists say.

    Raises:
        RoundelayError: there are none.
    """
    lists = read_slurm_lists(data)
    found = [_out(file, lists.nodes), _reasons(file, lists.reasons), _never(file, lists.jobs),
             _waiting(file, lists.jobs), _free(file, lists.nodes),
             _running(file, lists.jobs)]  # fmt: skip
    return [finding for finding in found if finding is not None]


def _out(file: str, rows: Sequence[NodeState]) -> Finding | None:
    """Nodes that take no jobs; a node of several partitions stands in several rows."""
    out = {(r.state, r.marks, r.nodes): r for r in rows
           if r.number and (r.state.startswith(OUT) or "*" in r.marks)}  # fmt: skip
    if not out:
        return None
    told = [f"{r.nodes} ({r.state}{r.marks})" for r in out.values()]
    figures: Figures = {"count": sum(r.number for r in out.values()), "told": names(told, LISTED)}
    reason = ["{count:node takes|nodes take} no jobs now: {told}."]
    if any("*" in r.marks for r in out.values()):
        reason.append("* stands for a node that does not answer the controller.")
    if any(r.state.startswith(("drain", "drng")) for r in out.values()):
        reason.append("Drained: somebody, a check of health or Slurm itself has taken it out.")
    return tell(
        "nodes_out", file, figures, reason,
        "sinfo -R tells why; on a node that does not answer look at slurmd and its clock; then "
        "scontrol update nodename=... state=resume.",
        tuple(Evidence(file, r.line, f"{r.state}{r.marks} {r.nodes}") for r in
              list(out.values())[:4]), fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _reasons(file: str, rows: Sequence[Reason]) -> Finding | None:
    if not rows:
        return None
    told = [f"{r.nodes}: {r.why}" for r in rows]
    return tell(
        "nodes_out", file, {"told": names(told, LISTED), "count": len(rows)},
        ["Nodes are out for these reasons: {told}.", *causes_of([row.why for row in rows])],
        "Mend what is named, then scontrol update nodename=... state=resume.",
        tuple(Evidence(file, r.line, f"{r.nodes} {r.why}") for r in rows[:4]), fault=True,
        confidence=0.85, area="machine",
    )  # fmt: skip


def causes_of(reasons: Sequence[str]) -> list[str]:
    """What the reasons stand for that Slurm itself writes, each once."""
    return [text for part, text in CAUSES.items()
            if any(part.lower() in why.lower() for why in reasons)]  # fmt: skip


def _why(job: Queued, table: dict[str, str] | MappingProxyType[str, str]) -> str | None:
    return next((text for start, text in table.items() if job.reason.startswith(start)), None)


def _never(file: str, jobs: Sequence[Queued]) -> Finding | None:
    bad = [(job, why) for job in jobs if job.reason and (why := _why(job, NEVER))]
    if not bad:
        return None
    figures: Figures = {"jobs": names([job.job for job, _ in bad], LISTED), "count": len(bad)}
    return tell(
        "never_starts", file, figures,
        ["Jobs that waiting alone does not start: {jobs}.",
         *dict.fromkeys(why for _, why in bad)],
        "scontrol show job ... shows what it asks for.",
        tuple(Evidence(file, job.line, f"{job.job} ({job.reason})") for job, _ in bad[:4]),
        fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _waiting(file: str, jobs: Sequence[Queued]) -> Finding | None:
    waits = [job for job in jobs if job.state in ("PD", "PENDING") and not _why(job, NEVER)]
    if not waits:
        return None
    by: dict[str, list[str]] = {}
    for job in waits:
        by.setdefault(job.reason.split(",")[0] or "-", []).append(job.job)
    told = [f"{reason}: {names(own, 4)}" for reason, own in by.items()]
    texts = dict.fromkeys(filter(None, (_why(job, WAITS) for job in waits)))
    return tell(
        "jobs_wait", file, {"count": len(waits), "told": "; ".join(told[:LISTED])},
        ["{count:job waits|jobs wait}, by reason: {told}.", *texts],
        "squeue --start tells when Slurm expects them to start; a job of fewer nodes or less time "
        "fits in earlier.",
        tuple(Evidence(file, job.line, f"{job.job} ({job.reason})") for job in waits[:4]),
        confidence=0.85, area="machine",
    )  # fmt: skip


def _free(file: str, rows: Sequence[NodeState]) -> Finding | None:
    by: dict[str, dict[str, int]] = {}
    for row in rows:
        states = by.setdefault(row.partition.rstrip("*"), {})
        states[row.state] = states.get(row.state, 0) + row.number
    if not by:
        return None
    told = [f"{name}: {', '.join(f'{count} {state}' for state, count in states.items())}"
            for name, states in by.items()]  # fmt: skip
    return tell(
        "nodes_by_state", file, {"told": "; ".join(told[:LISTED])},
        ["Nodes by partition and state: {told}."],
        "A job of several nodes starts when as many are idle together.",
        (Evidence(file, rows[0].line, rows[0].nodes),), confidence=0.9, area="machine",
    )  # fmt: skip


def _running(file: str, jobs: Sequence[Queued]) -> Finding | None:
    run = [job for job in jobs if job.state in ("R", "RUNNING")]
    if not run:
        return None
    figures: Figures = {"count": len(run), "nodes": sum(job.nodes for job in run)}
    return tell(
        "jobs_run", file, figures, ["{count:job runs|jobs run} on {nodes:node|nodes}."],
        "Whether a job of them waits inside is told by its own log, not by this list.",
        (Evidence(file, run[0].line, f"{run[0].job} {run[0].where}"),), confidence=0.9,
        area="machine",
    )  # fmt: skip
