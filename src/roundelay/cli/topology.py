"""`roundelay topology`: what is connected how, in a machine or a network, from a file of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..diagnose.fabric.drawing import fabric_drawing
from ..diagnose.fabric.picture import fabric_picture
from ..diagnose.given import Given
from ..diagnose.machine.drawing import drawing
from ..diagnose.machine.picture import picture
from ..diagnose.taking import read_fabrics, read_machine
from ..errors import RoundelayError
from ..formats.fabric import Fabric
from ..formats.machine import Machine
from ..formats.note import Note
from ..i18n import translator
from .base import Command, language, say
from .output import emit, write_whole


@click.command(
    cls=Command,
    short_help="draw the machine or the switches that a topology file describes",
    help="Draw what is connected how in the machine that FILE describes (NCCL's topology XML, "
    "nvidia-smi topo -m, rocm-smi --showtopo or amd-smi topology), or its switches with their "
    "hosts (Slurm's topology.conf or topology.yaml, scontrol show topology, ibnetdiscover, "
    "iblinkinfo, topograph); - is standard input. NV, PIX, PXB, PHB, NODE and SYS are classes of "
    "ways, the nearest first.",
)
@click.argument("file", metavar="FILE")
@click.option("--name", default="", help="of the topology to draw, where a file has several")
@click.option("--svg", "svg", type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE.svg", help="draw it into this file, too")  # fmt: skip
def command(file: str, name: str, svg: Path | None, as_json: str | None) -> None:
    """Read and draw."""
    given = (Given("stdin", data=sys.stdin.buffer.read()) if file == "-"
             else Given(file, Path(file)))  # fmt: skip
    if fabrics := read_fabrics(given):
        _fabrics(file, _named(fabrics, name), svg, as_json)
        return
    machine = read_machine(given)
    emit(_value(machine), as_json, lambda: picture(machine, translator(language())))
    if as_json != "-":
        _notes(file, machine.notes)
    if svg is not None:
        write_whole(svg, drawing(machine, translator(language()), language()))


def _notes(file: str, notes: Sequence[Note]) -> None:
    for note in notes:
        at = say("line {line}", line=note.line) if note.line else ""
        words = [say("note"), file, at, note.what.tell(translator(language()))]
        click.echo(": ".join(filter(None, words)), err=True)


def _named(fabrics: Sequence[Fabric], name: str) -> Sequence[Fabric]:
    chosen = [fabric for fabric in fabrics if not name or fabric.name == name]
    if not chosen:
        known = ", ".join(fabric.name for fabric in fabrics)
        raise RoundelayError(f"no topology {name!r}; the file has {known or 'one without a name'}")
    return chosen


def _fabrics(file: str, fabrics: Sequence[Fabric], svg: Path | None, as_json: str | None) -> None:
    tell = translator(language())
    emit({"fabrics": [_fabric_value(fabric) for fabric in fabrics]}, as_json,
         lambda: "\n\n".join(fabric_picture(fabric, tell) for fabric in fabrics))  # fmt: skip
    if as_json != "-":
        _notes(file, [note for fabric in fabrics for note in fabric.notes])
    if svg is not None:
        first = next((fabric for fabric in fabrics if fabric.default), fabrics[0])
        write_whole(svg, fabric_drawing(first, tell, language()))


def _fabric_value(fabric: Fabric) -> dict[str, Any]:
    return {
        "source": fabric.source, "kind": fabric.kind, "name": fabric.name,
        "switches": [
            {"name": name, "title": title, "level": fabric.level_of.get(name),
             "hosts": list(fabric.hosts.get(name, ()))}
            for name, title in fabric.switches.items()
        ],
        "cables": [{"from": c.a, "to": c.b, "rate_GBps": c.rate, "label": c.label}
                   for c in fabric.cables],
        "loose": list(fabric.loose), "unlisted": list(fabric.unlisted),
        "block_sizes": list(fabric.block_sizes),
        "notes": [{"line": n.line, "text": str(n.what)} for n in fabric.notes],
    }  # fmt: skip


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
