"""What is left to say of a rate that no other rule explains."""

from __future__ import annotations

from typing import Final

from ..cards import instance_of
from ..case import Case, found
from ..finding import Figures, Finding
from .rates import SOUND

PEER_MEMORY: Final = ("peermem", "peer_mem", "gpudirect", "gdr")
OFF: Final = (" not ", "n't", "without", " no ", "disable", " off", "missing")
"""In what somebody writes of GPUDirect RDMA that is not there."""


def share_of_line(case: Case) -> Finding | None:
    """A measured rate beside the line rate of what carries it."""
    facts = case.facts
    rate = case.best_rate
    between = (case.nodes or 1) > 1
    line = case.node_rate if between else case.inside
    if between and line is None and case.nic and rate and case.table is None:
        return _of_one(case, case.nic, rate)
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
        off = (facts.says(*PEER_MEMORY) and facts.says(*OFF)) or facts.lacks(*PEER_MEMORY)
        reason.append("GPUDirect RDMA is not there, as is said, so what cards exchange passes "
                      "through the host's memory, which costs about that much." if off else
                      "A third to two thirds of the line are usual where data pass through the "
                      "host's memory, without GPUDirect RDMA.")  # fmt: skip
    one = instance_of(facts.machine) if facts.machine else None
    if low and between and one is not None and one.plugin:
        figures["plugin"] = one.plugin
        reason.append("On this machine NCCL needs the plugin {plugin}: without it the exchange "
                      "goes over TCP sockets, and the log says NET/Socket.")  # fmt: skip
    advice = "That is usual. Compare with one direction of the line."
    if low:
        advice = ("Run with NCCL_DEBUG=INFO and look at the ways that are taken: P2P inside a "
                  "node, each card's own network card and GDRDMA between nodes.")  # fmt: skip
    return found(
        case, "far_below" if low else "share_of_line", figures, reason, advice,
        case.cited("busbw", "measured", "peak", "nic", "nics", "inside"), fault=low,
        confidence=0.5,
    )  # fmt: skip


def _of_one(case: Case, nic: float, rate: float) -> Finding:
    """Beside one network card, where it is not said how many a node has."""
    figures: Figures = {"measured_GBps": rate, "nic_GBps": nic, "share": rate / nic,
                        "least": max(1, int(-(-rate // nic)))}  # fmt: skip
    reason = ["One network card carries {nic_GBps} GB/s one way; {measured_GBps} GB/s is {share} "
              "of it. How many of them a node has is not said."]  # fmt: skip
    if rate > 1.02 * nic:
        reason.append("So {least:card carries|cards carry} it at the least, or a tree on two nodes "
                      "sends the data once each way.")  # fmt: skip
    low = rate < SOUND * nic
    if low:
        reason.append("A third to two thirds of the line are usual where data pass through the "
                      "host's memory, without GPUDirect RDMA; over TCP sockets it is less."
                      )  # fmt: skip
    return found(
        case, "far_below" if low else "share_of_card", figures, reason,
        "Tell how many network cards a node has (nics_per_node). NCCL_DEBUG=INFO names those that "
        "are used, and GDRDMA behind NET/IB tells of GPUDirect RDMA.",
        case.cited("busbw", "measured", "nic"), fault=low, confidence=0.5,
    )  # fmt: skip
