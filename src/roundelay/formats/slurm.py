"""Slurm's topology.conf: trees, blocks and rings (Slurm 26.11's manual page)."""

from __future__ import annotations

import re
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .fabric import Cable, Fabric
from .hostlist import Lists
from .note import Note
from .plain import text_of

_PAIR: Final = re.compile(r"(\w+)\s*=\s*(\S+)")
_PLUGIN: Final = re.compile(r"\bTopologyPlugin\s*=\s*topology/(\w{1,30})", re.I)
_KINDS: Final = (("switchname", "tree"), ("blockname", "block"), ("ringname", "ring"))
_SAID: Final = re.compile(r"#\s*Number of Nodes in \S{1,80}: (\d{1,6})\s*$", re.I)
"""What CycleCloud writes above a block."""
TWICE: Final = "{name} stands there twice; the first one counts"
NAME: Final = 64
"""Characters of a switch's name."""


def read_topology_conf(data: bytes) -> Fabric:
    """The switches, blocks or rings of a topology.conf.

    Raises:
        RoundelayError: no line names one, or a list of hosts is not sound.
    """
    notes: list[Note] = []
    kinds: dict[str, None] = {}
    switches: dict[str, str] = {}
    own: dict[str, tuple[str, ...]] = {}
    below: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    sizes: tuple[int, ...] = ()
    lists = Lists()
    plugin = ""
    said, short = 0, dict[str, int]()
    for number, raw in enumerate(text_of(data).split("\n"), 1):
        text = raw.split("#")[0]
        said = int(counted[1]) if (counted := _SAID.match(raw.strip())) else said
        fields = {key.lower(): value for key, value in _PAIR.findall(text)}
        kind = next((kind for key, kind in _KINDS if key in fields), "")
        if "blocksizes" in fields:
            sizes = _sizes(fields["blocksizes"])
        if "blocksize" in fields:  # which scontrol shows on each line
            sizes = tuple(sorted({*sizes, *_sizes(fields["blocksize"])}))
        if named := _PLUGIN.search(text):
            plugin = named[1].lower()
            continue
        if "aggregatedblock" in fields:  # which scontrol adds
            continue
        if not kind:
            if text.strip() and "blocksizes" not in fields:
                what = message("not understood, and left out: {name}", name=text.strip()[:80])
                notes.append(Note(number, what))
            continue
        kinds[kind] = None
        for name in lists.read(fields[f"{'switch' if kind == 'tree' else kind}name"], number):
            if name in switches:
                notes.append(Note(number, message(TWICE, name=name)))
                continue
            switches[name], lines[name] = name, number
            below[name] = lists.read(_none(fields.get("switches", "")), number)
            shown = "level" in fields and below[name]  # scontrol repeats all hosts further up
            own[name] = () if shown else lists.read(_none(fields.get("nodes", "")), number)
            if own[name] and (text.rstrip().endswith(",") or said > len(own[name])):
                short[name] = said
        said = 0
    if not switches:
        raise RoundelayError("no SwitchName, BlockName or RingName; expected a topology.conf of "
                             "Slurm, such as SwitchName=s0 Nodes=node[0-5]")  # fmt: skip
    if len(kinds) > 1:
        notes.append(Note(0, message("more than one kind: {kinds}", kinds=", ".join(kinds))))
    cables = tuple(Cable(name, low) for name, lows in below.items() for low in lows)
    unlisted = tuple(dict.fromkeys(c.b for c in cables if c.b not in switches))
    return Fabric("slurm", next(iter(kinds)), switches, own, cables, block_sizes=sizes,
                  unlisted=unlisted, lines=lines, notes=tuple(notes), kinds=tuple(kinds),
                  plugin=plugin, short=short)  # fmt: skip


def _none(text: str) -> str:
    return "" if text == "(null)" else text


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(",") if n.isdecimal() and len(n) < 10)
