"""What `scontrol show node` and `scontrol show job` say: nodes that are out, jobs that wait."""

from __future__ import annotations

from typing import Final

from ...errors import RoundelayError
from ...formats.scontrol import Shown, read_shown
from ..finding import Evidence, Finding, names, tell
from .queues import causes_of, reason_of

LISTED: Final = 8
OUT: Final = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "INVAL", "MAINT", "UNKNOWN", "*")
"""In the state of a node that takes no jobs."""


def shown_findings(file: str, data: bytes) -> list[Finding]:
    """What the records say.

    Raises:
        RoundelayError: there is none with a state.
    """
    records = read_shown(data)
    if not records:
        raise RoundelayError("no record of scontrol show node or show job with a state")
    nodes = [record for record in records if not record.job]
    jobs = [record for record in records if record.job]
    return [*_nodes(file, nodes), *_jobs(file, jobs)]


def _cited(file: str, records: list[Shown]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, r.line, f"{r.name} State={r.state} Reason={r.reason}"[:200])
                 for r in records[:4])  # fmt: skip


def _nodes(file: str, nodes: list[Shown]) -> list[Finding]:
    out = [node for node in nodes if any(word in node.state for word in OUT)]
    if out:
        told = [f"{n.name} ({n.state}{': ' if n.reason else ''}{n.reason})" for n in out]
        return [tell(
            "nodes_out", file, {"count": len(out), "told": names(told, LISTED)},
            ["{count:node takes|nodes take} no jobs now: {told}.",
             *causes_of([node.reason for node in out])],
            "Mend what is named, then scontrol update nodename=... state=resume.",
            _cited(file, out), fault=True, confidence=0.85, area="machine",
        )]  # fmt: skip
    if not nodes:
        return []
    told = [f"{node.name} {node.state}" for node in nodes]
    return [tell(
        "nodes_by_state", file, {"count": len(nodes), "told": names(told, LISTED)},
        ["{count:node|nodes} and their states, none of them out: {told}."],
        "A job of several nodes starts when as many are idle together.", _cited(file, nodes),
        confidence=0.9, area="machine",
    )]  # fmt: skip


def _jobs(file: str, jobs: list[Shown]) -> list[Finding]:
    found = []
    for job in jobs[:LISTED]:
        if job.state != "PENDING":
            found.append(tell(
                "job_state", job.name, {"job": job.name, "state": job.state, "why": job.reason},
                ["Job {job} is {state}."] if job.reason in ("", "None") else
                ["Job {job} is {state}, reason {why}."],
                "What happens inside it is told by its own log.", _cited(file, [job]),
                confidence=0.85, area="machine",
            ))  # fmt: skip
            continue
        never, why = reason_of(job.reason)
        found.append(tell(
            "never_starts" if never else "jobs_wait", job.name,
            {"job": job.name, "why": job.reason or "-"},
            ["Job {job} waits, reason {why}.", *([why] if why else [])],
            "squeue --start tells when Slurm expects it to start; the limits stand in sacctmgr "
            "show qos and show assoc.",
            _cited(file, [job]), fault=never, confidence=0.85, area="machine",
        ))  # fmt: skip
    return found
