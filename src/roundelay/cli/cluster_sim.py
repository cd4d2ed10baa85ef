"""`roundelay cluster-sim`: arrivals on a cluster over time, by policy of placing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from ..errors import RoundelayError
from ..files import read_file
from ..place.sim import (
    POLICIES,
    Arrival,
    Rates,
    Settings,
    by_chance,
    checkpoints,
    compare,
    fitting,
    larger,
    loaded,
    make_log,
    read_rates,
    read_trace,
    saving,
    urgent,
)
from ..sweep import plotter
from ..topology import Cluster
from ..units import parse_time
from .base import Command
from .compared import WHAT, chart, entry, told
from .output import emit
from .progress import progress
from .targets import Checked, cluster_option, no_use

TIME: Final = Checked("TIME", parse_time)
NO_FAILURES: Final = read_rates("none")


def _policies(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(text.split(",")))
    for name in found:
        if name not in POLICIES:
            raise RoundelayError(f"policy {name!r:.80}; expected some of {', '.join(POLICIES)}")
    return found


@click.command(
    cls=Command,
    short_help="jobs that arrive over time: waiting, failures, and what placing costs, by policy",
    help="Run the jobs of a trace, or jobs by chance, on a modelled cluster. Each starts once all "
    "its cards are free (a gang); others may pass it if they don't delay it. Cards, hosts and "
    "switches fail; jobs go on from their last save. A line for each policy of placing says what "
    "came of it.",
)
@cluster_option(required=True)
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE.csv",
              help="jobs: columns arrival_s, gpus or cards, and duration_s or steps; perhaps kind "
              "and priority (default: jobs by chance)")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=500,
              help="how many jobs by chance, without --trace (default 500)")  # fmt: skip
@click.option("--scale", type=click.IntRange(1), default=1,
              help="multiply the cards of every job by this (default 1)")  # fmt: skip
@click.option("--median", type=TIME, default="1h",
              help="of the durations of jobs, where the trace gives none: half of the jobs last "
              "longer (default 1h)")  # fmt: skip
@click.option("--load", type=float,
              help="card-hours that jobs ask for, over those there are while they arrive (default: "
              "as in the trace; 0.8 by chance)")  # fmt: skip
@click.option("--urgent", "raised", type=float, default=0.0,
              help="part of the jobs that preempt others (default 0)")  # fmt: skip
@click.option("--policies", type=Checked("NAMES", _policies), default=",".join(POLICIES),
              help="first_fit; best_fit, as Kueue and KAI; order: best fit's nodes, ranks in our "
              "order; ours (default all)")  # fmt: skip
@click.option("--exchange", type=click.FloatRange(0, 1), default=0.2,
              help="part of a step that exchange takes, where it is cheapest (default "
              "0.2)")  # fmt: skip
@click.option("--failures", "rates", type=Checked("KEY=VALUE,...", read_rates), default="llama3",
              help="how many in a million card-hours: card, host, switch, software, slow (a node "
              "that becomes slow); times: repair, and of a slow node lasts and found; slower: how "
              "many times longer work takes on it; or none (default llama3: one failure in 3.09 "
              "hours for 16,384 cards)")  # fmt: skip
@click.option("--save", type=TIME, default="30s", help="time that a save takes (default 30s)")
@click.option("--restart", type=TIME, default="300s",
              help="time from a failure until work goes on (default 300s)")  # fmt: skip
@click.option("--interval", type=TIME,
              help="time of work between saves (default: as Daly says, by cards)")  # fmt: skip
@click.option("--contention", is_flag=True,
              help="jobs slow one another on links that they share")  # fmt: skip
@click.option("--no-backfill", is_flag=True, help="no job overtakes the first of the queue")
@click.option("--seed", type=click.IntRange(0), default=1,
              help="for jobs and failures by chance; the same gives the same "
              "(default 1)")  # fmt: skip
@click.option("--events", "log", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="write what happens, event by event, into this JSON file, for roundelay serve "
              "--jobs and page --jobs")  # fmt: skip
@click.option("--plot", "picture", type=click.Path(dir_okay=False, path_type=Path),
              help="draw --what over the jobs into this file: .svg, .html (needs plotly) or .png "
              "(needs CairoSVG)")  # fmt: skip
@click.option("--what", type=click.Choice(tuple(WHAT)), default="exchange",
              help="what is drawn (default exchange)")  # fmt: skip
def command(
    where: Cluster,
    policies: Sequence[str],
    exchange: float,
    rates: Rates,
    save: float,
    restart: float,
    interval: float | None,
    contention: bool,
    no_backfill: bool,
    seed: int,
    log: Path | None,
    picture: Path | None,
    what: str,
    as_json: str | None,
    **given: Any,
) -> None:
    """Run and print."""
    if picture is None:
        no_use(("what",), "without --plot", "add --plot FILE.svg")
    draw = plotter(picture) if picture else None
    jobs = _jobs(where, seed, **given)
    if rates == NO_FAILURES and interval is None and len({job.priority for job in jobs}) == 1:
        no_use(("save", "restart"), "where nothing fails, and no job has a higher priority")
    saves = saving(where, jobs, save, restart, rates, interval)
    settings = Settings(policies[0], saves, rates, exchange, not no_backfill, seed, contention)
    with progress(len(policies), 0) as step:
        found = compare(where, jobs, policies, settings, lambda one: step({"policy": one.policy}),
                        record=log is not None)  # fmt: skip
    advice = checkpoints(where, [job.cards for job in jobs], save, restart, rates)
    emit(entry(found, advice, where), as_json, lambda: told(found, advice, where))
    if log:  # behind what is printed, which a full disk must not take away
        log.write_bytes(msgspec.json.encode(make_log(where, found, saves)) + b"\n")
    if draw:
        draw(chart(found, what, where))


def _jobs(
    where: Cluster, seed: int, *, trace: Path | None, jobs: int, scale: int, median: float,
    load: float | None, raised: float,
) -> list[Arrival]:  # fmt: skip
    if trace:
        text = read_file(trace).decode("utf-8", "replace")
        no_use(("jobs",), "with --trace, which says how many there are")
        if "duration_s" in text.partition("\n")[0]:
            no_use(("median",), "with a trace that has the column duration_s")
        found = larger(read_trace(text, str(trace), median), scale)
    else:
        found = larger(by_chance(jobs, seed, where.size // scale or 1, median), scale)
        found = fitting(found, where)
        load = 0.8 if load is None and len(found) > 1 else load
    if load is not None:
        found = loaded(found, where.size, load)
    return urgent(found, raised, seed)
