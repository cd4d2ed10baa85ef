"""Settings that somebody has written down and that cost bandwidth."""

from __future__ import annotations

import re
from typing import Final

from ...finding import Figures, Finding
from ..case import Case, found
from .switches import ASSUMED

_ON: Final = r"1|[Tt]rue|yes"
_UNSET: Final = frozenset(("default", "unset", "auto", "none", "without"))
_CHANNELS: Final = re.compile(r"channels=(\d{1,3})$")
_LESS: Final = re.compile(r"\b(?:lower|slower|worse|less)\b")
USUAL: Final = 0.8
"""Of the network cards' line."""
SAME: Final = 0.05
"""Of a rate, within which two are one."""
_COSTS: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("NCCL_P2P_DISABLE", _ON, "inside",
     "{setting} takes the direct way between the cards of a host away (NVLink as well as "
     "PCIe), and all passes through the host's memory."),
    ("NCCL_P2P_LEVEL", r"0|LOC", "inside",
     "{setting} takes the direct way between the cards of a host away, and all passes through "
     "the host's memory."),
    ("NCCL_SHM_DISABLE", _ON, "inside",
     "{setting} sends what cannot go directly between cards over the network, even inside a "
     "host."),
    ("NCCL_NVLS_ENABLE", r"0", "inside",
     "{setting} turns the adding in the NVSwitch (NVLS) off: an all_reduce then runs at the "
     "ring's rate, about 0.8 of the links' line rate one way."),
    ("NCCL_IB_DISABLE", _ON, "between",
     "{setting} turns RDMA off: between hosts all goes over TCP sockets."),
    ("NCCL_SOCKET_IFNAME", r"=?(?:docker|virbr|veth|br-|lo\b)\S*", "between",
     "{setting} names an interface that does not lead to other hosts (a bridge of containers or "
     "virtual machines, or the loopback): hosts find no way or a slow one."),
    ("NCCL_NET", r"[Ss]ocket", "between",
     "{setting} chooses TCP sockets between hosts instead of RDMA."),
    ("NCCL_NET_GDR_LEVEL", r"0|LOC", "between",
     "{setting} turns GPUDirect RDMA off: between hosts all passes through the host's memory, "
     "at a third to two thirds of the line."),
    ("NCCL_NET_GDR_READ", r"0", "between",
     "{setting} lets sends pass through the host's memory."),
    ("NCCL_PXN_DISABLE", _ON, "between",
     "{setting} turns PXN off: a card no longer hands data to the card next to the right "
     "network card, so all-to-all sends many small messages across rails."),
    ("NCCL_PROTO", r"LL", "",
     "{setting} allows the protocol LL alone, which carries a flag beside every 4 bytes: half "
     "the rate at best, for small sizes only."),
    ("NCCL_ALGO", r"[Tt]ree", "",
     "{setting} allows trees alone; for large sizes rings are mostly faster from three nodes "
     "on."),
    *((name, r"[12]", "",
       "{setting} allows one or two channels, too few for the links of a card or several network"
       " cards.") for name in ("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS")),
    ("NCCL_BUFFSIZE", r"\d{1,5}|[1-6]\d{5}", "",
     "{setting} makes buffers small, so that latency bounds the rate."),
)  # fmt: skip
"""Name, value, where it costs, and what it does (NCCL's user guide, environment variables)."""


def setting_costs(case: Case) -> Finding | None:
    """A setting that takes a fast way away."""
    where = "between" if (case.nodes or 1) > 1 else "inside"
    for name, value, place, does in _COSTS:
        given = case.facts.settings.get(name)
        if given is None or place not in ("", where) or not re.fullmatch(value, given):
            continue
        figures: Figures = {"setting": f"{name}={given[:40]}"}
        reason = [does]
        if rate := case.best_rate:
            figures["measured_GBps"] = rate
            reason.append("The {measured_GBps} GB/s were measured with it.")
        if "TCP sockets" in does:
            reason.append("One connection carries about 1 to 3 GB/s. Where there is no RDMA, "
                          "raise NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD.")  # fmt: skip
        return found(case, "setting_costs", figures, reason,
                     "Take it out for one run and compare; with NCCL_DEBUG=INFO the log shows "
                     "which way is taken.",
                     case.cited("settings", "texts") or case.best_line, fault=True,
                     confidence=0.9)  # fmt: skip
    return None


