"""What somebody says of a measurement besides its figures: sockets, access control, runs."""

from __future__ import annotations

import re
from statistics import median
from typing import Final

from ...finding import Figures, Finding
from ..case import Case, found
from .rates import SOUND

_SOCKET: Final = re.compile(r"net/socket|\bsockets?\b|\btcp\b|\btcp/ip\b", re.I)
FAR: Final = (
    "Card and network card reach one another by {way}, over the processor or the other "
    "socket: NCCL does not use GPUDirect RDMA on such a way unless NCCL_NET_GDR_LEVEL "
    "allows it."
)
TINY: Final = 1 << 20
"""Bytes below which a call is latency."""
WAITS: Final = 1e-3
"""Seconds: a small call that takes more waits for something."""
PEAKS: Final = 1 << 26
"""Bytes from which a rate tells what the wire carries."""
FULL: Final = 0.85
"""Of a network card's line: it is filled, so what carries it is not what bounds other layouts."""
WIDE: Final = 0.8
"""Of the median run: one below it is no noise."""


def over_sockets(case: Case) -> Finding | None:
    """Hosts that exchange over TCP."""
    texts = " ".join(case.facts.texts.values())
    if not _SOCKET.search(texts) or re.search(r"\bno sockets?\b|tcpx", texts, re.I):
        return None
    if case.facts.settings.get("NCCL_SOCKET_IFNAME") and case.facts.times:
        return None
    rate = case.best_rate
    if rate is not None and rate > 30:
        return None
    if case.facts.nic and max(case.facts.layouts.values(), default=0.0) > FULL * case.facts.nic:
        return None
    figures: Figures = {"low_GBps": 1.0, "high_GBps": 3.0}
    reason = ["Between hosts it goes over TCP sockets, not over RDMA: one connection carries about "
              "{low_GBps} to {high_GBps} GB/s, several together more, and every byte passes "
              "through the host's memory and a core."]  # fmt: skip
    advice = ("Use RDMA (InfiniBand, RoCE, EFA) where there is one: /dev/infiniband in the "
              "container, NCCL_IB_DISABLE unset, the cloud's plugin. Else raise "
              "NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD, and the MTU to 9000.")  # fmt: skip
    if rate is not None:
        figures["measured_GBps"] = rate
        if case.facts.nic and rate <= 1.02 * case.facts.nic:
            figures |= {"nic_GBps": case.facts.nic, "share": rate / case.facts.nic}
            reason.append("{measured_GBps} GB/s is {share} of one network card's {nic_GBps} GB/s "
                          "one way.")  # fmt: skip
            if rate > 0.8 * case.facts.nic:
                reason.append("So that network card is the bound.")
        elif rate <= 4:
            reason.append("{measured_GBps} GB/s is of that kind.")
    one = _one_used(case)
    if one:
        figures["interface"] = one
        reason.insert(0, "Only {interface} is used, of several interfaces: the others carry "
                         "nothing.")  # fmt: skip
        advice = ("Name all of them, each with a route of its own, in NCCL_SOCKET_IFNAME "
                  "(eth0,eth1,...), or better use RDMA where there is one; raise "
                  "NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD to fill one.")  # fmt: skip
    return found(case, "over_sockets", figures, reason, advice,
                 case.cited("texts", "busbw", "measured"), fault=True, confidence=0.8)  # fmt: skip


def _one_used(case: Case) -> str:
    """The one interface that is used, where there are several."""
    facts = case.facts
    several = (facts.nics or 0) > 1 or any(
        "several" in text for name, text in facts.texts.items() if "nic" in name or "inter" in name
    )
    used = next((text for name, text in facts.texts.items()
                 if "interface" in name and "use" in name), "")  # fmt: skip
    used = used or facts.settings.get("NCCL_SOCKET_IFNAME", "")
    return used if several and re.fullmatch(r"[\w.@-]{2,20}", used) and used[-1].isdigit() else ""


def access_control(case: Case) -> Finding | None:
    """ACS or the IOMMU is said to be on."""
    facts = case.facts
    signs = {"acs": "srcvalid+", "iommu": "iommu=on"}
    words = [
        word for word, sign in signs.items()
        if facts.has(word) or facts.says(sign, f"{word} on", f"{word} enabled", f"{word} is on",
                                         f"{word} is enabled")
    ]  # fmt: skip
    if not words:
        return None
    figures: Figures = {"what": " / ".join(w.upper() for w in words)}
    reason = ["{what} is on: what cards and network cards send one another directly is sent up to "
              "the processor and down again, which costs most of the rate, or makes P2P fail."
              ]  # fmt: skip
    if rate := case.best_rate:
        figures["measured_GBps"] = rate
        reason.append("The {measured_GBps} GB/s were measured with it.")
    return found(case, "access_control", figures, reason,
                 "Turn ACS off in the BIOS or with setpci on every PCIe bridge, and boot with "
                 "iommu=pt or without it; in a virtual machine enable ATS on the network cards.",
                 case.cited("flags", "texts"), fault=True, confidence=0.8)  # fmt: skip


