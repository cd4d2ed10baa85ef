"""`roundelay convert`: a file in another format."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..clusters import HERE, names
from ..collectives import UnknownName
from ..convert import TARGETS, Options, convert
from ..diagnose.given import Given
from ..errors import RoundelayError
from ..formats.msccl_xml import PROTOCOLS
from .base import Command, say
from .output import emit, write_whole


@click.command(
    cls=Command,
    short_help="write a file in another format",
    help="Read IN, whatever it is, and write it to OUT in another format. IN is a schedule file, "
    "an MSCCL algorithm or an MSCCL++ plan; a timeline or a trace of ours; what Slurm, "
    "InfiniBand's tools or topograph say of switches, a cluster's name or file; NCCL's topology, "
    "which becomes a cluster; or a dump of the flight recorder. OUT's ending tells the format, or "
    "--to; - is standard input or output. Plans are proved again. The exit status is 1 if one is "
    "wrong.",
)
@click.argument("source", metavar="IN")
@click.argument("out", metavar="OUT")
@click.option("--to", "target", type=click.Choice(TARGETS), help="the format to write")
@click.option("--protocol", type=click.Choice(PROTOCOLS), default=PROTOCOLS[0],
              help="of an MSCCL algorithm (default Simple)")  # fmt: skip
@click.option("--instances", type=click.IntRange(1, 128), default=1,
              help="thread blocks of MSCCL++ that share each step (default 1)")  # fmt: skip
@click.option("--name", default="", help="of the topology to take, where a file has several")
def command(
    source: str, out: str, target: str | None, protocol: str, instances: int, name: str,
    as_json: str | None,
) -> int:  # fmt: skip
    """Read, write, prove."""
    given = _given(source)
    options = Options(protocol, instances, name)
    done = convert(given, "" if out == "-" else out, target or "", options)
    if done.proved is False:
        click.echo(say("not written, as it is wrong: {why}", why=done.why), err=True)
        return 1
    if out == "-":
        sys.stdout.buffer.write(done.data)
        sys.stdout.buffer.flush()
    else:
        write_whole(Path(out), done.data)
    value = {"from": done.source, "to": done.target, "file": out, "bytes": len(done.data),
             "proved": done.proved, "why": done.why}  # fmt: skip
    told = _told(done.source, done.target, done.proved, done.why)
    if out == "-":
        click.echo(told, err=True)
    else:
        emit(value, as_json, lambda: told)
    return 0


def _given(source: str) -> Given:
    if source == "-":
        return Given("stdin", data=sys.stdin.buffer.read())
    path = Path(source)
    if path.exists():
        return Given(source, path)
    name, known = source.partition(":")[0], (*names(), HERE)
    if name in known:
        return Given(source)
    unknown = UnknownName("cluster", name, known)
    raise RoundelayError(f"{source}: there is no such file, and {unknown}")


def _told(source: str, target: str, proved: bool | None, why: str) -> str:
    text = say("{source} written as {target}", source=source, target=target)
    if proved:
        return f"{text}; {say('read back and proved')}"
    return f"{text}; {say('not proved: {why}', why=why)}" if why else text
