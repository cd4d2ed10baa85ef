"""`roundelay probe`: measure this machine's links, and write them down as a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ..clusters import HERE, here_path, write
from ..errors import RoundelayError
from ..i18n import translator
from ..probe import Measured, Probed, as_cluster, probe_here, probe_job
from ..run import job_from_environment
from ..units import Rate, format_rate, format_time
from .base import Command, language, say, terminated_as_interrupted
from .output import emit, table, write_whole
from .targets import only_one, ranks_option

RESTLESS: Final = 0.3
"""Of a figure: what half of its repetitions may lie within on a quiet machine."""


@click.command(
    cls=Command,
    short_help="measure this machine's links, and write a cluster file",
    help="Measure, in a few seconds, how fast messages go between ranks of this machine, and write "
    "a cluster file, so that --cluster here means this machine. Inside a job that torchrun, mpirun "
    "or srun has started on several hosts, the network between them is measured as well.",
)
@ranks_option(None, "number of ranks (default: one a core)")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path),
              help="the file to write (default: roundelay/here.toml in the folder for "
              "configuration)")  # fmt: skip
def command(ranks: list[int] | None, output: Path | None, as_json: str | None) -> None:
    """Measure, write, tell."""
    job = job_from_environment()
    if job.ranks > 1:
        if ranks:
            raise RoundelayError(f"-n {only_one(ranks)} inside a job of {job.ranks} ranks "
                                 f"({job.source}); leave -n out")  # fmt: skip
        from ..communicator import init

        with init() as comm:
            probed, first = probe_job(comm), comm.rank == 0
        if first:
            _write(probed, output, as_json)
        return
    with terminated_as_interrupted():
        probed = probe_here(only_one(ranks) if ranks else None)
    _write(probed, output, as_json)


def _write(probed: Probed, output: Path | None, as_json: str | None) -> None:
    path = output or here_path()
    if output is None:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, write(as_cluster(probed)))
    emit(_entry(probed, path), as_json, lambda: _table(probed))
    if (widest := max(f.spread for f in probed.figures.values())) > RESTLESS:
        text = (
            "Figures vary by up to {share:.0f} %: other programs run. Try again when it is quiet."
        )
        click.echo(say(text, share=100 * widest), err=True)
    text = "Written to {file}. Use it: --cluster {name}"
    name = HERE if output is None else str(path)
    click.echo(say(text, file=str(path), name=name), err=True)


def _entry(probed: Probed, path: Path) -> dict[str, Any]:
    tell = translator(language())
    return {
        "file": str(path),
        "machine": probed.machine,
        "nodes": probed.nodes,
        "ranks_per_node": probed.ranks,
        "figures": {name: f.as_json(tell) for name, f in probed.figures.items()},
        "by_host": [
            {"host": host, "latency_us": 1e6 * latency.value, "rate_GBps": rate.value / 1e9}
            for host, (latency, rate) in probed.by_host.items()
        ],
    }


def _table(probed: Probed) -> str:
    tell = translator(language())
    head = ["", say("median"), say("from"), say("to"), say("how")]
    rows = [
        [name, *(_shown(f, value) for value in (f.value, f.low, f.high)), f.how.tell(tell)]
        for name, f in probed.figures.items()
    ]
    here = probed.machine
    title = say("{nodes} x {ranks} ranks; {cores} cores of {cpu}", nodes=probed.nodes,
                ranks=probed.ranks, cores=here["cores"], cpu=here["cpu"])  # fmt: skip
    lines = [title, "", table(head, rows, right="bcd")]
    if len(probed.by_host) > 1:
        hosts = [
            [str(host), _shown(latency, latency.value), _shown(rate, rate.value)]
            for host, (latency, rate) in probed.by_host.items()
        ]
        lines += ["", table([say("host"), say("latency"), say("rate")], hosts, right="bc")]
    return "\n".join(lines)


def _shown(figure: Measured, value: float) -> str:
    if figure.unit == "s":
        return format_time(value)
    if figure.unit == "s/B":
        return f"{value * 1e9:.3g} ns/B"
    return format_rate(Rate(value, "oneway" if "oneway" in figure.unit else None))
