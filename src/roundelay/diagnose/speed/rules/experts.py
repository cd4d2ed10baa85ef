"""What DeepEP's tests print."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ...finding import Figures, Finding
from ..case import Case, found
from .rates import SOUND

NVLINK_FULL: Final = (130.0, 165.0)
"""GB/s printed for NVLink at which that of an H800 is full: DeepEP's README has 153 to 158 inside a
node, and its rows for two nodes come to 140."""


PUBLISHED: Final = MappingProxyType({"rdma": 43.0, "nvlink": 153.0, "together": 39.0})
"""GB/s that DeepEP's own tables have at the least, on H800 with a network card of 400 Gb/s for each
card: its README (V1), two nodes and more, inside a node, and low latency from 8 to 256 ranks."""


def beside_published(case: Case) -> Finding | None:
    """What DeepEP's tests print, beside its authors' figures."""
    facts = case.facts
    rates = {"rdma": facts.printed_rdma, "nvlink": facts.printed_nvlink, "together": facts.together}
    if facts.printed_rdma:
        if case.nodes:
            return None
        rates["nvlink"] = None
    name = next((name for name, rate in rates.items() if rate), None)
    if name is None or (facts.together and facts.apart and not facts.printed_rdma
                        and min(facts.apart) < 0.5 * facts.together):  # fmt: skip
        return None
    rate = rates[name] or 0.0
    figures: Figures = {
        "printed_GBps": rate, "published_GBps": PUBLISHED[name], "share": rate / PUBLISHED[name],
        "what": {"rdma": "RDMA", "nvlink": "NVLink", "together": "dispatch + combine"}[name],
    }  # fmt: skip
    low = rate < SOUND * PUBLISHED[name]
    advice = "Tell how many nodes there are (--cluster) to have what crosses the network reckoned."
    if low:
        advice = ("See that there is a network card for each card and that each uses its own "
                  "(nvidia-smi topo -mp, NVSHMEM_DEBUG=INFO), that IBGDA is on, and what "
                  "ib_write_bw gives for each; then PCIe access control (ACS) and, on RoCE, flow "
                  "control.")  # fmt: skip
    return found(
        case, "beside_published", figures,
        ["DeepEP prints {printed_GBps} GB/s a card ({what}); its authors have {published_GBps} or "
         "more on H800 with a network card of 400 Gb/s for each card, so this is {share} of it."],
        advice, case.cited("printed_rdma", "printed_nvlink", "together"), fault=low,
        confidence=0.75,
    )  # fmt: skip


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
