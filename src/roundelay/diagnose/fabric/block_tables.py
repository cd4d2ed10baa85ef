"""What a table of blocks says: how large they are, and what fits into one."""

from __future__ import annotations

from typing import Final

from ...formats.slurm_blocks import BlockTable
from ..finding import Evidence, Figures, Finding, names, tell

LISTED: Final = 12


def block_table_findings(file: str, table: BlockTable) -> list[Finding]:
    """The sizes of blocks, and the largest job that lies within one."""
    nodes, most = sum(table.sizes.values()), max(table.sizes.values())
    largest = [name for name, size in table.sizes.items() if size == most]
    each = [f"{name} {size}" for name, size in table.sizes.items()]
    figures: Figures = {
        "blocks": len(each), "nodes": nodes, "each": names(each, LISTED), "most": most,
        "largest": names(largest, 4),
    }  # fmt: skip
    reason = ["{blocks:block|blocks} of {nodes:node|nodes} in all: {each}. A job that is to lie "
              "within one block can have {most:node|nodes} at most ({largest})."]  # fmt: skip
    if len({*table.sizes.values()}) > 1:
        reason.append("The blocks are not of one size.")
    if table.total not in (None, nodes):
        figures["total"] = table.total or 0
        reason.append("The table says {total:node|nodes} in all: it is a part.")
    if table.shortened:
        reason.append("Names of nodes are shortened (...), so which node lies where it does not "
                      "tell.")  # fmt: skip
    cited = [Evidence(file, table.lines[name], f"{name} {table.sizes[name]}") for name in largest]
    return [tell(
        "fabric", file, figures, reason,
        "Ask for no more hosts than a block has where NVLink between hosts counts; for the names "
        "of the nodes save the topology.conf itself.",
        tuple(cited[:2]), confidence=0.9, area="machine",
    )]  # fmt: skip
