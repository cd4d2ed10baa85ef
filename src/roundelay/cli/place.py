"""`roundelay place`: which cards a job should get, and the order of its ranks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..errors import RoundelayError
from ..files import read_file
from ..place import Job, Room, place, read_room
from ..topology import Cluster
from .base import Command
from .output import emit
from .placed import entry, exact_option, job_argument, keep, keep_option, told
from .submitted import sensible, site_of, submit_options, submitted
from .targets import cluster_option


@click.command(
    cls=Command,
    short_help="which cards a job should get, by what it exchanges",
    help="Choose nodes for JOB and the order of its ranks, so that its exchange is cheapest on the "
    "clock, and say what first fit, best fit and chance would cost. JOB is a .toml or .json file, "
    "or a few numbers, such as tensor=8,data=4,data_bytes=2GiB or tensor=8,pipeline=4,data=2,"
    "layers=32,hidden=8192,sequence=4096; or a trace of the job as it ran, or a folder with one "
    "for each rank (PyTorch's profiler or flight recorder, Chakra, our own). With --topology hosts "
    "have names, and --for writes what Slurm or Kubernetes takes, with the reason for each "
    "choice.",
)
@job_argument()
@cluster_option(required=True)
@click.option("--free", type=click.Path(path_type=Path),
              help="a file of what is free: a line for some nodes, such as '0-15' or "
              "'16 0-3 sliced 2-3', or with --topology 'gpu[0-3] 0-7' (default: "
              "everything)")  # fmt: skip
@click.option(
    "--sliced",
    is_flag=True,
    help="take parts of cards, too (MIG, time slices), as if they were whole",
)
@click.option("--spread", is_flag=True,
              help="let the job be spread over leaves and pods where its exchange is cheaper; it "
              "leaves fewer whole ones to others")  # fmt: skip
@submit_options()
@keep_option()
@exact_option()
def command(
    job: Job,
    where: Cluster,
    free: Path | None,
    sliced: bool,
    spread: bool,
    topology: str | None,
    exact: bool,
    kept: Path | None,
    as_json: str | None,
    **asked: Any,
) -> None:
    """Place and print."""
    sensible(asked)
    keep(job, kept)
    if topology is None and job.ranks > where.size:
        raise RoundelayError(f"{job.name}: {job.ranks:,} ranks, and {where.name} has "
                             f"{where.size:,} cards; expected {-(-job.ranks // where.cards):,} "
                             "nodes at least, which --cluster names behind a colon, as in "
                             "dgx-h100:16")  # fmt: skip
    site = site_of(topology, where)
    text = read_file(free).decode("utf-8", "replace") if free else ""
    if site and free:
        site = site.narrowed(text, str(free))
    room = site.room if site else Room.all_of(where)
    if free and not site:
        room = read_room(text, where, str(free))
    job = replace(job, sliced=job.sliced or sliced)
    found = place(job, room, exact=exact, spread=spread)
    texts = submitted(found, site, asked)
    emit(entry(found, room.cluster, site, texts), as_json,
         lambda: told(job, found, room.cluster, site, texts))  # fmt: skip
