"""What NCCL's graph file says."""

from __future__ import annotations

from ...formats.nccl_graph import PATTERNS, Graph, Graphs
from ...i18n import counted
from ..finding import Evidence, Figures, Finding, tell
from ..speed.possible import CARD, Odd, odd_findings


def graph_findings(file: str, found: Graphs) -> list[Finding]:
    """One finding: which graphs there are."""
    sound = [g for g in found.graphs if _rate(g) <= CARD]
    parts = [_told(graph) for graph in sound]
    figures: Figures = {"graphs": len(sound), "parts": "; ".join(parts) or "-"}
    slow = [g for g in found.graphs if 0 < g.rate_inside < 1]
    reason = ["This is a graph file, what NCCL has searched out, and no topology: {parts} (inside, "
              "then between nodes).",
              "Rates are of one channel, and NCCL doubles the channels afterwards."]  # fmt: skip
    if slow:
        reason.append("A channel below 1 GB/s means that the search has found no sound way: look "
                      "for a card without links, or a virtual figure.")  # fmt: skip
    odd = [Odd("high", f"graph id {g.id}", _rate(g), CARD, _at(file, g))
           for g in found.graphs if _rate(g) > CARD]  # fmt: skip
    return [*odd_findings(file, odd, "machine"), tell(
        "graphs", counted(len(found.graphs), "graph", "graphs"), figures, reason,
        "For what is connected how, dump the topology: NCCL_TOPO_DUMP_FILE.",
        tuple(_at(file, g) for g in found.graphs[:4]),
        fault=bool(slow), confidence=0.95, area="machine",
    )]  # fmt: skip


def _rate(graph: Graph) -> float:
    """GB/s of a channel, the higher one."""
    return max(graph.rate_inside, graph.rate_between)


def _at(file: str, graph: Graph) -> Evidence:
    return Evidence(file, graph.line, f"graph id {graph.id}")


def _told(graph: Graph) -> str:
    pattern = PATTERNS.get(graph.pattern, "?")
    head = f"{graph.kind} (id {graph.id}, pattern {graph.pattern}: {pattern})"
    channels = counted(len(graph.channels), "channel", "channels")
    inside = f"{channels} of {graph.rate_inside:g} GB/s by {graph.way_inside}"
    return f"{head}: {inside}, {graph.rate_between:g} GB/s by {graph.way_between}"
