"""What `numactl -H` shows of a host's memory."""

from __future__ import annotations

from typing import Final

from ....formats.numactl import read_numactl
from ...finding import Evidence, Figures, Finding, names, tell

OWN: Final = 10
"""The distance of a node to itself."""


def numa_findings(file: str, data: bytes) -> list[Finding]:
    """Nodes, their size, and how far apart they are.

    Raises:
        RoundelayError: there are none.
    """
    nodes = read_numactl(data)
    run = [node for node in nodes if node.threads]
    bare = [node for node in nodes if not node.threads and node.size]
    empty = [node for node in run if node.size == 0]
    far = max((d for node in nodes for d in node.distances), default=OWN)
    figures: Figures = {
        "nodes": len(run), "threads": " / ".join(str(n) for n in sorted({n.threads for n in run})),
        "sizes": " / ".join(f"{s:.0f}" for s in sorted({round((n.size or 0) / 1024) for n in run})),
        "far": far / OWN, "bare": len(bare), "empty": names([str(n.number) for n in empty]),
    }  # fmt: skip
    reason = ["{nodes:NUMA node|NUMA nodes} with {threads} hardware threads and {sizes} GiB each."]
    if far > OWN:
        reason.append("The farthest memory counts {far} times as far as one's own.")
    if bare:
        reason.append("{bare:node has|nodes have} memory and no threads: that of cards or of "
                      "memory expanders.")  # fmt: skip
    if empty:
        reason.append("Without memory of its own: {empty}; what runs there reads all of it from "
                      "another node.")  # fmt: skip
    return [tell(
        "no_local_memory" if empty else "numa", file, figures, reason,
        "Populate the memory channels of every socket." if empty else
        "Bind each rank to the node of its card (numactl -N -m); nvidia-smi topo -m tells which.",
        tuple(Evidence(file, node.line, f"node {node.number}") for node in (empty or nodes)[:2]),
        fault=bool(empty), confidence=0.85, area="machine",
    )]  # fmt: skip
