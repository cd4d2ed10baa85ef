"""`roundelay tune`: which algorithm is best on this machine, or for NCCL on a cluster."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

import click

from ..bench.machine import machine
from ..collectives import UnknownName
from ..errors import RoundelayError
from ..files import read_file
from ..formats.tuner import MOST
from ..nccl_tuner import MADE as TUNER_MADE
from ..nccl_tuner import SIZES as LOOKED_AT
from ..nccl_tuner import Span, spans, tuner_file
from ..selection import Table
from ..topology import Cluster
from ..tune import MADE as TABLE_MADE
from ..tune import Winner, tune, write
from ..units import format_size
from .base import Command, say
from .output import emit, figure, table, write_whole
from .targets import (
    Checked,
    cluster_option,
    ranks_option,
    seconds_above_zero,
    sizes_above_zero,
)

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "reduce")
SIZES = "8,512,4K,32K,256K,2M,16M"


def _sizes(text: str) -> list[int]:
    return sorted(set(sizes_above_zero(text)))


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
    "variable ROUNDELAY_TABLE names. With --cluster nothing is run: the choices that the clock "
    "prefers on that machine are written as the file that NCCL's tuner plugin reads, with the gain "
    "to expect; where it is less than the clock may err, NCCL's own choice is.",
)
@ranks_option(None, "numbers of ranks (default 2,4,8; with --cluster one node, and all)")
@click.option("--collectives", type=Checked("NAME,NAME,...", _collectives),
              help="these collectives only")  # fmt: skip
@click.option("--sizes", type=Checked("SIZE,SIZE,...", _sizes),
              help="sizes to measure (default 8 to 16M; with --cluster 1K to 16G)")  # fmt: skip
@click.option("--seconds", type=Checked("SECONDS", seconds_above_zero), default="0.1",
              help="time for each algorithm and size (default 0.1)")  # fmt: skip
@cluster_option("the machine that a table for NCCL is for; see `roundelay cluster`")
@click.option("--for", "library", type=click.Choice(["nccl"]),
              help="whose table to write with --cluster")  # fmt: skip
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="file (default roundelay-table.toml; with --cluster nccl_tuner.conf)",
)
def command(
    ranks: list[int] | None,
    collectives: list[str] | None,
    sizes: list[int] | None,
    seconds: float,
    where: Cluster | None,
    library: str | None,
    output: Path | None,
    as_json: str | None,
) -> int:
    """Measure and write."""
    if (where is None) != (library is None):
        raise click.UsageError("expected both --cluster and --for nccl, or neither")
    output = output or Path("nccl_tuner.conf" if where else "roundelay-table.toml")
    _check_ours(output, TUNER_MADE if where else TABLE_MADE)
    if where:
        names = collectives or [name for name in COLLECTIVES if name != "all_to_all"]
        found = spans(where, names, ranks or (), sizes or LOOKED_AT)
        return _for_nccl(found, output, as_json)
    ranks, sizes = ranks or [2, 4, 8], sizes or _sizes(SIZES)
    collectives = collectives or list(COLLECTIVES)
    before = Table.load(os.environ.get("ROUNDELAY_TABLE"))
    winners = []
    for winner in tune(collectives, ranks, sizes, seconds):
        winners.append(winner)
        if as_json != "-":
            click.echo(_line(winner), err=True)
    here = machine()
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    measured = f"{here['cores']} cores of {here['cpu']}, {here['kernel']}, {date}"
    write_whole(output, write(winners, before, measured))
    emit([_entry(w) for w in winners], as_json, lambda: _table(winners))
    text = "Written to {file}. Use it: export ROUNDELAY_TABLE={file}"
    click.echo(say(text, file=str(output.resolve())), err=True)
    return 0


def _check_ours(file: Path, made: str) -> None:
    """Refuse to write over what somebody else has written."""
    if file.exists() and not read_file(file).startswith(made.encode()):
        raise RoundelayError(
            f"{file} is there already, and roundelay tune has not written it; give another name "
            "with -o, or move it away"
        )


def _for_nccl(found: list[Span], output: Path, as_json: str | None) -> int:
    write_whole(output, tuner_file(found))
    emit([span.as_json() for span in found], as_json, lambda: _spans_table(found))
    text = (
        "Written to {file}. Use it: export NCCL_TUNER_PLUGIN=libnccl-tuner-example.so "
        "NCCL_TUNER_CONFIG_FILE={file}"
    )
    click.echo(say(text, file=str(output.resolve())), err=True)
    return 0


def _spans_table(found: list[Span]) -> str:
    """One line a row; what is kept though the clock prefers another is marked."""
    head = [say("collective"), "n", say("from"), say("to"), say("NCCL's own"), say("written"),
            say("channels"), say("gain"), ""]  # fmt: skip
    rows = []
    for span in found:
        first, row = span.choices[0], span.row
        low, high = (f"{gain:.2f}" for gain in span.gains)
        mark = ""
        if not first.dared and first.own[0][:2] != first.best[0][:2]:
            other = f"{first.best[0].algorithm}/{first.best[0].protocol}"
            mark = say("not dared: {other} wins by less than {needed}", other=other,
                       needed=f"{first.needed:.2f}")  # fmt: skip
        rows.append([
            row.collective, str(row.ranks), format_size(row.low),
            "" if row.high == MOST else format_size(row.high + 1),
            f"{first.own[0].algorithm}/{first.own[0].protocol}",
            f"{row.algorithm}/{row.protocol}", str(row.channels),
            low if low == high else f"{low}-{high}", mark,
        ])  # fmt: skip
    return table(head, rows, right="bcdgh")


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
