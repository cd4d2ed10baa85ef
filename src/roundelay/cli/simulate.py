"""`roundelay simulate`: the time of a collective on a cluster, as nccl-tests' table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import click

from ..algorithms import Algorithm
from ..bench.cells import sizes_between
from ..bench.table import us
from ..collectives import collective
from ..errors import RoundelayError
from ..schedule import Schedule
from ..simulate.candidates import Candidate
from ..simulate.disturb import Jitter
from ..simulate.rows import Question, Row, row_json
from ..topology import Cluster
from ..units import format_size, format_time, parse_size
from .base import Command, say
from .output import emit
from .targets import (
    Checked,
    cluster_option,
    leave_out,
    load,
    only_one,
    params_option,
    ranks_option,
    root_option,
    target_argument,
)

SIZES = ("8", "16G", 2)
"""What is timed where nothing is said: from, to, factor."""


def read_straggler(text: str) -> tuple[str, str, float]:
    """``rank=37:1.10`` or ``link=NIC 3 of node 12, out:2`` as what, which and factor."""
    what, equals, rest = text.partition("=")
    which, colon, factor = rest.rpartition(":")
    try:
        times = float(factor)
    except ValueError:
        times = 0.0
    if what not in ("rank", "link") or not equals or not colon or not times:
        raise RoundelayError(
            f"{text!r} is no straggler; expected what is slow and how many times, such as "
            "rank=37:1.10 or 'link=NIC 3 of node 12, out:2'"
        )
    return what, which.strip(), times


def find_link(cluster: Cluster, name: str) -> int:
    """The number of a link, from it or from its name.

    Raises:
        RoundelayError: no such link.
    """
    if name.isascii() and name.isdigit():
        return int(name)
    for links in cluster.links:
        pattern = re.sub(r"\\\{(\d)\\\}", r"(?P<i\1>\\d+)", re.escape(links.label))
        if match := re.fullmatch(pattern, name):
            index = [int(match[f"i{d}"]) for d in range(len(links.shape))]
            if all(i < size for i, size in zip(index, links.shape, strict=True)):
                return int(links.at(*index))
    known = ", ".join(repr(links.describe(links.first)) for links in cluster.links)
    raise RoundelayError(f"{cluster.name} has no link {name!r}; it has such as {known}")


def _rank(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise RoundelayError(f"{text!r} is no rank; expected a number, as in rank=37:1.10")
    return int(text)


@click.command(
    cls=Command,
    short_help="the time of a collective on a cluster, as nccl-tests' table",
    help="Time TARGET on a cluster, and print nccl-tests' table: time, algbw and busbw, out of "
    "place. TARGET is COLLECTIVE, COLLECTIVE/ALGORITHM or a schedule file. Without an algorithm "
    "the quickest of ours is taken for each size; --algorithm nccl is NCCL's own choice.",
)
@target_argument()
@cluster_option(required=True)
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
@click.option("--jitter", type=Checked("WHAT=DISTRIBUTION:X,...", Jitter.parse),
              help="what differs from time to time, such as step=normal:0.05,card=lognormal:0.03")
@click.option("--samples", type=click.IntRange(1), default=1000,
              help="how often jitter is drawn (default 1000)")  # fmt: skip
@click.option("--seed", type=int, default=1, help="of the draws (default 1)")
def command(
    target: str,
    where: Cluster,
    ranks: Sequence[int] | None,
    first: int,
    last: int,
    factor: int,
    sizes: list[int] | None,
    algorithm: str,
    protocol: str | None,
    params: dict[str, Any],
    root: int,
    stragglers: Sequence[tuple[str, str, float]],
    jitter: Jitter | None,
    samples: int,
    seed: int,
    as_json: str | None,
) -> None:
    """Time and print."""
    loaded = load(target if algorithm in ("auto", "nccl", "all") else f"{target}/{algorithm}")
    if isinstance(loaded, Schedule):
        leave_out(ranks, params, root)
        what, n = loaded.collective, loaded.ranks
    else:
        what, n = loaded[0].collective, only_one(ranks) if ranks else where.size
    question = Question(
        what, where, n,
        [(_rank(w), f) for kind, w, f in stragglers if kind == "rank"],
        {find_link(where, w): f for kind, w, f in stragglers if kind == "link"},
        jitter, samples, seed, len(os.sched_getaffinity(0)),
    )  # fmt: skip
    asked = sizes or sizes_between(max(first, 1), last, factor)
    rows = list(_rows(question, loaded, asked, algorithm, protocol, params, root))
    found = {"cluster": where.name, "ranks": n, "rows": [row_json(row) for row in rows]}
    emit(found, as_json, lambda: told(question, rows))


def _rows(
    question: Question,
    loaded: list[Algorithm] | Schedule,
    sizes: Sequence[int],
    how: str,
    protocol: str | None,
    params: dict[str, Any],
    root: int,
) -> Iterator[Row]:
    if how == "nccl":
        yield from (question.nccl(size) for size in sizes)
    elif how == "all" or isinstance(loaded, Schedule) or len(loaded) == 1:
        for name, schedule in _schedules(question, loaded, params, root):
            clock = question.clock(schedule)
            yield from (question.of(name, clock, size, protocol) for size in sizes)
    else:
        for size in sizes:
            yield question.quickest(size)[0][1]


def _schedules(
    question: Question, loaded: list[Algorithm] | Schedule, params: dict[str, Any], root: int
) -> Iterator[tuple[str, Schedule]]:
    if isinstance(loaded, Schedule):
        yield loaded.name or "?", loaded
        return
    for a in loaded:
        given = dict(params)
        if "group" in a.parameters and question.ranks > question.cluster.cards:
            given.setdefault("group", question.cluster.cards)
        if len(loaded) == 1 or a.fits(question.ranks, given):
            yield Candidate(a, given).name, a(question.ranks, root, **given)


def told(question: Question, rows: Sequence[Row]) -> str:
    """nccl-tests' table, and what is to be known of it."""
    nodes = -(-question.ranks // question.cluster.cards)
    text = say("{collective} over {ranks} cards of {cluster}, {nodes} nodes", nodes=nodes,
               collective=question.collective, ranks=f"{question.ranks:,}",
               cluster=question.cluster.name)  # fmt: skip
    lines = [f"# {text}", "#"]
    drawn = rows[0].spread is not None
    spread = ("p50", "p99", "p99.9") if drawn else ()
    lines.append(f"#{_line(*_HEAD, *spread)}  algorithm")
    lines.append(f"#{_line(*_UNITS, *(['(us)'] * len(spread)))}")
    sums = collective(question.collective).sums
    lines += [f" {_line(*_cells(row, sums))}  {_how(row)}" for row in rows]
    lines += ["#", *(f"# {note}" for note in _notes(rows))]
    return "\n".join(lines)


_HEAD = ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
_UNITS = ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "")
_WIDTHS = (12, 14, 10, 8, 8, 9, 8, 8, 8)


