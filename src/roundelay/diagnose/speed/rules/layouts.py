"""Rates of other layouts, collectives and bonds of the same hosts; and calls that wait."""

from __future__ import annotations

from typing import Final

from ....collectives import COLLECTIVES
from ....formats.nccl_tests import bus_factor
from ...finding import Figures, Finding
from ..case import GB, Case, found
from .network import SLOW
from .said import TINY, WAITS

GROWS: Final = 1.3
"""Times the rate of fewer cards of a host, to be called more."""
LITTLE: Final = 6.0
"""GB/s of one card of a host: less than half of a network card of 100 Gb/s."""
BOND: Final = (0.3, 0.85)
"""Of a bond's rate, between which connections that fall on its ports unevenly lie."""
FILLED: Final = 0.85
"""Of a bond's rate: a test that reaches it fills all ports."""
PIECE: Final = 32 << 20
"""Bytes of a rank's piece below which a ring of many steps is latency in part."""
MANY: Final = 16
"""Ranks from which that is so."""


def by_layout(case: Case) -> Finding | None:
    """The same call with more and more cards of each host."""
    rates = _layout_rates(case)
    if len(rates) < 2:
        return None
    cards, figures = sorted(rates), Figures()
    figures |= {
        "cards": ", ".join(map(str, cards)),
        "rates": ", ".join(f"{rates[c]:.3g} GB/s" for c in cards), "few": cards[0],
        "few_GBps": rates[cards[0]],
    }  # fmt: skip
    reason = ["busbw is {rates} with {cards} cards of each host."]
    if case.facts.layout_times:
        reason = ["Size over time gives a busbw of {rates} with {cards} cards of each host."]
    first, last = rates[cards[0]], rates[cards[-1]]
    if case.facts.nic and first >= FILLED * case.facts.nic and last < first / GROWS:
        return _falls(case, figures, reason, first, case.facts.nic)
    if last > GROWS * first:
        reason.append("Between hosts a card uses the network cards next to it as a rule, so with "
                      "fewer cards of a host some network cards carry nothing, and each further "
                      "card brings its own (with sockets: further connections). These layouts do "
                      "not have the same way between hosts, and their times need not agree."
                      )  # fmt: skip
    elif last < first / GROWS:
        reason.append("More cards of a host bring less between hosts: what they share is the "
                      "bound, be it one network card, the host's memory and cores, or a ring "
                      "whose order does not follow the links inside the host.")  # fmt: skip
    else:
        reason.append("More cards of a host bring no more between hosts, as where all of them "
                      "share one network card or one way through the host's memory.")  # fmt: skip
    low = first / cards[0] < LITTLE and not case.facts.nic
    if low:
        figures["each_GBps"] = first / cards[0]
        reason.append("{each_GBps} GB/s for a card is little where network cards are of 100 Gb/s "
                      "(12.5 GB/s one way) and more: TCP sockets, or data that pass through the "
                      "host's memory without GPUDirect RDMA, give such rates.")  # fmt: skip
    return found(
        case, "by_layout", figures, reason,
        "Compare with the rate of the network cards that are used; NCCL_DEBUG=INFO names them, "
        "and GDRDMA behind NET/IB tells of GPUDirect RDMA.",
        case.cited("layout_times", "layouts"), fault=low, confidence=0.8,
    )  # fmt: skip


def _falls(case: Case, figures: Figures, reason: list[str], first: float, nic: float) -> Finding:
    """Few cards of a host fill a network card, and all of them do not."""
    figures |= {"nic_GBps": nic, "share": first / nic}
    reason.append("With {few:card|cards} of each host it is {share} of a network card's "
                  "{nic_GBps} GB/s one way, so the network and its settings are sound. With more "
                  "it falls: the bound is inside the host, as where the order of the cards in the "
                  "ring does not follow their links (a virtual machine may hide them), or where "
                  "data pass through the host's memory and cores.")  # fmt: skip
    return found(
        case, "by_layout", figures, reason,
        "Compare nvidia-smi topo -m with the order of the rings in the log of NCCL_DEBUG=INFO, "
        "set another order (CUDA_VISIBLE_DEVICES) or NCCL_TOPO_FILE, and run on one host alone.",
        case.cited("layout_times", "layouts", "nic"), fault=True, confidence=0.8,
    )  # fmt: skip


def _layout_rates(case: Case) -> dict[int, float]:
    """busbw, by cards of each host; of the number of hosts with most of them."""
    facts, rates = case.facts, dict[int, float]()
    by_nodes: dict[int, dict[int, float]] = {}
    for (cards, nodes), rate in facts.layouts.items():
        if (hosts := nodes or case.nodes or 2) > 1:
            by_nodes.setdefault(hosts, {})[cards] = rate
    if by_nodes:
        most = max(map(len, by_nodes.values()))
        rates = next(found for _, found in sorted(by_nodes.items()) if len(found) == most)
    size = max(facts.sizes.values(), default=0)
    if len(facts.sizes) != 1 or size < TINY or case.collective not in COLLECTIVES:
        return rates
    for (cards, nodes), seconds in facts.layout_times.items():
        if not cards:
            continue
        hosts = nodes or case.nodes or 0
        if hosts > 1:
            factor = float(bus_factor(case.collective, hosts * cards))
            rates[cards] = size / seconds / GB * factor
    return rates


