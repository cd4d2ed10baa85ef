"""What lists of a job's nodes say of the order in which ranks are put on them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..formats.nodelists import NodeList
from .finding import Evidence, Figures, Finding, tell
from .seen import names


def order_findings(file: str, lists: Sequence[NodeList]) -> list[Finding]:
    """Two lists beside one another, or what the order of one is."""
    first = lists[0]
    cited = tuple(Evidence(file, one.line, one.text[:300]) for one in lists[:4])
    other = next((one for one in lists[1:] if one.names != first.names), None)
    if other is None:
        return [_one(file, first, cited)]
    if set(other.names) != set(first.names):
        gone = [name for name in first.names if name not in set(other.names)]
        new = [name for name in other.names if name not in set(first.names)]
        return [tell(
            "other_nodes", file, {"gone": names(gone, 8) or "-", "new": names(new, 8) or "-"},
            ["The lists have other nodes: left out {gone}; new {new}."],
            "Compare runs on the same nodes, else differences may be theirs.", cited,
            confidence=0.95, area="machine",
        )]  # fmt: skip
    moved = [i for i, name in enumerate(first.names) if other.names[i] != name]
    figures: Figures = {
        "nodes": len(first.names), "moved": len(moved), "place": moved[0],
        "was": first.names[moved[0]], "now": other.names[moved[0]],
        "by_name": str(next((one.line for one in (first, other) if _by_name(one)), "-")),
    }  # fmt: skip
    reason = [
        "The lists have the same {nodes} nodes in another order: {moved} of them have "
        "another place, as number {place}, which is {was} in one and {now} in the other."
    ]
    if figures["by_name"] != "-":
        reason.append(
            "Line {by_name} is in the order of names, which says nothing of switches; the other "
            "follows the network (SwitchAsNodeRank or another node rank)."
        )
    return [tell(
        "node_order", file, figures, reason,
        "Ranks are put on nodes in this order. Take the one in which neighbours share a switch, "
        "and look at the topology file for which nodes do.", cited, confidence=0.9, area="machine",
    )]  # fmt: skip


def _one(file: str, one: NodeList, cited: tuple[Evidence, ...]) -> Finding:
    reason = ("Ranks are put on {nodes} nodes in the order of names: {first}." if _by_name(one) else
              "Ranks are put on {nodes} nodes, not in the order of names: {first}.")  # fmt: skip
    return tell(
        "node_order", file, {"nodes": len(one.names), "first": names(one.names, 8)}, [reason],
        "Give the list of another run, or the topology file (roundelay place), to see what that "
        "means.", cited, confidence=0.8, area="machine",
    )  # fmt: skip


def _by_name(one: NodeList) -> bool:
    """Whether names are in their natural order, numbers as numbers."""
    keys = [[(int(d), "") if d else (-1, w) for d, w in re.findall(r"(\d{1,18})|(\D+)", name)]
            for name in one.names]  # fmt: skip
    return keys == sorted(keys)
