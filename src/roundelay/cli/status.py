"""`roundelay status`: what the ranks of a running job do, and who keeps whom waiting."""

from __future__ import annotations

import click

from ..i18n import message
from ..run.status import status_of
from ..run.watch import Status
from ..units import format_time
from .base import Command, say
from .output import emit, table


@click.command(
    cls=Command,
    short_help="what the ranks of a running job do",
    help="Show what each rank of a running job does, and who keeps whom waiting. It works on a "
    "machine where the job has ranks, for the user whose job it is. JOB is its name (the variable "
    "ROUNDELAY_NAME) or the address at which its ranks met; without it, the job that runs here.",
)
@click.argument("job", required=False)
def command(job: str | None, as_json: str | None) -> int:
    """Ask, print; the exit status is 1 where something is wrong."""
    status = status_of(job)
    emit(status, as_json, lambda: _table(status))
    return int(bool(status.findings))


def _table(status: Status) -> str:
    states = {
        "waiting": message("waiting"),
        "running": message("running"),
        "silent": message("silent"),
        "gone": message("gone"),
        "unknown": message("unknown"),
    }
    rows = [
        (str(r.rank), str(r.node), say(states[r.state].text), r.operation,
         format_time(r.since_s) if r.operation else "-",
         ", ".join(map(str, r.waiting_for)) or "-")
        for r in status.ranks
    ]  # fmt: skip
    heads = ("rank", "node", "state", "operation", "since", "waiting for")
    lines = [say("Job {job}", job=status.job), "", table([*map(say, heads)], rows, right="abe")]
    return "\n".join([*lines, *(f"\n{finding.text}" for finding in status.findings)])