def _line(*cells: str) -> str:
    widths = (*_WIDTHS, *[10] * (len(cells) - len(_WIDTHS)))
    return "".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(row: Row, sums: bool) -> list[str]:
    cells = [str(row.size), str(row.size // 4), "float", "sum" if sums else "none", "-1",
             us(row.time * 1e6), f"{row.algbw / 1e9:.2f}", f"{row.busbw / 1e9:.2f}", "N/A"]  # fmt: skip
    if row.spread:
        cells += [us(t * 1e6) for t in (row.spread.p50, row.spread.p99, row.spread.p999)]
    return cells


def _how(row: Row) -> str:
    channels = say("{n} channels", n=row.channels) if row.channels else ""
    return ", ".join(filter(None, [row.algorithm, row.protocol, channels]))


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    last = rows[-1]
    parts = {
        "latency": last.latency, "wire": last.wire, "copying and adding": last.reduce,
        "waiting": last.wait, "launching": last.host,
    }  # fmt: skip
    shares = ", ".join(f"{say(name)} {format_time(t)}" for name, t in parts.items() if t)
    yield say("the last line: {parts}; the busiest link: {link}", parts=shares,
              link=last.binding_link or "-")  # fmt: skip
    for row in dict.fromkeys((rows[0], last)):
        if row.band:
            low, high = (f"{t / row.time:.2g}" for t in row.band)
            yield say("measured times of {size} are expected between {low} and {high} times these",
                      size=format_size(row.size), low=low, high=high)  # fmt: skip
