"""What traces say of time: where it goes on each rank, who is late, and what that costs."""

from .averaged import averaged_findings
from .findings import time_findings
from .graphs import gathered_findings, graph_time_findings
from .inspected import inspected_findings

__all__ = [
    "averaged_findings",
    "gathered_findings",
    "graph_time_findings",
    "inspected_findings",
    "time_findings",
]
