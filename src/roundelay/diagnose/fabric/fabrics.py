"""What files about switches say: levels, hosts, and how much narrower it gets above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from ...formats.fabric import Fabric
from ...formats.hostlist import compressed
from ..finding import Evidence, Figures, Finding, names, numbers, tell
from .narrow_links import narrow_findings
from .refused import refused_findings

LISTED: Final = 6
"""Blocks and domains that are named, and of each the first hosts:"""
MOST: Final = 256


def fabric_findings(file: str, fabric: Fabric) -> list[Finding]:
    """How the hosts hang together; and what is missing."""
    found = [*refused_findings(file, fabric), *narrow_findings(file, fabric),
             _unlisted(file, fabric), _short(file, fabric), _no_tree(file, fabric),
             _no_common(file, fabric), _twice(file, fabric),
             _blocks(file, fabric) if fabric.kind == "block"
             else _levels(file, fabric) if fabric.all_hosts else None,
             _slower(file, fabric)]  # fmt: skip
    return [finding for finding in found if finding is not None]


def _cited(file: str, fabric: Fabric) -> tuple[Evidence, ...]:
    lines = list((fabric.lines or {}).items())[:2]
    return tuple(Evidence(file, line, fabric.switches.get(name, name)) for name, line in lines)


def _unlisted(file: str, fabric: Fabric) -> Finding | None:
    """Switches that cables lead to and that are not described."""
    if not fabric.unlisted or (fabric.source == "topograph" and fabric.all_hosts):
        return None  # a model of topograph names racks that are empty as well
    figures: Figures = {
        "unlisted": len(fabric.unlisted), "switches": len(fabric.switches),
        "examples": names(fabric.unlisted, 4),
    }  # fmt: skip
    reason = ["Links lead to {unlisted:switch|switches} that the file does not describe "
              "({examples}): it is cut off, or a part. What is said of the "
              "{switches:other|others} says nothing of those."]  # fmt: skip
    advice = "Save it again, whole: into a file, not from the terminal."
    if fabric.source == "slurm":
        reason = ["{unlisted:switch is|switches are} named below another and not described "
                  "({examples}): Slurm takes no child that it does not know."]  # fmt: skip
        advice = ("Give each a line of its own (SwitchName=... Nodes=...), or name only those that "
                  "there are; if this is a part of the file, give the whole.")  # fmt: skip
    return tell(
        "incomplete", file, figures, reason, advice, _cited(file, fabric), fault=True,
        confidence=0.9, area="machine",
    )  # fmt: skip


def _short(file: str, fabric: Fabric) -> Finding | None:
    """Blocks whose hosts are fewer than the file itself says, or whose list is cut off."""
    if not fabric.short:
        return None
    told = [f"{name}: {len(fabric.hosts[name])}" + (f" / {said}" if said else "")
            for name, said in fabric.short.items()]  # fmt: skip
    lines = fabric.lines or {}
    return tell(
        "incomplete", file, {"told": names(told, 4)},
        ["Hosts are missing from lists (hosts listed / said in the comment above): {told}. They "
         "end in a comma or have fewer than is said, so the file is cut off there, or the comment "
         "is older. Counted are only those that are listed."],
        "Give the whole file, or have it written anew.",
        tuple(Evidence(file, lines.get(name, 0), name) for name in list(fabric.short)[:2]),
        fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _no_tree(file: str, fabric: Fabric) -> Finding | None:
    """Switches that Slurm's tree hangs on several others (topology guide of Slurm)."""
    above = Counter(cable.b for cable in fabric.cables)
    several = [name for name, count in above.items() if count > 1]
    if (fabric.source, fabric.kind) != ("slurm", "tree") or not several:
        return None
    told = []
    for name in several:
        tops = dict.fromkeys(cable.a for cable in fabric.cables if cable.b == name)
        told.append(f"{name} ({names(list(tops), 4)})")
    return tell(
        "no_tree", file, {"told": names(told, 4)},
        ["Below more than one switch: {told}. So this is no tree, which is all that Slurm's "
         "topology/tree can plan with: switches that stand side by side it does not know."],
        "Leave each switch below one other. Where several stand side by side above it, as spines "
        "do, write one switch in place of them.",
        _cited(file, fabric), fault=True, confidence=0.7, area="machine",
    )  # fmt: skip


