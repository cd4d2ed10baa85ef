"""A machine as text: hosts, NUMA nodes, cards with their links, and network cards."""

from __future__ import annotations

from collections.abc import Iterator

from ...formats.machine import Card, Machine, Nic
from ...i18n import Translate, counted, message
from ...show.columns import pad, width


def picture(machine: Machine, translate: Translate) -> str:
    """The tree of what belongs where, then the ways between all of them as a table."""
    lines = list(_tree(machine, translate))
    ends: tuple[Card | Nic, ...] = (*machine.cards, *machine.nics)
    if machine.between and len(ends) <= 64:
        lines += ["", *_ways(machine, ends)]
    return "\n".join(lines)


def _tree(machine: Machine, translate: Translate) -> Iterator[str]:
    ends: tuple[Card | Nic, ...] = (*machine.cards, *machine.nics)
    hosts = sorted({end.host for end in ends})
    for host in hosts:
        if len(hosts) > 1:
            yield message("host {number}", number=host).tell(translate)
        own = [end for end in ends if end.host == host]
        for numa in sorted({end.numa for end in own}, key=lambda n: (n is None, n)):
            if numa is None:
                yield "  " + message("NUMA node not known").tell(translate)
            else:
                yield f"  NUMA {numa}"
            for end in own:
                if end.numa == numa:
                    text = _card(machine, end) if isinstance(end, Card) else _nic(end)
                    yield f"    {text}"
    for bus, line in machine.unknown:
        what = message("{bus} (line {line}): a device whose kind the file does not tell", bus=bus,
                       line=line)  # fmt: skip
        yield "  " + what.tell(translate)


def _card(machine: Machine, card: Card) -> str:
    parts = [card.name, card.model, card.bus]
    if card.links:
        kind = "xGMI" if card.kind == "xgmi" else "NVLink"
        ends = "NVSwitch" if "switch" in card.links else counted(len(card.links), "other", "others")
        parts.append(f"{kind} x{card.link_count} -> {ends}")
    near = machine.nearest(card)
    if near:
        way, nics = near
        shown = ", ".join(nic.name for nic in nics[:4]) + (" +" if len(nics) > 4 else "")
        parts.append(f"{way} -> {shown}")
    return "  ".join(filter(None, parts))


def _nic(nic: Nic) -> str:
    rates = " + ".join(f"{rate:g} GB/s" for rate in nic.ports)
    return "  ".join(filter(None, [nic.name, nic.device, nic.bus, rates]))


def _ways(machine: Machine, ends: tuple[Card | Nic, ...]) -> Iterator[str]:
    wide = max(4, *(width(end.name) for end in ends))
    yield "  ".join([" " * wide, *(pad(end.name, wide) for end in ends)]).rstrip()
    for a in ends:
        cells = ["X" if a is b else machine.way(a, b) or "?" for b in ends]
        yield "  ".join([pad(a.name, wide), *(pad(cell, wide) for cell in cells)]).rstrip()
