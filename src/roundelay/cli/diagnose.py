"""`roundelay diagnose`: what logs, dumps, topologies and tables say is wrong, in plain words."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click

from ..clusters import cluster
from ..diagnose.anonymous import Anonymous
from ..diagnose.given import Given
from ..diagnose.hang.orders import program_findings
from ..diagnose.report import html, markdown, shown
from ..diagnose.together import diagnose
from ..errors import RoundelayError
from ..i18n import translator
from ..simulate.nccl import predict
from ..topology import Cluster
from .base import Command, language, say
from .output import emit, write_whole
from .targets import cluster_option, only_one, ranks_option

FILES = 10000
"""Files that a folder may hold."""


@click.command(
    cls=Command,
    short_help="say what logs, dumps, traces, topologies and tables show, and what to try",
    help="Read FILES, any mixture of topologies (NCCL's XML, nvidia-smi topo -m, rocm-smi "
    "--showtopo), logs of NCCL, flight recorder dumps, messages of watchdogs, profilers' and "
    "execution traces, what NCCL's Inspector and RAS write, the output of nccl-tests, facts in "
    "JSON and files of Roundelay itself, and say what is wrong and what to try, the gravest first. "
    "What a file is, is told by what stands in it; files of the ranks of one job are judged as "
    "one; a folder stands for the files in it, and - for standard input. The exit status is 1 if "
    "something is off.",
)
@click.argument("files", metavar="[FILES]...", nargs=-1)
@click.option(
    "--program",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE.py",
    help="a program that calls roundelay.init(): it is run on all "
    "ranks at once without data, and it is said whether its calls can deadlock",
)
@ranks_option(None, "ranks of the program, such as 4")
@cluster_option(
    "where tables were measured: a name with a number of nodes, such as dgx-h100:2, or a cluster "
    "file"
)
@click.option("--save", "report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="write a report as well: FILE.md or FILE.html")  # fmt: skip
@click.option("--anonymise", is_flag=True, help="replace names of hosts, addresses and users")
def command(
    files: Sequence[str], program: Path | None, ranks: Sequence[int] | None,
    where: Cluster | None, report: Path | None, anonymise: bool, as_json: str | None,
) -> int:  # fmt: skip
    """Read, judge, tell."""
    if not files and program is None:
        raise click.UsageError("no FILES and no --program; give at least one of them")
    if ranks and program is None:
        raise click.UsageError("-n is the number of ranks of a --program, and there is none")
    if report and report.suffix not in (".md", ".html"):
        raise click.UsageError(f"{report}: expected a name that ends in .md or .html")
    once = {str(given.path and given.path.resolve()): given for given in _given(files)}
    found = diagnose(list(once.values()), where, predict, cluster)
    if program is not None:
        from ..diagnose.hang.record import record_script  # which needs the native core

        with redirect_stdout(sys.stderr):
            recording = record_script(program, only_one(ranks))
        found.findings += program_findings(recording.programs, str(program))
        found.sort()
    tell = translator(language())
    value = shown(found.as_json(tell))
    if anonymise:
        value = Anonymous(found.hosts).value(value)
    emit(value, as_json, lambda: _told(value))
    for note in value["notes"] if as_json != "-" else ():  # behind what matters
        at = say("line {line}", line=note["line"]) if note["line"] else ""
        words = [say("note"), note["file"], at, note["text"]]
        click.echo(": ".join(filter(None, words)), err=True)
    if report:
        text = markdown(value, tell) if report.suffix == ".md" else html(value, tell, language())
        write_whole(report, text)
    return int(not found.ok)


def _given(words: Sequence[str]) -> Iterator[Given]:
    for word in words:
        path = Path(word)
        if word == "-":
            yield Given("stdin", data=sys.stdin.buffer.read())
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file())
            if not inside or len(inside) > FILES:
                raise RoundelayError(f"{path} holds {len(inside):,} files; expected 1 to {FILES:,}")
            yield from (Given(str(p), p) for p in inside)
        else:
            path.stat()  # a file that is not there is told by its name
            yield Given(word, path)


def _told(value: Mapping[str, Any]) -> str:
    parts = [_finding(finding) for finding in value["findings"]]
    if not parts:
        parts.append(say("There is nothing to say of these files."))
    elif value["ok"]:
        parts.append(say("Nothing that is looked for is off."))
    return "\n\n".join(parts)


def _finding(finding: Mapping[str, Any]) -> str:
    mark = say("off") if finding["fault"] else say("explained")
    sure = say("sure to {share}", share=f"{100 * finding['confidence']:.0f} %")
    lines = [
        f"{mark}: {finding['kind']} ({finding['subject']})",
        _wrapped(finding["reason"]),
        _wrapped(f"{say('Try')} ({sure}): {finding['try']}"),
    ]
    for e in finding["evidence"]:
        at = f"{e['file']}:{e['line']}" if e["line"] else e["file"]
        lines.append(f"  {at}: {e['text'][:160]}")
    return "\n".join(lines)


def _wrapped(text: str) -> str:
    """Indented; Chinese, which has no spaces to break lines at, in one line."""
    return click.wrap_text(text, 98 if language() == "en" else 10**6, "  ", "  ")
