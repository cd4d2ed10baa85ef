"""NCCL's and RCCL's topology XML: dumps, the partial files of clouds, and parts of either.

The attributes are those of NCCL 2.30, src/graph/xml.cc and topo.cc; RCCL adds xgmi and gcn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .machine import Card, Machine, Nic, Slow
from .note import Note
from .pasted import without_prefixes
from .pcie import kind_of, pcie_rate
from .xml import Element, Tree, read_xml

HIDDEN: Final = "fffffff:"
"""The start of an NVLink's target that a virtual machine hides: a switch, to NCCL."""
DOUBTFUL: Final = 0.5
"""A bridge below this share of what hangs under it shows a figure that is hardly real."""
CARDS: Final = 1024
_VIRTUAL: Final = re.compile(r"(?:veth|cali|br-|docker|virbr|tunl|flannel|cni|lxc|vxlan|tap)\w*")
"""Interfaces of containers and bridges: no network cards."""
_HOST_BRIDGE: Final = "0x0600"
_KNOWN: Final = frozenset(
    ("system", "cpu", "pci", "pcilink", "gpu", "nvlink", "xgmi", "c2c", "nic", "net")
)


@dataclass
class _Place:
    """An end in the tree: a card or a network card, and the elements above it."""

    end: Card | Nic
    above: tuple[Element, ...]
    cpu: Element | None


@dataclass
class _Found:
    places: list[_Place] = field(default_factory=list)
    unknown: list[tuple[str, int]] = field(default_factory=list)
    slow: dict[str, Slow] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    hosts: dict[str, int] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    numas: set[bool] = field(default_factory=set)
    unplaced: list[int] = field(default_factory=list)
    folded: list[int] = field(default_factory=list)
    numbered: bool = True


def read_nccl_topology(data: bytes) -> Machine:
    """The machine that a topology file describes.

    Raises:
        RoundelayError: it is no topology, or not XML within bounds.
    """
    return topology_of(read_xml(data))


def read_logged_topology(data: bytes) -> Machine:
    """The machine whose topology stands in a log, as `read_nccl_topology`.

    Raises:
        RoundelayError: see there.
    """
    return read_nccl_topology(without_prefixes(data))


def topology_of(tree: Tree) -> Machine:
    """The machine that elements describe; see `read_nccl_topology`."""
    names = {root.name for root in tree.roots}
    if not names & _KNOWN:
        raise RoundelayError(
            f"<{tree.roots[0].name[:40]}> at line {tree.roots[0].line}; expected NCCL's topology, "
            '<system version="1">; NCCL_TOPO_DUMP_FILE has it written'
        )
    found = _Found(notes=list(tree.notes), numbered=_numbered(tree.roots))
    for root in tree.roots:
        if root.name == "system" and root.attributes.get("version") not in ("1", "2"):
            version = root.attributes.get("version", "")
            found.notes.append(
                Note(root.line, message("version {version}; known are 1 and 2", version=version))
            )
        if root.name != "gpu":  # a part that was cut out
            _walk(root, (), None, found)
    return _machine(found, tree)


def _numbered(elements: Iterable[Element]) -> bool:
    """Whether a network card has a number; those without one are then merged into others."""
    left = list(elements)
    for element in left:
        if element.name == "net" and "dev" in element.attributes:
            return True
        left += element.children
    return False


def _walk(element: Element, above: tuple[Element, ...], cpu: Element | None, found: _Found) -> None:
    name = element.name
    if name not in _KNOWN:
        found.notes.append(Note(element.line, message("<{name}> is not known", name=name[:40])))
        return
    if name == "cpu":
        cpu, above = element, ()
    if name == "pci":
        _pci(element, above, cpu, found)
        above = (*above, element)
    if name == "gpu":
        found.unplaced.append(element.line)
    if name == "nic" and not (above and _handled(above[-1])):
        _nic(element, element, above, cpu, found)
    if name in ("system", "cpu", "pci"):
        for child in element.children:
            if name != "pci" or child.name != "gpu":
                _walk(child, above, cpu, found)


