"""Bus bandwidths above what a wire carries, and why they are right."""

from __future__ import annotations

import re
from typing import Final

from ...finding import Figures, Finding
from ..case import Case, found
from .network import SLOW
from .rates import SOUND

USABLE_SHARE: Final = 0.82
"""Of NVLink's line rate one way what NCCL takes as usable, rounded up: 240 of 300 GB/s on Ampere,
370.8 of 450 on Hopper, 721.8 of 900 on Blackwell (NCCL 2.30, topo.h)."""

ASSUMED: Final = (
    "That they are of {nic_Gbps} Gb/s each is taken from machines that have such cards as a rule, "
    "and is not said here."
)
FULL: Final = 0.85
"""Of the network cards' rate, from which a ring is good."""
VARIES: Final = 0.8
"""Of the best: less is no noise."""
WITHOUT: Final = frozenset(("off", "ring", "tree", "no", "without", "disabled", "simple", "ll128"))
"""Words of a rate that was measured without the switch's adding."""


def adds_in_switch(case: Case) -> Finding | None:
    """NVLS: the switch adds, and busbw is no wire rate."""
    facts, line, n = case.facts, case.inside, case.ranks
    if line is None or not n or n < 3 or (case.nodes or 1) > 1 or case.collective != "all_reduce":
        return None
    if case.cluster is None or not case.cluster.inside.multicast:
        return None
    off = next((rate for name, rate in facts.busbw.items() if WITHOUT & set(name.split("_"))), None)
    on = max((rate for name, rate in facts.busbw.items() if not WITHOUT & set(name.split("_"))),
             default=0.0)  # fmt: skip
    usable = facts.usable or USABLE_SHARE * line
    if on <= usable and off is None:
        return None
    wire = on * (n + 1) / (2 * (n - 1))
    figures: Figures = {
        "busbw_GBps": on, "wire_GBps": wire, "line_GBps": line, "share": wire / line,
        "usable_GBps": usable,
    }  # fmt: skip
    reason = [
        "busbw is no wire rate where the NVSwitch adds (NVLS): of S bytes a card sends S (n + 1) / "
        "n, not 2 S (n - 1) / n.",
        "So a busbw of {busbw_GBps} GB/s is {wire_GBps} GB/s on the wire, {share} of the line's "
        "{line_GBps} GB/s one way.",
    ]
    if off is not None:
        figures |= {"busbw_off_GBps": off, "off_share": off / line}
        reason.append("Without it the ring's {busbw_off_GBps} GB/s is a wire rate, {off_share}.")
    return found(
        case, "adds_in_switch", figures, reason,
        "That figure shows no fault. To see a wire rate run with NCCL_ALGO=Ring, or all_gather "
        "with NCCL_NVLS_ENABLE=0.",
        case.cited("busbw", "algbw", "inside", "usable", "link_usable", "expected"),
        confidence=0.85,
    )  # fmt: skip


def tree_on_two_nodes(case: Case) -> Finding | None:
    """Two nodes: a tree sends the data once each way, so busbw may pass the network's rate."""
    rate, n = case.node_rate, case.ranks
    if case.nodes != 2 or rate is None or (n or 0) < 3 or case.collective != "all_reduce":
        return None
    n = n or 3
    factor = 2 * (n - 1) / n
    seen = [*case.facts.busbw.values(), *case.facts.by_version.values()]
    seen += [number for number, unit in case.facts.rates_in_texts() if unit == "GB/s"]
    best = max(seen, default=0.0)
    ahead = any("tree" in name and re.search(r"\b(?:higher|above|more|better|faster)\b", text)
                for name, text in case.facts.texts.items())  # fmt: skip
    if (best < rate and not ahead) or case.nics_assumed:
        return None
    figures: Figures = {
        "busbw_GBps": best, "most_algbw_GBps": rate, "factor": factor, "ranks": n,
        "most_busbw_GBps": rate * factor,
    }  # fmt: skip
    reason = [
        "Between two nodes NCCL's trees (Tree, NVLSTree) send the data once each way, so the "
        "network cards of a node bound algbw, not busbw: algbw <= {most_algbw_GBps} GB/s.",
        "With {ranks:rank|ranks} busbw = {factor} algbw <= {most_busbw_GBps} GB/s.",
    ]
    reason += _ring_and_trees(case, rate, figures)
    return found(
        case, "tree_on_two_nodes", figures, reason,
        "To measure the network cards use a ring: with NCCL_ALGO=Ring busbw is at most "
        "{most_algbw_GBps} GB/s here.",
        case.cited("texts", "busbw", "by_version", "nic", "nics"),
        fault=best > 1.02 * rate * factor, confidence=0.85,
    )  # fmt: skip


