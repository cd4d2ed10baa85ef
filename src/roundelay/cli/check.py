"""`roundelay check`: whether a measurement is as it should be, and what to look at if not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median

import click

from ..clusters import cluster
from ..diagnose import Finding, Judged, Report, check
from ..files import read_file
from ..i18n import translator
from ..simulate.nccl import predict
from ..topology import Cluster
from ..units import format_size
from .base import Command, language, say
from .output import emit, figure, table
from .targets import cluster_option


@click.command(
    cls=Command,
    short_help="judge a measured table of nccl-tests, and say what to look at",
    help="Compare what FILE holds with what CLUSTER should do, row by row, and say what to look "
    "at. FILE is the printed output of nccl-tests, rccl-tests, `roundelay bench` or DeepEP's "
    "tests, or a JSON object of facts; - is standard input. The exit status is 1 if something is "
    "off.",
)
@click.argument("file", metavar="FILE")
@cluster_option(
    "where it was measured: a name with a number of nodes, such as dgx-h100:2, or a cluster file"
)
def command(file: str, where: Cluster | None, as_json: str | None) -> int:
    """Read, judge, tell."""
    data = sys.stdin.buffer.read() if file == "-" else read_file(Path(file))
    name = "stdin" if file == "-" else file
    report = check(data, name, where, predict, cluster)
    if as_json != "-":
        for line in _notes(report):
            click.echo(line, err=True)
    emit(report.as_json(translator(language())), as_json, lambda: _told(report))
    return int(not report.ok)


def _notes(report: Report) -> Iterator[str]:
    tell = translator(language())
    for line, what in report.notes:
        at = say("line {line}", line=line) if line else ""
        yield ": ".join(filter(None, [say("note"), at, what.tell(tell)]))


def _told(report: Report) -> str:
    parts = [_rows(what, list(rows)) for what, rows in groupby(report.rows, _what)]
    parts += [_finding(finding) for finding in report.findings]
    if not parts:
        parts.append(say("There is nothing to say of these figures by themselves."))
    elif report.ok:
        parts.append(say("Nothing that is looked for is off."))
    return "\n\n".join(parts)


def _what(row: Judged) -> str:
    return f"{row.collective}, n = {row.ranks}"


def _rows(what: str, rows: Sequence[Judged]) -> str:
    head = ["", "", "us", *map(say, ("expected", "from", "to")), "busbw", say("expected"), "", ""]
    lines = [
        [format_size(row.row.size), "in-place" if row.in_place else "out-of-place",
         figure(row.timing.time_us), figure(row.expected_us), figure(row.low_us),
         figure(row.high_us), f"{row.timing.busbw:.2f}", f"{row.expected_busbw:.2f}",
         f"{row.expected.algorithm} {row.expected.protocol}", say(row.verdict)]
        for row in rows
    ]  # fmt: skip
    good = sum(row.verdict == "as expected" for row in rows)
    text = "{good} of {all} are as expected; the median time is {times} times the expected one."
    times = f"{median(row.ratio for row in rows):.2f}"
    counted = say(text, good=good, all=len(rows), times=times)
    return f"{what}\n\n{table(head, lines, right='acdefgh')}\n\n{counted}"


def _finding(finding: Finding) -> str:
    tell = translator(language())
    mark = say("off") if finding.fault else say("explained")
    lines = [
        f"{mark}: {finding.kind} ({finding.subject})",
        _wrapped(finding.reason.tell(tell)),
        _wrapped(f"{say('Try')}: {finding.advice.tell(tell)}"),
    ]
    lines += [f"  {e.file}:{e.line}: {e.text}" for e in finding.evidence]
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    """Indented; Chinese, which has no spaces to break lines at, in one line."""
    return click.wrap_text(text, 98 if language() == "en" else 10**6, "  ", "  ")
