"""`roundelay topology`: what is connected how in a machine, from a file that says so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..diagnose.drawing import drawing
from ..diagnose.given import Given
from ..diagnose.picture import picture
from ..diagnose.taking import read_machine
from ..formats.machine import Machine
from ..i18n import translator
from .base import Command, language, say
from .output import emit, write_whole


@click.command(
    cls=Command,
    short_help="draw the machine that a topology file describes",
    help="Draw what is connected how in the machine that FILE describes: NCCL's topology XML, "
    "nvidia-smi topo -m or rocm-smi --showtopo; - is standard input. NV, PIX, PXB, PHB, NODE and "
    "SYS are classes of ways, the nearest first.",
)
@click.argument("file", metavar="FILE")
@click.option("--svg", "svg", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE.svg", help="draw it into this file, too")  # fmt: skip
def command(file: str, svg: Path | None, as_json: str | None) -> None:
    """Read and draw."""
    given = (Given("stdin", data=sys.stdin.buffer.read()) if file == "-"
             else Given(file, Path(file)))  # fmt: skip
    machine = read_machine(given)
    emit(_value(machine), as_json, lambda: picture(machine, translator(language())))
    if as_json != "-":
        for note in machine.notes:
            at = say("line {line}", line=note.line) if note.line else ""
            words = [say("note"), file, at, note.what.tell(translator(language()))]
            click.echo(": ".join(filter(None, words)), err=True)
    if svg is not None:
        write_whole(svg, drawing(machine, translator(language()), language()))


def _value(machine: Machine) -> dict[str, Any]:
    return {
        "source": machine.source,
        "cards": [
            {"name": c.name, "host": c.host, "numa": c.numa, "rank": c.rank, "device": c.device,
             "bus": c.bus, "model": c.model, "kind": c.kind, "links": dict(c.links),
             "pcie_GBps": c.pcie}
            for c in machine.cards
        ],
        "nics": [
            {"name": n.name, "host": n.host, "numa": n.numa, "device": n.device, "bus": n.bus,
             "ports_GBps": list(n.ports), "pcie_GBps": n.pcie}
            for n in machine.nics
        ],
        "ways": [{"from": a, "to": b, "way": way} for (a, b), way in machine.between.items()],
        "unknown": [{"bus": bus, "line": line} for bus, line in machine.unknown],
        "missing": list(machine.missing),
        "notes": [{"line": n.line, "text": str(n.what)} for n in machine.notes],
    }  # fmt: skip
