"""What is left to say of a rate that no other rule explains."""

from __future__ import annotations

import re
from typing import Final

from ...finding import Figures, Finding
from ..cards import instance_of
from ..case import Case, found
from .beside_model import LITTLE
from .rates import SOUND
from .said import FAR
from .switches import ASSUMED

GOOD: Final = 0.87
"""Of the line of all network cards: less is not all that they carry."""
ASSUMED_LEAST: Final = 25.0
"""GB/s of a network card that is not told, at least where such cards are."""
GRACE: Final = re.compile(r"\bGH200|Grace Hopper", re.I)
PEER_MEMORY: Final = ("peermem", "peer_mem", "gpudirect", "gdr")
OFF: Final = (" not ", "n't", "without", " no ", "disable", " off", "missing")
"""In what somebody writes of GPUDirect RDMA that is not there."""


def share_of_line(case: Case) -> Finding | None:
    """A measured rate beside the line rate of what carries it."""
    facts = case.facts
    rate = case.best_rate
    between = (case.nodes or 1) > 1
    line = case.node_rate if between else case.inside
    if case.facts.per_nic and case.nic and case.table is None:
        return _of_one(case, case.nic, case.facts.per_nic)
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
    if between and case.nics_assumed:
        figures["nic_Gbps"] = 8 * (case.nic or 0.0)
        reason.append(ASSUMED)
    if facts.expected and abs(facts.expected - 2 * line) < 0.03 * line:
        figures["expected_GBps"] = facts.expected
        reason.append("The {expected_GBps} GB/s that were expected add both directions, which "
                      "busbw does not.")  # fmt: skip
    if low and between and (case.nics or 1) > 1 and 0.8 < rate / (case.nic or line) <= 1.02:
        figures["nic_GBps"] = case.nic or line
        reason.append("It is about what one network card carries ({nic_GBps} GB/s one way): as "
                      "where one alone is used, or where the figure is that of one card."
                      )  # fmt: skip
    one = ASSUMED_LEAST if case.nics_assumed else case.nic or 0.0
    if low and between and (case.nics or 1) > 1 and rate < 0.8 * one:
        figures |= {"least_Gbps": 8 * one, "least_GBps": one}
        reason.append("It is less than one network card of {least_Gbps} Gb/s carries by itself "
                      "({least_GBps} GB/s one way).")  # fmt: skip
    if low and between:
        off = (facts.says(*PEER_MEMORY) and facts.says(*OFF)) or facts.lacks(*PEER_MEMORY)
        reason.append("GPUDirect RDMA is not there, as is said, so what cards exchange passes "
                      "through the host's memory, which can cost as much." if off else
                      "A third to two thirds of the line are usual where data pass through the "
                      "host's memory, without GPUDirect RDMA; less, where few network cards are "
                      "used or TCP sockets are.")  # fmt: skip
    way = next((t for t in facts.texts.values() if t in ("SYS", "NODE", "PHB")), "")
    if low and between and way:
        figures["way"] = way
        reason.append(FAR)
    cloud = instance_of(facts.machine) if facts.machine else None
    if low and between and cloud is not None and cloud.plugin:
        figures["plugin"] = cloud.plugin
        reason.append("On this machine NCCL needs the plugin {plugin}: without it the exchange "
                      "goes over TCP sockets, and the log says NET/Socket.")  # fmt: skip
    advice = "That is usual. Compare with one direction of the line."
    if between and not low and rate < GOOD * line:
        reason.append("0.9 of the line and more are reached at large sizes with GPUDirect RDMA; "
                      "with many nodes it is somewhat less. What is missing may be GPUDirect RDMA "
                      "(data pass through the host's memory), sizes below 1 GiB, or flows that "
                      "share a link.")  # fmt: skip
        if GRACE.search(facts.card or ""):
            reason.append("On Grace Hopper network cards hang on the processor, and older "
                          "versions of NCCL use GPUDirect RDMA there only if "
                          "NCCL_NET_GDR_LEVEL=SYS allows it; newer ones have "
                          "NCCL_NET_GDR_C2C=1.")  # fmt: skip
        advice = "See whether GDRDMA stands behind NET/IB in the log of NCCL_DEBUG=INFO."
    if low:
        advice = ("Run with NCCL_DEBUG=INFO and look at the ways that are taken: P2P inside a "
                  "node, each card's own network card and GDRDMA between nodes.")  # fmt: skip
    return found(
        case, "far_below" if low else "share_of_line", figures, reason, advice,
        case.cited("busbw", "measured", "peak", "nic", "nics", "inside"),
        fault=low and not (between and case.nics_assumed and rate > LITTLE * line),
        confidence=0.5,
    )  # fmt: skip


def _of_one(case: Case, nic: float, rate: float) -> Finding:
    """Beside one network card, where it is not said how many a node has."""
    figures: Figures = {"measured_GBps": rate, "nic_GBps": nic, "share": rate / nic,
                        "least": max(1, int(-(-rate // nic)))}  # fmt: skip
    reason = ["One network card carries {nic_GBps} GB/s one way; {measured_GBps} GB/s is {share} "
              "of it."]  # fmt: skip
    if not case.facts.per_nic:
        reason.append("How many of them a node has is not said.")
    if rate > 1.02 * nic:
        reason[0] = (
            "One network card carries {nic_GBps} GB/s one way; {measured_GBps} GB/s is more."
        )
        reason.append(
            "So {least:card carries|cards carry} it at the least, or a tree on two nodes sends the "
            "data once each way." if case.nodes == 2 else
            "So {least:card carries|cards carry} it at the least."
        )  # fmt: skip
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
