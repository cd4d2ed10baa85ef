"""The text of hwloc's `lstopo`: NUMA nodes, bridges and devices, each under what it hangs on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ..errors import RoundelayError
from .machine import Card, Machine, Nic
from .pasted import pasted_lines

_LINE: Final = re.compile(r"^(\s*)([A-Z]\w{0,30})\b(.{0,200})$")
_NUMA: Final = re.compile(r"P#(\d{1,5})\b")
_BUS: Final = re.compile(r"\b((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b", re.I)
_NAME: Final = re.compile(r'"([\w.:/-]{1,60})"')
_CARD: Final = re.compile(r"\((?:3D|Display|ProcessingAccelerators?|CoProcessor)\)")
_OF_CARD: Final = re.compile(r"^(?:CoProc|GPU)\b")
MOST: Final = 512
"""Devices."""
NEAR: Final = 2
"""Steps below a bridge that two devices share, up to which there is one switch between them."""


@dataclass
class _Object:
    """A line of the text."""

    deep: int
    kind: str
    rest: str
    line: int
    above: tuple[_Object, ...]
    numa: int | None = None
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)


def read_lstopo(data: bytes) -> Machine:
    """The machine that a text shows. Which bridge is a switch's isn't told, so that ways are near.

    Raises:
        RoundelayError: no card and no network card is in it.
    """
    found = _objects(data)
    cards = [o for o in found if o.kind == "PCI" and (_CARD.search(o.rest) or any(
        _OF_CARD.match(kind) for kind in o.kinds))]  # fmt: skip
    nics = [o for o in found if o.kind == "PCI" and o not in cards
            and any(kind == "OpenFabrics" for kind in o.kinds)]  # fmt: skip
    if not cards and not nics:
        raise RoundelayError("no card in the text; expected that of lstopo with devices, such as "
                             "PCI 19:00.0 (3D) below HostBridge")  # fmt: skip
    ends = {f"GPU{i}": o for i, o in enumerate(cards[:MOST])}
    ends |= {f"NIC{i}": o for i, o in enumerate(nics[:MOST])}
    between = {}
    for a, one in ends.items():
        for b, other in ends.items():
            if a != b and (way := _way(one, other)):
                between[a, b] = way
    return Machine(
        "hwloc",
        tuple(Card(name, o.line, numa=_numa(o), device=int(name[3:]), bus=_bus(o))
              for name, o in ends.items() if name.startswith("GPU")),
        tuple(Nic(name, o.line, numa=_numa(o), bus=_bus(o),
                  device="/".join(n for n, kind in zip(o.names, o.kinds, strict=True)
                                  if kind == "OpenFabrics"))
              for name, o in ends.items() if name.startswith("NIC")),
        between, links_shown=False,
    )  # fmt: skip


def _objects(data: bytes) -> list[_Object]:
    found: list[_Object] = []
    path: list[_Object] = []
    for number, line in pasted_lines(data):
        head = _LINE.match(line)
        if head is None:
            continue
        deep = len(head[1].expandtabs())
        path = [o for o in path if o.deep < deep][:64]
        one = _Object(deep, head[2], head[3], number, tuple(path))
        if one.kind == "NUMANode" and (numa := _NUMA.search(one.rest)):
            one.numa = int(numa[1])
            if path and path[-1].numa is None:  # since hwloc 2 memory hangs beside what it serves
                path[-1].numa = one.numa
        if path and path[-1].kind == "PCI" and (name := _NAME.search(one.rest)):
            path[-1].names.append(name[1])
            path[-1].kinds.append(one.kind)
        path.append(one)
        if one.kind == "PCI" and len(found) < 2 * MOST:
            found.append(one)
    return found


def _numa(device: _Object) -> int | None:
    return next((o.numa for o in reversed(device.above) if o.numa is not None), None)


def _bus(device: _Object) -> str:
    found = _BUS.search(device.rest)
    return found[1].lower() if found else ""


def _way(a: _Object, b: _Object) -> str:
    """The class of the way between two devices; "" where the text does not tell."""
    shared = [one for one in a.above if any(one is other for other in b.above)]
    if not shared:
        return ""
    last = shared[-1]
    if last.kind == "PCIBridge":
        steps = max(len(o.above) - len(shared) for o in (a, b))
        return "PIX" if steps <= NEAR else "PXB"
    if any(one.kind == "HostBridge" for one in shared):
        return "PHB"
    numas = _numa(a), _numa(b)
    if None not in numas:
        return "NODE" if numas[0] == numas[1] else "SYS"
    return "NODE" if any(one.kind in ("Package", "Socket") for one in shared) else ""