def _handled(pci: Element) -> bool:
    """Whether `_pci` has taken the network cards in it."""
    return all(child.name != "gpu" for child in pci.children)


def _pci(element: Element, above: tuple[Element, ...], cpu: Element | None, found: _Found) -> None:
    kind = kind_of(element.attributes.get("class", ""))
    inside = list(element.children)
    cards = [child for child in inside if child.name == "gpu"]
    nets = [child for child in inside if child.name == "nic"]
    if cards or (kind == "card" and not nets):
        for gpu in cards or [element]:
            _card(gpu, element, above, cpu, found)
    elif nets or kind == "nic":
        if nets and element.attributes.get("class", "").startswith(_HOST_BRIDGE):
            found.folded.append(element.line)
        for nic in nets or [element]:
            _nic(nic, element, above, cpu, found)
    elif not kind and not inside:
        found.unknown.append((element.attributes.get("busid", ""), element.line))
    if kind in ("card", "nic"):
        _doubt(element, above, found)


def _rate(pci: Element) -> float | None:
    at = pci.attributes
    return pcie_rate(at.get("link_speed", ""), at.get("link_width", ""))


def _doubt(end: Element, above: Iterable[Element], found: _Found) -> None:
    """Note the bridges that would hold back a device under them."""
    rate = _rate(end)
    for bridge in above:
        own, bus = _rate(bridge), bridge.attributes.get("busid", "")
        if rate and own is not None and own < DOUBTFUL * rate and bus not in found.slow:
            found.slow[bus] = Slow(bus, bridge.line, bridge.text(), own, rate)


def _where(cpu: Element | None, found: _Found) -> tuple[int, int | None]:
    """The host's number and the NUMA node."""
    if cpu is None:
        return 0, None
    host = cpu.attributes.get("host_hash", "")
    numa = cpu.number("numaid")
    number = found.hosts.setdefault(host, len(found.hosts))
    found.numas.add(numa is not None and numa >= 0)
    return number, None if numa is None or numa < 0 else int(numa)


def _card(
    gpu: Element, pci: Element, above: tuple[Element, ...], cpu: Element | None, found: _Found
) -> None:
    host, numa = _where(cpu, found)
    links: dict[str, int] = {}
    kind = "xgmi" if any(True for _ in gpu.named("xgmi")) else "nvlink"
    for link in (*gpu.named("nvlink"), *gpu.named("xgmi")):
        target = link.attributes.get("target", "")
        switch = target.startswith(HIDDEN) or link.attributes.get("tclass", "").startswith("0x0680")
        end = "switch" if switch else target.lower()
        links[end] = links.get(end, 0) + int(link.number("count", 1) or 0)
    gcn, sm = gpu.attributes.get("gcn", ""), gpu.attributes.get("sm", "")
    model = (gcn if gcn.startswith("gfx") else f"gfx{gcn}") if gcn else f"sm{sm}" if sm else ""
    part, rank, device = (_whole(gpu.number(name)) for name in ("mlopart", "rank", "dev"))
    number = sum(isinstance(place.end, Card) for place in found.places)
    card = Card(
        f"GPU{number if rank is None else rank}", gpu.line, host, numa, rank, device,
        pci.attributes.get("busid", "").lower(), None if part is None or part < 0 else part, links,
        kind, model, _rate(pci), sum(int(c.number("count", 1) or 0) for c in gpu.named("c2c")),
    )  # fmt: skip
    if not gpu.whole:
        found.cut.append(card.name)
    found.places.append(_Place(card, above, cpu))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _nic(
    nic: Element, pci: Element, above: tuple[Element, ...], cpu: Element | None, found: _Found
) -> None:
    nets = [net for net in nic.named("net") if "dev" in net.attributes or not found.numbered]
    virtual = [net for net in nets if _VIRTUAL.match(net.attributes.get("name", ""))]
    if virtual:
        what = message("{n:interface|interfaces} of containers or bridges: no network card; left "
                       "out", n=len(virtual))  # fmt: skip
        found.notes.append(Note(virtual[0].line, what))
        nets = [net for net in nets if net not in virtual]
        if not nets:
            return
    if not nic.whole and not nets:
        found.notes.append(Note(nic.line, message("a network card that is cut off; left out")))
        return
    host, numa = _where(cpu, found)
    number = sum(isinstance(place.end, Nic) for place in found.places)
    ports = []
    for net in nets:
        speed = net.number("speed", 0.0) or 0.0
        if speed <= 0:
            found.notes.append(
                Note(net.line, message("a network card without a speed; NCCL takes 10 Gb/s"))
            )
        ports.append((speed if speed > 0 else 10000.0) / 8000)
    end = Nic(
        f"NIC{number}", (nets[0] if nets else pci).line, host, numa,
        pci.attributes.get("busid", "").lower(),
        "/".join(net.attributes.get("name", "") for net in nets), tuple(ports), _rate(pci),
        _direct(nets), all((net.number("speed", 0.0) or 0.0) > 0 for net in nets),
    )  # fmt: skip
    found.places.append(_Place(end, above, cpu))