def _no_common(file: str, fabric: Fabric) -> Finding | None:
    """Switches of a tree that no other joins (Slurm's topology.conf(5))."""
    if (fabric.source, fabric.kind) != ("slurm", "tree") or fabric.unlisted:
        return None
    below = {cable.b for cable in fabric.cables}
    tops = [next((name for name in part if name not in below), part[0]) for part in fabric.parts]
    if len(tops) < 2:
        return None
    figures: Figures = {"count": len(tops), "tops": names(tops, 8)}
    return tell(
        "no_common_switch", file, figures,
        ["The tree is in {count:part|parts}, which no switch joins; their uppermost: {tops}. Slurm "
         "starts a job only on hosts that some switch joins, so none spans two parts, however "
         "many hosts are free."],
        "Add a switch above: SwitchName=top Switches=..., or leave it if jobs are to stay within "
        "a part.",
        _cited(file, fabric), fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _twice(file: str, fabric: Fabric) -> Finding | None:
    """Hosts on two switches of Slurm's files, each of which takes them for its own."""
    if fabric.source != "slurm" or fabric.kind not in ("tree", "block") or not fabric.twice:
        return None
    where = [name for name, own in fabric.hosts.items() if fabric.twice[0] in own]
    figures: Figures = {"hosts": names(fabric.twice, 8), "where": names(where, 4)}
    return tell(
        "host_twice", file, figures,
        ["Listed on more than one switch or block: {hosts} ({where}). Slurm reckons a host to one "
         "place, so where it lies is open."],
        "See with ibnetdiscover or the switch's own table on which it hangs, and take it off the "
        "other.",
        _cited(file, fabric), fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _blocks(file: str, fabric: Fabric) -> Finding:
    each = {len(own) for own in fabric.hosts.values()}
    total = len(fabric.all_hosts)
    never = [str(size) for size in fabric.block_sizes if size > total]
    figures: Figures = {
        "blocks": len(fabric.switches), "hosts": total, "never": names(never),
        "each": " / ".join(str(n) for n in sorted(each)),
        "sizes": numbers(fabric.block_sizes),
    }  # fmt: skip
    reason = ["{blocks:block|blocks} of {each:host|hosts}, {hosts:host|hosts} in all."]
    if fabric.block_sizes:
        reason.append("Block sizes for planning: {sizes}.")
        figures["base"] = base = min(fabric.block_sizes)
        more = {len(own) - base for own in fabric.hosts.values() if base < len(own) < 2 * base}
        if spare := sorted(more):
            figures["spare"] = " / ".join(map(str, spare))
            reason.append("So {base:host|hosts} of a block are planned with; those beyond "
                          "({spare} a block) are spare, and no fault.")  # fmt: skip
    if named := _named(fabric.hosts):
        figures["named"] = named
        reason.append("By block: {named}.")
    if never:
        reason.append("A size of {never} is never full: there are only {hosts:host|hosts}.")
    return tell("fabric", file, figures, reason,
                "Ask for numbers of hosts that fill whole blocks.", _cited(file, fabric),
                confidence=0.95, area="machine")  # fmt: skip


def _named(groups: Mapping[str, tuple[str, ...]]) -> str:
    """Hosts by what they share, as Slurm writes them; of many the first."""
    told = [f"{name}: {compressed(own[:MOST])}" for name, own in groups.items() if own]
    return names(told, LISTED)


def _levels(file: str, fabric: Fabric) -> Finding:
    levels = fabric.levels
    each = Counter(len(own) for own in fabric.hosts.values() if own)
    rates = Counter(cable.label for cable in fabric.host_cables if cable.label)
    alone = len(fabric.switches) == 1 and not fabric.unlisted
    figures: Figures = {
        "switches": len(fabric.switches), "hosts": len(fabric.all_hosts), "levels": len(levels),
        "by_level": " + ".join(map(str, levels)), "each": " / ".join(map(str, sorted(each))),
        "rates": ", ".join(f"{rate} ({count})" for rate, count in rates.most_common(4)) or "-",
        "left_out": len(fabric.left_out),
    }  # fmt: skip
    reason = ["{switches:switch|switches} in {levels:level|levels}, from the hosts up {by_level}; "
              "{hosts:host|hosts} "
              "or network cards, {each} on a switch."]  # fmt: skip
    if rates:
        reason.append("Their links: {rates}.")
    if fabric.bare:
        figures |= {"bare": len(fabric.bare), "which": names(fabric.bare, 4)}
        reason.append("{bare:host or card has|hosts or cards have} no record of their own "
                      "({which}): the list is cut off, or a part.")  # fmt: skip
    if fabric.block_sizes:
        figures["sizes"] = numbers(fabric.block_sizes)
        reason.append("Hosts that share NVLink make blocks; block sizes for planning: {sizes}.")
    if named := _named(fabric.domains):
        figures["named"] = named
        reason.append("By NVLink domain: {named}.")
    if fabric.loose:
        figures["loose"] = names(fabric.loose, 8)
        reason.append("On no switch: {loose}.")
    if fabric.left_out:
        reason.append("Aggregation nodes ({left_out}) are no hosts.")
    if fabric.unlisted and fabric.source == "topograph":
        figures |= {"idle": len(fabric.unlisted), "which": names(fabric.unlisted, 8)}
        reason.append("{idle:switch|switches} only named below another, with no nodes in the "
                      "file, and not counted: {which}.")  # fmt: skip
    reason += _narrow(fabric, figures)
    near = [own for own in fabric.hosts.values() if len(own) > 1]
    if near and not alone and len(near[0]) <= 16:
        figures["near"] = names([_together(own) for own in near], 6)
        reason.append("Nearest to one another, on one switch: {near}.")
    advice = "Put ranks that exchange most on one switch, then under one switch above it."
    if alone:
        reason.append("All hang on this one switch, so every pair is one switch apart, and none "
                      "shares a link between switches.")  # fmt: skip
        advice = "As to switches any order of the hosts is alike."
    return tell("fabric", file, figures, reason, advice, _cited(file, fabric), confidence=0.9,
                area="machine")  # fmt: skip


def _together(own: tuple[str, ...]) -> str:
    """Hosts of a switch; of many, short and with how many there are."""
    return " + ".join(own) if len(own) <= 8 else f"{compressed(own[:MOST])} ({len(own)})"


def _slower(file: str, fabric: Fabric) -> Finding | None:
    """Hosts whose links run slower than other ports of the network."""
    rates = {c.rate: c.label for c in fabric.host_cables if c.rate}
    others = {c.rate: c.label for c in (*fabric.cables, *fabric.left_cables) if c.rate}
    if not rates or not others or max(others) <= min(rates):
        return None
    figures: Figures = {
        "slow": rates[min(rates)], "slow_GBps": min(rates), "fast": others[max(others)],
        "fast_GBps": max(others), "count": sum(c.rate == min(rates) for c in fabric.host_cables),
    }  # fmt: skip
    return tell(
        "slower_links", file, figures,
        ["{count:link of a host runs|links of hosts run} at {slow} ({slow_GBps} GB/s one way), "
         "while the switches have "
         "links at {fast} ({fast_GBps} GB/s)."],
        "Expect at most the slower figure of these hosts; if their network cards are of the faster "
        "kind, look at cables and at the speed that is set (mlxlink).",
        _cited(file, fabric), confidence=0.8, area="machine",
    )  # fmt: skip


def _narrow(fabric: Fabric, figures: Figures) -> list[str]:
    """Links down and up of the switches that hosts hang on, where cables are counted."""
    if fabric.kind != "network":
        return []
    ends = Counter(end for cable in fabric.host_cables for end in (cable.a, cable.b))
    down = {name: ends[name] for name, own in fabric.hosts.items() if own}
    up: Counter[str] = Counter()
    for cable in fabric.cables:
        up.update({cable.a: 1, cable.b: 1})
    ways = Counter(f"{count}:{up[name]}" for name, count in down.items() if up[name])
    if not ways:
        return []
    pairs = Counter(frozenset((cable.a, cable.b)) for cable in fabric.cables)
    figures |= {"ways": ", ".join(f"{way} ({n})" for way, n in ways.most_common(4)),
                "parallel": max(pairs.values())}  # fmt: skip
    reason = ["Links down and up of the switches with hosts (how many): {ways}; between two "
              "switches run up to {parallel:link|links}."]  # fmt: skip
    worst = max(down[name] / up[name] for name in down if up[name])
    figures["worst"] = worst
    alike = len({cable.label for cable in (*fabric.host_cables, *fabric.cables)}) == 1
    if worst <= 1:
        reason.append("No switch has more links down than up.")
    elif alike and fabric.cables[0].label:
        figures["rate"] = fabric.cables[0].label
        reason.append("At the narrowest there are {worst:link|links} down for one up, all at "
                      "{rate}.")  # fmt: skip
    else:
        reason.append("At the narrowest there are {worst:link|links} down for one up, if their "
                      "rates are equal.")  # fmt: skip
    if len(down) == 1 and worst > 1 and not fabric.unlisted:
        reason.append("All hosts that are listed hang on one switch, so what they exchange does "
                      "not go up.")  # fmt: skip
    return reason