def channels(case: Case) -> Finding | None:
    """Rates with and without a number of channels that was set."""
    facts = case.facts
    free = next((rate for name, rate in facts.busbw.items() if name in _UNSET), None)
    told: dict[str, float | None] = {
        name: None for name, text in facts.texts.items() if _LESS.search(text)
    }
    told |= facts.busbw
    name = next(filter(_CHANNELS.search, told), "")
    if not free or not name:
        return None
    count, rate = name.rpartition("=")[2], told[name]
    figures: Figures = {"channels": int(count), "free_GBps": free}
    reason: list[str]
    between = (case.nodes or 1) > 1
    if rate is not None and count == "1" and between and abs(rate - free) < SAME * free:
        reason = ["With one channel it is as fast as with the number unset, {free_GBps} GB/s: as "
                  "where one channel carries it anyway. A channel uses one network card at a "
                  "time, and the others of a host carry little or nothing."]  # fmt: skip
        if any("other" in name and "good" in text for name, text in facts.texts.items()):
            reason.append("Other collectives are good, so cards and network are not the bound.")
        advice = ("See how many channels the log has for it (NCCL_DEBUG=INFO, "
                  "NCCL_DEBUG_SUBSYS=GRAPH,COLL), raise NCCL_MIN_NCHANNELS, and try a newer "
                  "NCCL.")  # fmt: skip
    elif rate is None or rate < (1 - SAME) * free:
        reason = ["{channels:channel|channels}, fixed by a setting, are slower than the number "
                  "that NCCL chooses ({free_GBps} GB/s): a channel is a block on one "
                  "multiprocessor, and too few do not drive the links of a card and all its "
                  "network cards."]  # fmt: skip
        advice = "Leave NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS unset."
    else:
        return None
    if (line := case.node_rate) and (case.nodes or 1) > 1 and free <= line:
        figures |= {"line_GBps": line, "share": free / line}
        reason.append("{free_GBps} GB/s is {share} of the {line_GBps} GB/s one way of a node's "
                      "network cards.")  # fmt: skip
        if free > USUAL * line:
            reason.append("That is usual.")
        if case.nics_assumed:
            figures["nic_Gbps"] = 8 * (case.nic or 0.0)
            reason.append(ASSUMED)
    return found(case, "setting_costs", figures, reason, advice, case.cited("busbw", "texts"),
                 fault=True, confidence=0.75)  # fmt: skip


def few_rails(case: Case) -> Finding | None:
    """NCCL_IB_HCA names fewer network cards than there are."""
    given = case.facts.settings.get("NCCL_IB_HCA", "")
    named = [part for part in given.lstrip("^=").split(",") if part]
    exact = given and not given.startswith("^") and all(re.search(r"\d", part) for part in named)
    if not exact or not case.nics or len(named) >= case.nics or (case.nodes or 1) < 2:
        return None
    figures: Figures = {"setting": f"NCCL_IB_HCA={given[:60]}", "used": len(named),
                        "nics": case.nics}  # fmt: skip
    reason = ["{setting} lets NCCL use {used} of {nics:network card|network cards}."]
    if case.nic:
        figures["used_GBps"] = len(named) * case.nic
        reason.append("They carry {used_GBps} GB/s one way; on two nodes a tree's busbw may show "
                      "nearly twice that.")  # fmt: skip
    if rate := case.best_rate:
        figures["measured_GBps"] = rate
        reason.append("Measured: {measured_GBps} GB/s.")
    return found(case, "few_rails", figures, reason,
                 "Name all network cards for computing (NCCL_IB_HCA=mlx5_0,mlx5_1,...), or leave "
                 "it unset and exclude only those for storage (NCCL_IB_HCA=^mlx5_4).",
                 case.cited("settings", "busbw"), fault=True, confidence=0.85)  # fmt: skip
