"""`roundelay tune`: which algorithm is best on this machine."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import click

from ..bench.machine import machine
from ..collectives import UnknownName
from ..selection import Table
from ..tune import Winner, tune, write
from ..units import format_size, parse_size
from .base import Command, say
from .output import emit, figure, table
from .targets import Checked, ranks_option

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "reduce")
SIZES = "8,512,4K,32K,256K,2M,16M"


def _sizes(text: str) -> list[int]:
    return sorted(parse_size(part) for part in text.split(","))


def _collectives(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in COLLECTIVES:
            raise UnknownName("collective to tune", name, COLLECTIVES)
    return names


@click.command(
    cls=Command,
    short_help="measure which algorithm is best on this machine",
    help="Run every algorithm of the collectives between processes of this machine, and write a "
    "table of the best by size and number of ranks. Programs use the table that the environment "
    "variable ROUNDELAY_TABLE names.",
)
@ranks_option("2,4,8", "numbers of ranks, such as 2,4,8 (the default)")
@click.option("--collectives", type=Checked("NAME,NAME,...", _collectives),
              default=",".join(COLLECTIVES), help="these collectives only")  # fmt: skip
@click.option("--sizes", type=Checked("SIZE,SIZE,...", _sizes), default=SIZES,
              help="sizes to measure (default 8 to 16M)")  # fmt: skip
@click.option("--seconds", type=float, default=0.1,
              help="time for each algorithm and size (default 0.1)")  # fmt: skip
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              default=Path("roundelay-table.toml"),
              help="the table's file (default roundelay-table.toml)")  # fmt: skip
def command(
    ranks: list[int],
    collectives: list[str],
    sizes: list[int],
    seconds: float,
    output: Path,
    as_json: str | None,
) -> int:
    """Measure and write."""
    before = Table.load(os.environ.get("ROUNDELAY_TABLE"))
    winners = []
    for winner in tune(collectives, ranks, sizes, seconds):
        winners.append(winner)
        if as_json != "-":
            click.echo(_line(winner), err=True)
    here = machine()
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    measured = f"{here['cores']} cores of {here['cpu']}, {here['kernel']}, {date}"
    output.write_text(write(winners, before, measured), "utf-8")
    emit([_entry(w) for w in winners], as_json, lambda: _table(winners))
    text = "Written to {file}. Use it: export ROUNDELAY_TABLE={file}"
    click.echo(say(text, file=str(output.resolve())), err=True)
    return 0


def _line(w: Winner) -> str:
    return f"{w.collective} n={w.ranks} {format_size(w.size)}: {w.algorithm}"


def _entry(w: Winner) -> dict[str, Any]:
    return {
        "collective": w.collective,
        "ranks": w.ranks,
        "bytes": w.size,
        "algorithm": w.algorithm,
        "time_us": dict(w.microseconds),
    }


def _table(winners: list[Winner]) -> str:
    head = [say("collective"), "n", say("size"), say("best"), "us", say("next best"), "us"]
    rows = []
    for w in winners:
        ordered = sorted(w.microseconds, key=w.microseconds.__getitem__)
        other = next((name for name in ordered if name != w.algorithm), "")
        rows.append([w.collective, str(w.ranks), format_size(w.size), w.algorithm,
                     figure(w.microseconds[w.algorithm]), other,
                     figure(w.microseconds[other]) if other else ""])  # fmt: skip
    return table(head, rows, right="bceg")