def collectives_apart(case: Case) -> Finding | None:
    """One collective is slower than another between the same hosts."""
    facts = case.facts
    names = {name.replace("_", ""): name for name in COLLECTIVES}
    rates = {names[plain]: rate for label, rate in facts.busbw.items()
             if (plain := label.replace("_", "")) in names and rate}  # fmt: skip
    nodes, ranks = case.nodes or 1, case.ranks or 0
    if len(rates) < 2 or nodes < 2:
        return None
    slow, fast = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
    if rates[slow] >= SLOW * rates[fast]:
        return None
    figures: Figures = {"slow": slow, "slow_GBps": rates[slow], "fast": fast,
                        "fast_GBps": rates[fast], "share": rates[slow] / rates[fast]}  # fmt: skip
    reason = ["{slow} has {slow_GBps} GB/s, {share} of the {fast_GBps} GB/s of {fast} between the "
              "same hosts."]  # fmt: skip
    if fast == "all_reduce":
        reason.append("all_reduce may go by trees, or be added in switches (NVLS, SHARP), where "
                      "busbw is no wire rate; the others go by rings.")  # fmt: skip
    if nodes > 2:
        reason.append("Network cards that carry {fast} are not the likely bound of {slow}.")
    size = max(facts.sizes.values(), default=facts.max_bytes or 0)
    if size and ranks >= MANY and size / ranks < PIECE:
        figures |= {"bytes": size, "ranks": ranks, "piece_bytes": size // ranks, "steps": ranks - 1}
        reason.insert(1, "Of {bytes} each of {ranks:rank|ranks} has {piece_bytes}, and a ring "
                         "takes {steps:step|steps}: at such pieces latency is a part of the time, "
                         "so the size is small for it.")  # fmt: skip
    if facts.iterations == 1:
        reason.append("One iteration is no measurement.")
    return found(
        case, "collectives_apart", figures, reason,
        "Measure larger sizes (-e 16G) with 20 iterations and more, and compare {slow} with "
        "reduce_scatter, which goes the same ring.",
        case.cited("busbw", "sizes"), confidence=0.75,
    )  # fmt: skip


def bond_uneven(case: Case) -> Finding | None:
    """A bond of which an exchange gets a part that connections' hashing explains."""
    facts, rate, ports = case.facts, case.best_rate, case.facts.ports or 2
    line = facts.nic
    if not case.bonded or not line or not rate or (case.nodes or 1) < 2 or case.table is not None:
        return None
    if facts.port and abs(facts.port - line) < 0.05 * line:
        line *= ports
    if (facts.nics or 1) > 1 or not BOND[0] * line < rate < BOND[1] * line:
        return None
    figures: Figures = {"bond_GBps": line, "measured_GBps": rate, "share": rate / line}  # fmt: skip
    reason = ["{measured_GBps} GB/s is {share} of the bond's {bond_GBps} GB/s one way.",
              "A bond puts whole connections (queue pairs) on its ports by a hash, not the "
              "bytes of one: where they fall unevenly one port is full while the other waits. "
              "That fits, but these figures do not prove it; a way through the host's memory "
              "without GPUDirect RDMA costs as much."]  # fmt: skip
    wire = facts.wire_test
    if wire and wire >= FILLED * line:
        figures["wire_GBps"] = wire
        reason.insert(1, "ib_write_bw reaches {wire_GBps} GB/s, so ports and wire carry more.")
    return found(
        case, "bond_uneven", figures, reason,
        "Give NCCL both ports singly instead of the bond (NCCL_IB_HCA), or more queue pairs with "
        "the data spread over them (NCCL_IB_QPS_PER_CONNECTION, NCCL_IB_SPLIT_DATA_ON_QPS=1); the "
        "counters of each port show how even it is.",
        case.cited("nic", "measured", "busbw", "wire_test", "ports"), fault=True, confidence=0.75,
    )  # fmt: skip


def call_waits(case: Case) -> Finding | None:
    """A few bytes take milliseconds: a call that waits."""
    facts = case.facts
    pairs = [(size, seconds) for name, size in facts.sizes.items()
             for told, seconds in facts.times.items() if _of(told) == name]  # fmt: skip
    if not pairs and len(facts.sizes) == len(facts.times) == 1:
        pairs = list(zip(facts.sizes.values(), facts.times.values(), strict=True))
    small = [(size, seconds) for size, seconds in pairs if size < TINY and seconds > WAITS]
    if not small or case.table is not None:
        return None
    size, seconds = max(small, key=lambda pair: pair[1])
    figures: Figures = {"size_bytes": size, "call_ms": seconds * 1e3}
    reason = ["{size_bytes} take {call_ms} ms: no rate of a link follows from so few bytes, for "
              "which launch, steps and wires take tens of us, over TCP sockets hundreds.",
              "So most of it is waiting: for a rank that comes late (uneven work, loading of "
              "data), for kernels before it on the stream, where the host's clock takes the time, "
              "or for the first call to connect."]  # fmt: skip
    more = [(large, time) for large, time in pairs if large > 64 * size and time < 1.5 * seconds]
    if more:
        figures |= {"large_bytes": max(more)[0], "large_ms": max(more)[1] * 1e3}
        reason.insert(1, "{large_bytes} take {large_ms} ms as well, so links carry far more.")
    return found(
        case, "call_waits", figures, reason,
        "Put a barrier (and cudaDeviceSynchronize) before the call and time both: what the "
        "barrier takes was waiting. Compare when ranks enter the call (a trace of each rank).",
        case.cited("sizes", "times"), fault=True, confidence=0.8,
    )  # fmt: skip


def with_and_without(case: Case) -> Finding | None:
    """The same measurement with a thing on, and off."""
    pairs = [(on, off) for on, off in (("on", "off"), ("with", "without"), ("enabled", "disabled"))
             for label in case.facts.busbw if on in label.split("_")
             and label.replace(on, off) in case.facts.busbw]  # fmt: skip
    if not pairs or case.table is not None:
        return None
    on, off = pairs[0]
    label = next(name for name in case.facts.busbw if on in name.split("_")
                 and name.replace(on, off) in case.facts.busbw)  # fmt: skip
    what = label.replace(on, "").strip("_").replace("_", " ") or "it"
    with_it, without = case.facts.busbw[label], case.facts.busbw[label.replace(on, off)]
    if what in ("nvls", "nvswitch") or not without or not with_it:
        return None
    figures: Figures = {"what": what, "with_GBps": with_it, "without_GBps": without,
                        "times": with_it / without}  # fmt: skip
    reason = ["{with_GBps} GB/s with {what}, {without_GBps} GB/s without: {times} times."]
    if "gdr" in what or "gpudirect" in what or "rdma" in what:
        reason.append("Without GPUDirect RDMA data pass through the host's memory between nodes, "
                      "which costs a third to two thirds of the rate as a rule.")  # fmt: skip
    if (case.nodes or 1) > 1 and case.node_rate and not case.nics_assumed:
        figures |= {"line_GBps": case.node_rate, "share": with_it / case.node_rate}
        reason.append("With it the rate is {share} of the {line_GBps} GB/s that the network cards "
                      "of a node carry one way.")  # fmt: skip
    return found(case, "with_and_without", figures, reason,
                 "Keep what is faster, and see in NCCL's log (NCCL_DEBUG=INFO) that it is in use.",
                 case.cited("busbw"), confidence=0.8)  # fmt: skip


def protocols(case: Case) -> Finding | None:
    """Rates by NCCL's protocols."""
    rates = {name: case.facts.busbw.get(name) for name in ("ll", "ll128", "simple")}
    told = {name: rate for name, rate in rates.items() if rate}
    if len(told) < 2 or case.table is not None:
        return None
    best = max(told, key=told.__getitem__)
    figures: Figures = {"best": best.upper() if best != "simple" else "Simple",
                        "best_GBps": told[best]}  # fmt: skip
    reason = ["{best} is the fastest here, with {best_GBps} GB/s."]
    if "ll" in told:
        figures["ll_GBps"] = told["ll"]
        reason.append("LL ({ll_GBps} GB/s) sends a flag with every 4 bytes, so it reaches half of "
                      "a link at most; it is for small sizes, where latency counts.")  # fmt: skip
    if "ll128" in told:
        figures["ll128_GBps"] = told["ll128"]
        reason.append("LL128 ({ll128_GBps} GB/s) has 120 bytes of data in 128; Simple has no flags "
                      "among its data, and suits large sizes.")  # fmt: skip
    line = case.inside if (case.nodes or 1) == 1 else None
    if line:
        figures |= {"line_GBps": line, "share": told[best] / line}
        reason.append("The best is {share} of the {line_GBps} GB/s that the links of a card carry "
                      "one way.")  # fmt: skip
    return found(case, "protocols", figures, reason,
                 "Leave NCCL_PROTO unset, so that NCCL chooses by size; set it only to compare.",
                 case.cited("busbw"), confidence=0.85)  # fmt: skip


def _of(name: str) -> str:
    """What a time is of, by its name."""
    return "_".join(word for word in name.split("_") if word not in ("time", "latency", "call"))
