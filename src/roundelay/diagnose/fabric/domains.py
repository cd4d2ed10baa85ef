"""What Volcano's HyperNodes say, and what of them cannot be."""

from __future__ import annotations

from collections import Counter

from ...formats.hypernode import HyperNodes, read_hypernodes
from ..finding import Evidence, Figures, Finding, names, tell


def domain_findings(file: str, data: bytes) -> list[Finding]:
    """Tiers, members that are missing, and jobs that ask for a tier that is not there.

    Raises:
        RoundelayError: there is no HyperNode and no job.
    """
    found = read_hypernodes(data)
    told = [_missing(file, found), _tiers(file, found), _asked(file, found), _shown(file, found)]
    return [finding for finding in told if finding is not None]


def _missing(file: str, found: HyperNodes) -> Finding | None:
    known = {domain.name for domain in found.domains}
    lost = [(low, d) for d in found.domains for low in d.below if low not in known]
    if not lost:
        return None
    figures: Figures = {"who": names(list(dict.fromkeys(low for low, _ in lost)), 8),
                        "above": lost[0][1].name}  # fmt: skip
    return tell(
        "incomplete", file, figures,
        ["HyperNodes that are named as members and do not stand in the file: {who} (in {above}). "
         "If the cluster lacks them too, Volcano does not see the nodes below them."],
        "Give the whole list: kubectl get hypernodes -o yaml.",
        tuple(Evidence(file, d.line, f"{d.name}: {low}") for low, d in lost[:4]), fault=True,
        confidence=0.8, area="machine",
    )  # fmt: skip


def _tiers(file: str, found: HyperNodes) -> Finding | None:
    """Members that are not of a lower tier than what they are in."""
    tiers = {domain.name: domain.tier for domain in found.domains}
    odd = [(d, low) for d in found.domains for low in d.below if d.tier is not None
           and (below := tiers.get(low)) is not None and below >= d.tier]  # fmt: skip
    if not odd:
        return None
    told = [f"{low} ({tiers[low]}) < {d.name} ({d.tier})" for d, low in odd]
    return tell(
        "tiers_wrong", file, {"told": names(told, 4)},
        ["A HyperNode must be of a lower tier than the one it belongs to, and these are not: "
         "{told}."],
        "Number tiers from the nearest (1) upwards.",
        tuple(Evidence(file, d.line, d.name) for d, _ in odd[:4]), fault=True, confidence=0.9,
        area="machine",
    )  # fmt: skip


def _asked(file: str, found: HyperNodes) -> Finding | None:
    if not found.jobs:
        return None
    job = found.jobs[0]
    least = min((d.tier for d in found.domains if d.tier is not None), default=None)
    never = least is not None and job.tier is not None and job.tier < least
    figures: Figures = {"name": job.name, "tier": job.tier or 0, "least": least or 0,
                        "mode": job.mode}  # fmt: skip
    reason = ["Job {name} must lie within one HyperNode of tier {tier} or lower; until one has "
              "room, it waits." if job.mode == "hard" and job.tier is not None else
              "Job {name} prefers near nodes, and spreads if there is no room."]  # fmt: skip
    if never:
        reason.append("There is none so low: the lowest tier of the file is {least}.")
    return tell(
        "tier_asked", file, figures, reason,
        "Compare the nodes of such a HyperNode with what the job asks for.",
        (Evidence(file, job.line, job.name),), fault=never, confidence=0.85, area="machine",
    )  # fmt: skip


def _shown(file: str, found: HyperNodes) -> Finding | None:
    if not found.domains:
        return None
    tiers = Counter(d.tier for d in found.domains)
    told = [f"{tier if tier is not None else '?'}: {count}" for tier, count in
            sorted(tiers.items(), key=lambda item: (item[0] is None, item[0] or 0))]  # fmt: skip
    nodes = {node for d in found.domains for node in d.nodes}
    figures: Figures = {"count": len(found.domains), "tiers": ", ".join(told), "nodes": len(nodes),
                        "patterns": sum(d.patterns for d in found.domains)}  # fmt: skip
    reason = ["{count:HyperNode|HyperNodes} of Volcano (how many by tier: {tiers}), with "
              "{nodes:node|nodes} by name."]  # fmt: skip
    if figures["patterns"]:
        reason.append("Members by pattern or label ({patterns}) are not counted.")
    return tell(
        "hypernodes", file, figures, reason,
        "Ask for the lowest tier that has room for the whole job (networkTopology: mode hard, "
        "highestTierAllowed).",
        (Evidence(file, found.domains[0].line, found.domains[0].name),), confidence=0.9,
        area="machine",
    )  # fmt: skip
