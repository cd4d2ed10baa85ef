"""`roundelay place`: which cards a job should get, and the order of its ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ..place import Job, Room, place, read_room
from ..topology import Cluster
from .base import Command
from .output import emit
from .placed import entry, exact_option, job_argument, told
from .targets import cluster_option
from .targets import read as read_file


@click.command(
    cls=Command,
    short_help="which cards a job should get, by what it exchanges",
    help="Choose nodes for JOB and the order of its ranks, so that its exchange is cheapest on the "
    "clock, and say what first fit, best fit and chance would cost. JOB is a .toml or .json file, "
    "or a few numbers, such as tensor=8,data=4,data_bytes=2GiB or tensor=8,pipeline=4,data=2,"
    "layers=32,hidden=8192,sequence=4096.",
)
@job_argument()
@cluster_option(required=True)
@click.option("--free", type=click.Path(path_type=Path),
              help="a file of what is free: a line for some nodes, such as '0-15' or "
              "'16 0-3 sliced 2-3' (default: everything)")  # fmt: skip
@click.option(
    "--sliced",
    is_flag=True,
    help="take parts of cards, too (MIG, time slices), as if they were whole",
)
@exact_option()
def command(
    job: Job, where: Cluster, free: Path | None, sliced: bool, exact: bool, as_json: str | None
) -> None:
    """Place and print."""
    room = Room.all_of(where)
    if free:
        room = read_room(read_file(free).decode("utf-8", "replace"), where, str(free))
    job = replace(job, sliced=job.sliced or sliced)
    found = place(job, room, exact=exact)
    emit(entry(found, where), as_json, lambda: told(job, found, where))