def _ring_and_trees(case: Case, rate: float, figures: Figures) -> list[str]:
    """The ring's rate beside the network cards', and trees that differ from run to run."""
    labels = [(re.split(r"[^a-z]+", name), gbps) for name, gbps in case.facts.busbw.items()]
    told = list[str]()
    ring = max((gbps for words, gbps in labels if "ring" in words), default=0.0)
    if 0 < ring <= 1.02 * rate:
        figures |= {"ring_GBps": ring, "ring_share": ring / rate}
        told.append("The ring's {ring_GBps} GB/s is {ring_share} of the network cards' rate: that "
                    "is good." if ring >= FULL * rate else
                    "The ring's {ring_GBps} GB/s is {ring_share} of the network cards' rate, and "
                    "it alone measures them: 0.9 and more are reached with GPUDirect RDMA (GDRDMA "
                    "behind NET/IB in the log) and each card's own network card.")  # fmt: skip
    trees = [gbps for words, gbps in labels if "tree" in words]
    if len(trees) > 1 and min(trees) < VARIES * max(trees):
        figures |= {"least_GBps": min(trees), "most_GBps": max(trees)}
        told.append("Trees have {least_GBps} to {most_GBps} GB/s. The higher is no error; what "
                    "makes the lower is not the line rate, but something that varies in their "
                    "way: GPUDirect RDMA, the protocol, or which network card a flow takes."
                    )  # fmt: skip
    return told


def rings_between(case: Case) -> Finding | None:
    """From three nodes on the network cards bound busbw."""
    series, rate = case.facts.by_nodes, case.node_rate
    nodes = min((count for count in series if count > 2), default=None)
    if rate is None or nodes is None or len(series) < 2:
        return None
    later = sorted(count for count in series if count > nodes)
    falls = bool(later) and series[later[-1]] < SLOW * series[nodes]
    low = (series[nodes] < SOUND * rate and not case.nics_assumed) or falls
    figures: Figures = {
        "nodes": nodes, "busbw_GBps": series[nodes], "node_rate_GBps": rate,
        "share": series[nodes] / rate,
    }  # fmt: skip
    reason = ["From three nodes on NCCL's rings use all network cards of a node, so busbw is at "
              "most {node_rate_GBps} GB/s.",
              "{busbw_GBps} GB/s on {nodes:node|nodes} is {share} of the line."]  # fmt: skip
    if case.nics_assumed:
        figures["nic_Gbps"] = 8 * (case.nic or 0.0)
        reason.append(ASSUMED)
    if 2 in series:
        figures["two_nodes_busbw_GBps"] = series[2]
        reason.append("Two nodes may show more, here {two_nodes_busbw_GBps} GB/s, for a tree "
                      "(NVLSTree) sends the data once each way.")  # fmt: skip
    if falls:
        figures |= {"most_nodes": later[-1], "later_GBps": series[later[-1]],
                    "later_share": series[later[-1]] / rate}  # fmt: skip
        reason.append("With more nodes a ring should stay at one rate, but on {most_nodes} it is "
                      "{later_GBps} GB/s ({later_share}): flows that share a link, loss on RoCE, "
                      "an oversubscribed switch or one slow node do this."
                      )  # fmt: skip
    advice = "These figures show no fault. Compare runs on three nodes and more with one another."
    if low:
        advice = "Test each network card with ib_write_bw, then pairs of nodes."
    if falls:
        advice = ("Run ib_write_bw between many pairs at once, look for drops and pause frames, "
                  "and see how flows are spread over links (adaptive routing, ECMP by port, "
                  "NCCL_IB_QPS_PER_CONNECTION=4); test pairs of nodes for a slow one.")  # fmt: skip
    return found(
        case, "rings_between_nodes", figures, reason, advice,
        case.cited("by_nodes", "nic", "nics"), fault=low, confidence=0.85,
    )  # fmt: skip
