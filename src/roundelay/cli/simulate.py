"""`roundelay simulate`: the time of a collective on a cluster, as nccl-tests' table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..bench.cells import sizes_between
from ..bench.machine import cores
from ..errors import RoundelayError
from ..simulate.disturb import Jitter
from ..sweep import Axis, plotter, read_axis
from ..units import parse_size
from .base import Command, terminated_as_interrupted
from .output import emit
from .plot import chart, check
from .simulated import nccl_table, sweep_table
from .stragglers import read_straggler
from .sweep import Asked, Row, places, rows
from .targets import (
    Checked,
    cluster_option,
    only_one,
    params_option,
    ranks_option,
    root_option,
    target_argument,
)

SIZES = ("8", "16G", 2)
"""What is timed where nothing is said: from, to, factor."""


def read_jitter(text: str) -> str:
    """The text, if it is a jitter."""
    if not any(len(factors) for factors in Jitter.parse(text)):
        raise RoundelayError(f"{text!r} lets nothing differ; expected such as step=normal:0.05")
    return text


@click.command(
    cls=Command,
    short_help="the time of a collective on a cluster, as nccl-tests' table",
    help="Time TARGET on a cluster, and print nccl-tests' table: time, algbw and busbw, out of "
    "place. TARGET is COLLECTIVE, COLLECTIVE/ALGORITHM or a schedule file. Without an algorithm "
    "the quickest of ours is taken for each size; --algorithm nccl is NCCL's own choice. A sweep "
    "prints a line for each point.",
)
@target_argument()
@cluster_option()
@ranks_option(None, "cards that take part (default: all of the cluster)")
@click.option("-b", "first", type=Checked("SIZE", parse_size), default=SIZES[0],
              help="the smallest size (default 8)")  # fmt: skip
@click.option("-e", "last", type=Checked("SIZE", parse_size), default=SIZES[1],
              help="the largest size (default 16G)")  # fmt: skip
@click.option("-f", "factor", type=click.IntRange(2), default=SIZES[2],
              help="from one size to the next (default 2)")  # fmt: skip
@click.option("--sizes", type=Checked("SIZE,SIZE,...", lambda t: [*map(parse_size, t.split(","))]),
              help="these sizes instead")  # fmt: skip
@click.option("--algorithm", default="auto",
              help="auto, nccl, all (each of ours) or a name (default auto)")  # fmt: skip
@click.option("--protocol", help="LL, LL128 or Simple (default: the quickest)")
@params_option()
@root_option()
@click.option("--straggler", "stragglers", multiple=True,
              type=Checked("WHAT=WHICH:TIMES", read_straggler),
              help="what is slow, such as rank=37:1.10 or 'link=NIC 3 of node 12, out:2'; may be "
              "given several times")  # fmt: skip
@click.option(
    "--jitter",
    type=Checked("WHAT=DISTRIBUTION:X,...", read_jitter),
    help="what differs from time to time, such as step=normal:0.05,card=lognormal:0.03",
)
@click.option("--samples", type=click.IntRange(1), default=1000,
              help="how often jitter is drawn (default 1000)")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=1,
              help="of the draws (default 1)")  # fmt: skip
@click.option(
    "--sweep",
    "axes",
    multiple=True,
    type=Checked("KEY=VALUE,...", read_axis),
    help="a line for each value, such as nodes=1,2,4..4096; keys: cluster, nodes, ranks, "
    "size, algorithm, protocol, straggler; several of them make every combination",
)
@click.option(
    "--out",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="keep lines in this file as they come; what it has is not asked again",
)
@click.option("--plot", "picture", type=click.Path(dir_okay=False, path_type=Path),
              help="draw busbw against size, or time against what is swept, into this file: "
              ".svg, .html (needs plotly) or .png (needs CairoSVG)")  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(1), help="processes of a sweep (default: one a processor)"
)
@click.option("--ray", is_flag=True, help="sweep on a Ray cluster")
def command(
    first: int,
    last: int,
    factor: int,
    sizes: Sequence[int] | None,
    ranks: Sequence[int] | None,
    axes: Sequence[Axis],
    file: Path | None,
    picture: Path | None,
    jobs: int | None,
    ray: bool,
    as_json: str | None,
    **given: Any,
) -> None:
    """Time and print."""
    sizes = tuple(sizes or sizes_between(first, last, factor))
    asked = Asked(ranks=only_one(ranks) if ranks else None, sizes=sizes, **given)
    found = places(asked, axes)
    draw = plotter(picture) if picture else None
    if draw:
        check([{"bytes": place.point.size, **place.about} for place in found])
    jobs = jobs or (cores() if axes else 1)
    with terminated_as_interrupted():
        lines = rows(asked, found, file, jobs, ray)
    if not any("error" not in row for row in lines):
        raise RoundelayError(lines[0]["error"])
    if draw:
        draw(chart(asked.collective, lines))
    emit(_json(lines, axes), as_json, lambda: _told(asked, lines, axes))


def _told(asked: Asked, lines: Sequence[Row], axes: Sequence[Axis]) -> str:
    return sweep_table(lines) if axes else nccl_table(asked.collective, asked.root, lines)


def _json(lines: Sequence[Row], axes: Sequence[Axis]) -> dict[str, Any]:
    """The answers, and apart from them the points that have none."""
    about = ("cluster", "nodes", "ranks", "swept")
    hidden = () if axes else about
    shown = [{key: value for key, value in row.items() if key not in hidden} for row in lines]
    found = {
        "cluster": _same(lines, "cluster"),
        "ranks": _same(lines, "ranks"),
        "rows": [row for row in shown if "error" not in row],
    }
    if axes:
        found["swept"] = {axis.key: list(axis.values) for axis in axes}
    if left_out := [row for row in lines if "error" in row]:
        found["left_out"] = left_out
    return found


def _same(lines: Sequence[Row], key: str) -> Any:
    """The value of all rows; None where they differ."""
    values = {row[key] for row in lines}
    return values.pop() if len(values) == 1 else None
