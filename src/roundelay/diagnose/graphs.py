"""What NCCL's graph file says."""

from __future__ import annotations

from ..formats.nccl_graph import PATTERNS, Graph, Graphs
from .finding import Evidence, Figures, Finding, tell


def graph_findings(file: str, found: Graphs) -> list[Finding]:
    """One finding: which graphs there are."""
    parts = [_told(graph) for graph in found.graphs]
    figures: Figures = {"graphs": len(found.graphs), "parts": "; ".join(parts)}
    slow = [g for g in found.graphs if 0 < g.rate_inside < 1]
    reason = ["This is a graph file, what NCCL has searched out, and no topology: {parts} (inside, "
              "then between nodes).",
              "Rates are of one channel, and NCCL doubles the channels afterwards."]  # fmt: skip
    if slow:
        reason.append("A channel below 1 GB/s means that the search has found no sound way: look "
                      "for a card without links, or a virtual figure.")  # fmt: skip
    return [tell(
        "graphs", f"{len(found.graphs)} graphs", figures, reason,
        "For what is connected how, dump the topology: NCCL_TOPO_DUMP_FILE.",
        tuple(Evidence(file, g.line, f"graph id {g.id}") for g in found.graphs[:4]),
        fault=bool(slow), confidence=0.95, area="machine",
    )]  # fmt: skip


def _told(graph: Graph) -> str:
    pattern = PATTERNS.get(graph.pattern, "?")
    head = f"{graph.kind} (id {graph.id}, pattern {graph.pattern}: {pattern})"
    inside = f"{len(graph.channels)} channels of {graph.rate_inside:g} GB/s by {graph.way_inside}"
    return f"{head}: {inside}, {graph.rate_between:g} GB/s by {graph.way_between}"
