"""What files of schedulers ask for: levels of Kueue, placements of workloads, lists of nodes."""

from __future__ import annotations

import re
from typing import Final

from ...errors import RoundelayError
from ...formats.hostlist import hosts
from ...formats.kueue import Kueue
from ...i18n import counted
from ..finding import Evidence, Figures, Finding, names, tell

HOST: Final = "kubernetes.io/hostname"
HOST_CARDS: Final = 16
"""Cards of a host, at most."""
NODELIST: Final = re.compile(r"SLURM_(?:JOB_)?NODELIST=(\S+)")


def kueue_findings(file: str, found: Kueue) -> list[Finding]:
    """The levels of each topology, and what each workload asks."""
    findings = [*_strange_levels(file, found), *_strange_topologies(file, found),
                *_too_many(file, found), *_short(file, found), *_lies(file, found)]  # fmt: skip
    for topology in found.topologies:
        figures: Figures = {"name": topology.name, "count": len(topology.labels),
                            "levels": ", ".join(topology.labels)}  # fmt: skip
        findings.append(tell(
            "levels", topology.name, figures,
            ["Topology {name} of Kueue has {count:level|levels}, the widest first: {levels}."],
            "Ask for the narrowest level that has room for the whole job.",
            (Evidence(file, topology.line, f"Topology {topology.name}"),), confidence=0.95,
            area="machine",
        ))  # fmt: skip
    for work in found.workloads:
        figures = {"kind": work.kind, "name": work.name, "pods": work.pods, "cards": work.cards,
                   "level": work.level, "how": work.how,
                   "slices": ", ".join(f"{counted(size, 'pod', 'pods')} within one {level}"
                                       for level, size in work.slices)}  # fmt: skip
        reason = ["{kind} {name} asks for {pods:pod|pods} of {cards:card|cards} each ({how})."
                  if work.cards else "{kind} {name} asks for {pods:pod|pods} ({how})."]  # fmt: skip
        reason.append({
            "required": "All of them must lie within one {level}; until one has room, the job "
                        "waits.",
            "slices": "In slices: each {slices}; until there is room for that, the job waits.",
            "preferred": "They lie within one {level} if there is room, else further apart.",
        }.get(work.how, "Where they lie is left open."))  # fmt: skip
        findings.append(tell(
            "placement_asked", work.name, figures, reason,
            "See that the level is one of the topology's, and wide enough for the pods.",
            (Evidence(file, work.line, work.level),), confidence=0.9, area="machine",
        ))  # fmt: skip
    return findings


def _short(file: str, found: Kueue) -> list[Finding]:
    """PodSets that count as admitted and have no domain, or too few, for their pods."""
    findings = []
    for own in found.assigned:
        placed = sum(count for _, count in own.domains)
        if own.slices or not own.pods or placed >= own.pods:
            continue
        figures: Figures = {"name": own.name, "pods": own.pods, "placed": placed}
        findings.append(tell(
            "assignment_short", own.name, figures,
            ["PodSet {name} has {pods:pod|pods}, and its topologyAssignment gives domains to "
             "{placed} of them.",
             *([] if own.domains else ["Its list of domains is empty."]),
             "Such an assignment is not sound: pods without a domain stay gated, though the "
             "workload counts as admitted. It is Kueue that writes it, not the job."],
            "See Kueue's log and version (an assignment of this kind is a fault of the controller "
            "rather than of the job), then evict the workload so that it is assigned anew.",
            (Evidence(file, own.line, f"PodSet {own.name}"),), fault=True, confidence=0.85,
            area="machine",
        ))  # fmt: skip
    return findings


def _lies(file: str, found: Kueue) -> list[Finding]:
    """Where sets of pods lie that have a place for each pod."""
    whole = [own for own in found.assigned if own.domains
             and sum(count for _, count in own.domains) >= own.pods]  # fmt: skip
    if not whole:
        return []
    told = []
    for own in whole:
        counts = [len({values[: i + 1] for values, _ in own.domains})
                  for i in range(len(own.levels))]  # fmt: skip
        spread = ", ".join(f"{level} {n}" for level, n in zip(own.levels, counts, strict=True))
        told.append(f"{own.name} ({counted(own.pods, 'pod', 'pods')}; {spread})")
    return [tell(
        "assigned", whole[0].workload or file, {"told": names(told, 6)},
        ["Kueue has placed these PodSets (in how many domains of each level): {told}."],
        "One domain of a level means that no pod of the set has to go beyond it.",
        tuple(Evidence(file, own.line, own.name) for own in whole[:4]), confidence=0.9,
        area="machine",
    )]  # fmt: skip


