"""`roundelay order`: the order of ranks for a job that has its nodes already."""

from __future__ import annotations

from typing import Any

import click

from ..place import Job, Room, numbers, order
from ..topology import Cluster
from .base import Command
from .output import emit
from .placed import entry, exact_option, job_argument, told
from .submitted import named, site_of, submit_options, submitted
from .targets import cluster_option


@click.command(
    cls=Command,
    short_help="the order of ranks for a job that has its nodes already",
    help="Order the ranks of JOB over the nodes it has, so that its exchange is cheapest on the "
    "clock. JOB is as for `roundelay place`.",
)
@job_argument()
@cluster_option(required=True)
@click.option("--nodes", required=True, metavar="NODES",
              help="the job's nodes, all of their cards, such as 0-3,17; with --topology names, "
              "such as gpu[0-3], or the file of a Workload that Kueue has admitted")  # fmt: skip
@submit_options()
@exact_option()
def command(
    job: Job,
    where: Cluster,
    nodes: str,
    topology: str | None,
    exact: bool,
    as_json: str | None,
    **asked: Any,
) -> None:
    """Order and print."""
    site = site_of(topology, where)
    if site:
        site = site.only(named(nodes, site))
    room = site.room if site else Room.of_nodes(where, numbers(nodes, where.nodes, "nodes"))
    found = order(job, room, exact=exact)
    texts = submitted(found, site, asked)
    emit(entry(found, room.cluster, site, texts), as_json,
         lambda: told(job, found, room.cluster, site, texts))  # fmt: skip
