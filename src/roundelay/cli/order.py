"""`roundelay order`: the order of ranks for a job that has its nodes already."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import click

from ..files import read_file
from ..formats.hostlist import hosts as expand
from ..place import Job, Room, numbers, order
from ..place.pairs import Ordered, order_by_pairs, read_pairs
from ..topology import Cluster
from .base import Command, say
from .output import emit, table
from .placed import entry, exact_option, job_argument, keep, keep_option, told
from .submitted import WRITTEN, named, sensible, site_of, submit_options, submitted
from .targets import cluster_option, no_use


@click.command(
    cls=Command,
    short_help="the order of ranks for a job that has its nodes already",
    help="Order the ranks of JOB over the nodes it has, so that its exchange is cheapest on the "
    "clock, or by what was measured between each two hosts (--pairs). JOB is as for `roundelay "
    "place`.",
)
@job_argument()
@cluster_option()
@click.option("--pairs", type=click.Path(path_type=Path), metavar="FILE",
              help="in place of a cluster, what was measured: a CSV file with the line "
              "bytes_per_second,HOST,HOST... (or seconds,...) and a row for each host, or JSON "
              "with hosts and bytes_per_second")  # fmt: skip
@click.option("--nodes", required=True, metavar="NODES",
              help="the job's nodes, all of their cards, such as 0-3,17; with --topology or "
              "--pairs names, such as gpu[0-3]; or the file of a Workload that Kueue has "
              "admitted")  # fmt: skip
@submit_options()
@keep_option()
@exact_option()
def command(
    job: Job,
    where: Cluster | None,
    pairs: Path | None,
    nodes: str,
    topology: str | None,
    exact: bool,
    kept: Path | None,
    as_json: str | None,
    **asked: Any,
) -> None:
    """Order and print."""
    keep(job, kept)
    if pairs is not None:
        no_use(("where", "topology", "exact", "kind", *WRITTEN),
               "with --pairs, which has hosts and what is between them")  # fmt: skip
        known = read_pairs(read_file(pairs), str(pairs))
        by = order_by_pairs(job, known.only(list(dict.fromkeys(expand(nodes)))))
        emit({"hosts": by.hosts, "cost": by.cost, "against": {"as_given": by.given}}, as_json,
             lambda: _told(job, by))  # fmt: skip
        return
    if where is None:
        raise click.UsageError("where is it? Name --cluster, such as dgx-h100:16, or --pairs FILE "
                               "with what was measured")  # fmt: skip
    sensible(asked)
    site = site_of(topology, where)
    if site:
        site = site.only(named(nodes, site))
    room = site.room if site else Room.of_nodes(where, numbers(nodes, where.nodes, "nodes"))
    found = order(job, room, exact=exact)
    texts = submitted(found, site, asked)
    emit(entry(found, room.cluster, site, texts), as_json,
         lambda: told(job, found, room.cluster, site, texts))  # fmt: skip


def _told(job: Job, found: Ordered) -> str:
    rows, first = [], 0
    for host, run in groupby(found.hosts):
        count = len(list(run))
        rows.append([f"{first}-{first + count - 1}" if count > 1 else str(first), host])
        first += count
    more = found.given / found.cost - 1 if found.cost else 0.0
    return "\n\n".join([
        say("{job}: {ranks} ranks on {hosts} hosts", job=job.name, ranks=f"{job.ranks:,}",
            hosts=len(rows)),
        table([say("ranks"), say("host")], rows),
        say("In the order of --nodes the busiest host would take {more} longer for its messages.",
            more=f"{more:.1%}"),
    ])  # fmt: skip