def below_wire(case: Case) -> Finding | None:
    """The wire carries much more in its own test than NCCL gets of it."""
    wire, nic, rate = case.facts.wire_test, case.nic, case.facts.per_nic or case.best_rate
    alone = (case.nodes or 1) < 2 and not case.facts.per_nic
    if not wire or not rate or alone or case.table is not None:
        return None
    if nic is not None and wire > 1.05 * nic:
        return None
    used = 1 if case.facts.per_nic or case.bonded else max(1, min(case.nics or 1, case.cards or 8))
    if rate >= SOUND * wire * used:
        return None
    figures: Figures = {"wire_GBps": wire, "rate_GBps": rate, "share": rate / (wire * used),
                        "used": used}  # fmt: skip
    way = next((t for t in case.facts.texts.values() if t in ("SYS", "NODE", "PHB")), "")
    far = [FAR] if way else []
    figures |= {"way": way} if way else {}
    largest = max(case.facts.max_bytes or 0, *case.facts.sizes.values(), 0)
    short: list[str] = []
    if 0 < largest < PEAKS:
        figures["largest_bytes"] = largest
        short = ["The largest size, {largest_bytes}, is small besides: rates rise up to 64 MiB and "
                 "more."]  # fmt: skip
    return found(case, "below_wire", figures,
                 ["A test of the wire alone has {wire_GBps} GB/s on a network card, and the "
                  "exchange {rate_GBps} GB/s, {share} of what {used:card|cards} would give: the "
                  "wire between these hosts carries more than the exchange gets of it.",
                  "Usual reasons are GPUDirect RDMA that is off (data pass through the host's "
                  "memory), PCIe access control (ACS) that is on, a network card on the other "
                  "socket, or NCCL on TCP sockets or on another address (GID).",
                  *short, *far],
                 "Test the wire with memory of the cards (ib_write_bw --use_cuda 0): if that is "
                 "slow too, it is PCIe; else see NCCL_DEBUG=INFO for NET/IB and GDRDMA, and "
                 "NCCL_IB_GID_INDEX on RoCE.",
                 case.cited("wire_test", "busbw", "measured", "per_nic"), fault=True,
                 confidence=0.75)  # fmt: skip


def small_size(case: Case) -> Finding | None:
    """A rate at a size that is latency."""
    facts = case.facts
    sizes = [*facts.sizes.values(), *([facts.max_bytes] if facts.max_bytes else [])]
    if not sizes or max(sizes) >= TINY or case.table is not None or facts.by_pair:
        return None
    if not (case.best_rate or facts.times) or max(facts.times.values(), default=0.0) > WAITS:
        return None
    figures: Figures = {"size_bytes": max(sizes)}
    reason = ["At {size_bytes} a call is latency: launch, steps and wires make its time, and the "
              "rate follows from it; what the links carry cannot be told."]  # fmt: skip
    if facts.times:
        figures["call_us"] = max(facts.times.values()) * 1e6
        reason.insert(0, "A call takes {call_us} us.")
    return found(case, "small_size", figures, reason,
                 "Run up to 8 GiB to see bandwidth: -b 8 -e 8G -f 2; judge small sizes by their "
                 "times.",
                 case.cited("sizes", "times", "max_bytes"), confidence=0.9)  # fmt: skip


def runs_differ(case: Case) -> Finding | None:
    """The same test, run again, has other rates."""
    runs = case.facts.runs
    if len(runs) < 2 or min(runs) >= WIDE * median(runs):
        return None
    slow = [rate for rate in runs if rate < WIDE * max(runs)]
    figures: Figures = {"runs": len(runs), "slow": len(slow), "least_GBps": min(runs),
                        "most_GBps": max(runs)}  # fmt: skip
    return found(case, "runs_differ", figures,
                 ["{slow} of {runs:run|runs} are slow: from {least_GBps} to {most_GBps} GB/s. What "
                  "varies from run to run is seldom a setting: other jobs on the network, flows "
                  "that fall on one link (ECMP), a node or cable that comes and goes, or the nodes "
                  "that were given."],
                 "Note the nodes of each run, and test pairs of those of slow runs; look at "
                 "counters of errors and congestion before and after, and spread flows "
                 "(adaptive routing, NCCL_IB_QPS_PER_CONNECTION).",
                 case.cited("runs"), fault=True, confidence=0.8)  # fmt: skip


def fewer_cards(case: Case) -> Finding | None:
    """Fewer cards of a node than it has network cards: each uses its own alone."""
    facts, cards = case.facts, case.cards
    rate = case.best_rate
    if (case.nodes or 1) < 2 or case.table is not None or rate is None or not facts.cards:
        return None
    if not (case.nic and case.nics and cards) or cards >= case.nics or case.nics > 8:
        return None
    if case.assumed and not (facts.nics or facts.machine):
        return None
    if case.bonded:
        return None
    line = case.nic * cards
    if rate > 1.02 * line * (2 if case.nodes == 2 else 1):
        return None
    figures: Figures = {"cards": cards, "nics": case.nics, "line_GBps": line,
                        "measured_GBps": rate, "share": rate / line}  # fmt: skip
    return found(case, "fewer_cards", figures,
                 ["{cards:card|cards} of a node exchange, and a card uses the one network card "
                  "next to it: of {nics:network card|network cards} the others carry nothing.",
                  "So the bound is {line_GBps} GB/s one way; {measured_GBps} GB/s is {share} of "
                  "it."],
                 "Run with all cards of a node to use all of its network cards.",
                 case.cited("busbw", "measured", "nic", "nics", "cards"),
                 fault=rate < 0.6 * line, confidence=0.85)  # fmt: skip