def _strange_levels(file: str, found: Kueue) -> list[Finding]:
    """Levels that no topology of the file has."""
    known = {label for topology in found.topologies for label in topology.labels}
    return [tell(
        "no_such_level", work.name,
        {"kind": work.kind, "name": work.name, "level": work.level, "levels": names(sorted(known))},
        ["{kind} {name} asks for {level}, which no topology of the file has (levels: {levels}): "
         "unless its flavour has another one, Kueue never admits it."],
        "Ask for one of the levels, letter by letter as it stands in the topology.",
        (Evidence(file, work.line, work.level),), fault=True, confidence=0.9, area="machine",
    ) for work in found.workloads if known and work.level and work.level not in known]  # fmt: skip


def _strange_topologies(file: str, found: Kueue) -> list[Finding]:
    """Topologies that flavours name and the file does not have, though it has others."""
    known = {topology.name for topology in found.topologies}
    return [tell(
        "no_such_topology", flavor.name,
        {"name": flavor.name, "topology": flavor.topology, "known": names(sorted(known))},
        ["ResourceFlavor {name} names the topology {topology}, and the file has only {known}: "
         "unless it is defined elsewhere, Kueue places nothing by topology on this flavour, and "
         "leaves its queue inactive."],
        "Write the name of the Topology object into topologyName.",
        (Evidence(file, flavor.line, flavor.topology),), fault=True, confidence=0.8, area="machine",
    ) for flavor in found.flavors if known and flavor.topology not in known]  # fmt: skip


def _too_many(file: str, found: Kueue) -> list[Finding]:
    """All pods of a workload within one host that no host has cards for."""
    return [tell(
        "host_too_small", work.name,
        {"kind": work.kind, "name": work.name, "pods": work.pods, "cards": work.cards,
         "all": work.pods * work.cards, "most": HOST_CARDS},
        ["{kind} {name} requires all of its {pods:pod|pods} of {cards:card|cards} each on one "
         "host: {all} cards, and hosts have {most} at most. It is never admitted."],
        "Require a wider level, such as the rack or block.",
        (Evidence(file, work.line, work.level),), fault=True, confidence=0.9, area="machine",
    ) for work in found.workloads if work.how == "required" and work.level == HOST
        and work.pods > 1 and work.pods * work.cards > HOST_CARDS]  # fmt: skip


def nodelist_findings(file: str, text: str) -> list[Finding]:
    """Lists of a job's nodes: how many, and whether they differ in order only."""
    lists: list[tuple[int, str, tuple[str, ...]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if found := NODELIST.search(line):
            try:
                lists.append((number, line.strip()[:200], hosts(found[1].strip("'\""))))
            except RoundelayError:
                continue
    if not lists:
        return []
    first = lists[0][2]
    alike = all(sorted(other) == sorted(first) for _, _, other in lists)
    turned = alike and any(other != first for _, _, other in lists)
    figures: Figures = {"lists": len(lists), "nodes": len(first), "first": names(first),
                        "last": names(lists[-1][2])}  # fmt: skip
    reason = ["A job of {nodes:node|nodes}: {first}."]
    if turned:
        reason = ["The {lists:list|lists} name the same {nodes:node|nodes} in another order: "
                  "{first}; "
                  "{last}.",
                  "Ranks go to nodes in the order of the list, so neighbours in one are not in "
                  "the other; SwitchAsNodeRank orders them by switch."]  # fmt: skip
    elif not alike:
        reason = ["The {lists:list|lists} name different nodes: {first}; {last}."]
    return [tell(
        "order_differs" if turned else "nodes", file, figures, reason,
        "Take the order in which neighbours lie on one switch; see it with scontrol show topology.",
        tuple(Evidence(file, number, line) for number, line, _ in lists[:4]), confidence=0.85,
        area="machine",
    )]  # fmt: skip
