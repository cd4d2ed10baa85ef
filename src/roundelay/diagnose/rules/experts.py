"""What DeepEP's tests print."""

from __future__ import annotations

from typing import Final

from ..case import Case, found
from ..finding import Figures, Finding
from .rates import SOUND

NVLINK_FULL: Final = (130.0, 165.0)
"""GB/s printed for NVLink at which that of an H800 is full: DeepEP's README has 153 to 158 inside a
node, and its rows for two nodes come to 140."""


def own_node_counted(case: Case) -> Finding | None:
    """The printed network rate counts tokens that stay in their node."""
    printed, nodes, line = case.facts.printed_rdma, case.nodes, case.nic
    if printed is None or not nodes or nodes < 2:
        return None
    real = printed * (nodes - 1) / nodes
    figures: Figures = {
        "printed_GBps": printed, "network_GBps": real, "nodes": nodes, "others": nodes - 1,
    }  # fmt: skip
    reason = [
        "DeepEP also counts the tokens to a rank's own node; of {nodes:node|nodes} (N - 1) / N "
        "cross "
        "the network: {printed_GBps} x {others} / {nodes} = {network_GBps} GB/s."
    ]
    idle = line is not None and real < SOUND * line
    if line is not None:
        figures |= {"line_GBps": line, "share": real / line}
        reason.append("That is {share} of the network card's {line_GBps} GB/s, one way.")
    if idle and _nvlink_full(case):
        figures["nvlink_GBps"] = case.facts.printed_nvlink or 0.0
        reason.append("NVLink, at {nvlink_GBps} GB/s, is the limit.")
    bad = idle and not _nvlink_full(case)
    advice = "Multiply printed rates by (N - 1) / N before comparing them with a line rate."
    if bad:
        advice = ("Neither the network nor NVLink is full: test pairs of nodes with ib_write_bw, "
                  "and see that each card uses a network card of its own.")  # fmt: skip
    return found(
        case, "own_node_counted", figures, reason, advice,
        case.cited("printed_rdma", "printed_nvlink", "nodes", "texts"), fault=bad, confidence=0.9,
    )  # fmt: skip


def _nvlink_full(case: Case) -> bool:
    rate = case.facts.printed_nvlink
    if rate is None:
        return False
    if case.inside is not None:
        return rate > 0.65 * case.inside
    return NVLINK_FULL[0] <= rate <= NVLINK_FULL[1]


def waiting_counted(case: Case) -> Finding | None:
    """Times of dispatch and combine apart contain the waiting for other ranks."""
    together, apart = case.facts.together, case.facts.apart
    if not apart or (together is not None and min(apart) > 0.5 * together):
        return None
    figures: Figures = {"dispatch_GBps": apart[0], "combine_GBps": apart[1]}
    reason = ["{dispatch_GBps} and {combine_GBps} GB/s are no rates of a link: timed apart, "
              "dispatch and combine include waiting for peers that come later."]  # fmt: skip
    if together is not None:
        figures["together_GBps"] = together
        reason.append("Dispatch and combine in one have {together_GBps} GB/s: judge by that.")
    return found(
        case, "waiting_counted", figures, reason,
        "Use the lines `Dispatch + combine bandwidth`, or put a barrier before each call.",
        case.cited("apart", "together"), confidence=0.85,
    )  # fmt: skip
