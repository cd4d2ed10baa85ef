"""What is left to say of a rate that no other rule explains."""

from __future__ import annotations

from typing import Final

from ..case import Case, found
from ..finding import Figures, Finding
from .rates import SOUND

PEER_MEMORY: Final = ("peermem", "peer_mem", "gpudirect", "gdr")
OFF: Final = (" not ", "n't", "without", " no ", "disable", " off", "missing")
"""In what somebody writes of GPUDirect RDMA that is not there."""


def share_of_line(case: Case) -> Finding | None:
    """A measured rate beside the line rate of what carries it."""
    facts = case.facts
    rate = facts.peak or facts.measured or max(facts.busbw.values(), default=None)
    between = (case.nodes or 1) > 1
    line = case.node_rate if between else case.inside
    if case.table is not None or not rate or not line:
        return None
    figures: Figures = {"measured_GBps": rate, "line_GBps": line, "share": rate / line}
    carrier = ("The network cards of a node carry {line_GBps} GB/s one way; {measured_GBps} GB/s "
               "is {share} of it.")  # fmt: skip
    if not between:
        carrier = ("The links of a card carry {line_GBps} GB/s one way; {measured_GBps} GB/s is "
                   "{share} of it.")  # fmt: skip
    low = rate < SOUND * line
    reason = [carrier]
    if low and between:
        off = facts.says(*PEER_MEMORY) and facts.says(*OFF)
        reason.append("GPUDirect RDMA is not there, as is said, so what cards exchange passes "
                      "through the host's memory, which costs about that much." if off else
                      "A third to two thirds of the line are usual where data pass through the "
                      "host's memory, without GPUDirect RDMA.")  # fmt: skip
    advice = "That is usual. Compare with one direction of the line."
    if low:
        advice = ("Run with NCCL_DEBUG=INFO and look at the ways that are taken: P2P inside a "
                  "node, each card's own network card and GDRDMA between nodes.")  # fmt: skip
    return found(
        case, "far_below" if low else "share_of_line", figures, reason, advice,
        case.cited("busbw", "measured", "peak", "nic", "nics", "inside"), fault=low,
        confidence=0.5,
    )  # fmt: skip