def _direct(nets: list[Element]) -> bool | None:
    said = {net.attributes["gdr"] for net in nets if "gdr" in net.attributes}
    return said != {"0"} if said else None


def _machine(found: _Found, tree: Tree) -> Machine:
    if len(found.places) > 4 * CARDS:
        raise RoundelayError(f"{len(found.places):,} devices; expected at most {4 * CARDS:,}")
    places = _unique(found)
    cards = tuple(place.end for place in places if isinstance(place.end, Card))
    nics = tuple(place.end for place in places if isinstance(place.end, Nic))
    between: dict[tuple[str, str], str] = {}
    for i, a in enumerate(places):
        for b in places[i + 1 :]:
            if way := _way(a, b):
                between[a.end.name, b.end.name] = between[b.end.name, a.end.name] = way
    return Machine(
        "nccl", cards, nics, between, slow=tuple(found.slow.values()),
        unknown=tuple(found.unknown), missing=tuple(found.cut), cut=tree.cut,
        notes=tuple(found.notes), unplaced=tuple(found.unplaced), folded=tuple(found.folded),
        numa_hidden=found.numas == {False},
    )  # fmt: skip


def _unique(found: _Found) -> list[_Place]:
    """The places; a name that comes again is told, and left out."""
    seen: dict[str, _Place] = {}
    cards = set[tuple[int, str, str]]()
    for place in found.places:
        end = place.end
        known = (end.host, end.bus, end.device) if isinstance(end, Nic) and end.bus else None
        if end.name in seen or known in cards:
            what = message("{name} stands there twice; the first one counts", name=place.end.name)
            found.notes.append(Note(place.end.line, what))
            continue
        cards |= {known} if known else set()
        seen[end.name] = place
    return list(seen.values())


def _way(a: _Place, b: _Place) -> str:
    """The class of the way between two devices, as NCCL names it; "" where it is not told."""
    if isinstance(a.end, Card) and isinstance(b.end, Card):
        if b.end.bus in a.end.links or ("switch" in a.end.links and "switch" in b.end.links):
            return "NVL"
        if a.end.bus == b.end.bus and a.end.host == b.end.host and a.end.bus:
            return "LOC"
    if a.end.host != b.end.host:
        return "NET"
    shared = sum(x is y for x, y in zip(a.above, b.above, strict=False))
    if not shared and (a.cpu is None or b.cpu is None):
        return ""
    if not shared:
        return "PHB" if a.cpu is b.cpu or a.end.numa == b.end.numa else "SYS"
    bridges = [*a.above[shared - 1 :], *b.above[shared:]]
    return "PIX" if len(_flat(bridges)) <= 1 else "PXB"


def _flat(bridges: list[Element]) -> set[int]:
    """The switches on a way; the two levels of one Broadcom switch count as one, as to NCCL."""
    top = bridges[0]
    whole = _broadcom(top)
    return {id(top) if whole and _broadcom(bridge) else id(bridge) for bridge in bridges}


def _broadcom(bridge: Element) -> bool:
    at = bridge.attributes
    return at.get("vendor") == "0x1000" and at.get("device") in ("0xc010", "0xc030")
