"""`roundelay order`: the order of ranks for a job that has its nodes already."""

from __future__ import annotations

import click

from ..place import Job, Room, numbers, order
from ..topology import Cluster
from .base import Command
from .output import emit
from .placed import entry, exact_option, job_argument, told
from .targets import cluster_option


@click.command(
    cls=Command,
    short_help="the order of ranks for a job that has its nodes already",
    help="Order the ranks of JOB over the nodes it has, so that its exchange is cheapest on the "
    "clock. JOB is as for `roundelay place`.",
)
@job_argument()
@cluster_option(required=True)
@click.option("--nodes", required=True, metavar="NUMBERS",
              help="the job's nodes, all of their cards, such as 0-3,17")  # fmt: skip
@exact_option()
def command(job: Job, where: Cluster, nodes: str, exact: bool, as_json: str | None) -> None:
    """Order and print."""
    room = Room.of_nodes(where, numbers(nodes, where.nodes, "nodes"))
    found = order(job, room, exact=exact)
    emit(entry(found, where), as_json, lambda: told(job, found, where))
