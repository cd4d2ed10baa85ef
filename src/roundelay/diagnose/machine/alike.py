"""Machines side by side in one text that ought to be alike, and where they differ."""

from __future__ import annotations

from collections.abc import Sequence

from ...formats.machine import Machine
from ..finding import Evidence, Figures, Finding, names, tell


def alike_findings(machines: Sequence[tuple[str, Machine]]) -> list[Finding]:
    """Pairs of cards that are connected otherwise in another machine of the same names."""
    first = machines[0][1] if machines else None
    if first is None or len(machines) < 2:
        return []
    own = [card.name for card in first.cards]
    same = [(name, m) for name, m in machines if [c.name for c in m.cards] == own
            and m.links_shown == first.links_shown and not m.missing]  # fmt: skip
    for name, machine in same[1:]:
        odd = [(a, b) for i, a in enumerate(own) for b in own[i + 1 :]
               if _way(first, a, b) != _way(machine, a, b)]  # fmt: skip
        if odd:
            return [_differ(machines[0][0], name, first, machine, odd)]
    return []


def _way(machine: Machine, a: str, b: str) -> str:
    """The class of the way, with the number of links where they lead to the other card."""
    way = machine.between.get((a, b), "?")
    if way != "NVL":
        return way
    card = next(card for card in machine.cards if card.name == a)
    count = card.links.get(b) or card.links.get("switch")
    return f"NV{count}" if count else way


def _differ(
    one: str, other: str, first: Machine, second: Machine, odd: Sequence[tuple[str, str]]
) -> Finding:
    told = [f"{a}-{b}: {_way(first, a, b)} / {_way(second, a, b)}" for a, b in odd]
    linked = [sum(_way(m, a, b).startswith("NV") for a, b in odd) for m in (first, second)]
    lost = linked[0] != linked[1]
    figures: Figures = {"count": len(odd), "told": names(told, 8), "one": one, "other": other}
    reason = ["The machines of the tables are not alike ({one} / {other}): {told}."]
    if lost:
        reason.append("One has links where the other has none: a job over both goes at the rate "
                      "of the poorer, unless that table is of PCIe alone (topo -mp).")  # fmt: skip
    line = first.cards[0].line, second.cards[0].line
    return tell(
        "hosts_differ", one, figures, reason,
        "If they are of one model, look at the poorer one: nvidia-smi nvlink -s, bridges, the "
        "fabric manager; else give each its own rings.",
        (Evidence(one, line[0], own_row(first)), Evidence(other, line[1], own_row(second))),
        fault=lost, confidence=0.75, area="machine",
    )  # fmt: skip


def own_row(machine: Machine) -> str:
    """The ways of the first card, in short."""
    card = machine.cards[0].name
    return " ".join([card, *(_way(machine, card, c.name) for c in machine.cards[1:9])])
