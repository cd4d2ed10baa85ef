"""What files of schedulers ask for: levels of Kueue, placements of workloads, lists of nodes."""

from __future__ import annotations

import re
from typing import Final

from ..errors import RoundelayError
from ..formats.hostlist import hosts
from ..formats.kueue import Kueue
from ..i18n import counted
from .finding import Evidence, Figures, Finding, tell
from .seen import names

NODELIST: Final = re.compile(r"SLURM_(?:JOB_)?NODELIST=(\S+)")


def kueue_findings(file: str, found: Kueue) -> list[Finding]:
    """The levels of each topology, and what each workload asks."""
    findings = []
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
