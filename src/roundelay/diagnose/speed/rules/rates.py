"""Figures that mean something else than they seem to: units, directions, averages."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ...finding import Figures, Finding
from ..case import LARGE, Case, found

LINK_USABLE: Final = MappingProxyType(
    {"volta": 20.0, "ampere": 20.0, "hopper": 20.6, "blackwell": 40.1, "cdna3": 48.0}
)
"""GB/s one way that NCCL takes as the rate of one NVLink, by generation (NCCL 2.30, topo.h), and
RCCL as that of one xGMI of MI300X (ROCm/rccl issue 1210)."""
SOUND: Final = 0.6
"""Of a line rate, one way: less is no matter of protocols."""
DATA_SHARE: Final = (0.88, 0.92)
"""Of a network card's line rate, what large messages reach in data: 44 to 46 of 50 GB/s in DeepEP's
tables, with the tokens to a rank's own node left out."""


def bits_for_bytes(case: Case) -> Finding | None:
    """GB/s written where Gb/s are meant."""
    line = case.nic
    said = [number for number, unit in case.facts.rates_in_texts() if unit == "GB/s"]
    said += filter(None, [case.facts.wire_test])
    if case.facts.says("ib_", "perftest", "iperf"):  # a test of one network card
        said += filter(None, (case.facts.expected, case.facts.measured))
    if (case.nics or 1) > 1 and not case.facts.wire_test:
        said = [rate for rate in said if rate > 1.02 * (case.node_rate or 0.0)]
    if line is None:
        return None
    wrong = next((s for s in said if s > 1.1 * line and 0.4 * line < s / 8 <= 1.02 * line), None)
    if wrong is None:
        return None
    figures: Figures = {
        "said_GBps": wrong, "meant_GBps": wrong / 8, "line_GBps": line, "line_Gbps": 8 * line,
        "share": wrong / 8 / line,
    }  # fmt: skip
    return found(
        case, "units", figures,
        ["{said_GBps} GB/s is more than a network card of {line_Gbps} Gb/s = {line_GBps} GB/s "
         "carries one way.",
         "As Gb/s it is {meant_GBps} GB/s, {share} of the line rate."],
        "Write Gb/s (1e9 bits a second) and GB/s (1e9 bytes a second) apart: 8 Gb/s are 1 GB/s. "
        "These figures show no fault of the link.",
        case.cited("texts", "wire_test", "nic"), confidence=0.95,
    )  # fmt: skip


def both_directions(case: Case) -> Finding | None:
    """A rate as sold adds both directions."""
    sold = case.facts.advertised
    if sold is None and case.inside and _adds_directions(case, case.facts.expected or 0.0):
        sold = case.facts.expected
    if sold is None or not _adds_directions(case, sold):
        return None
    rate = case.facts.measured or max(case.facts.busbw.values(), default=None)
    figures: Figures = {"advertised_duplex_GBps": sold, "line_GBps": sold / 2}
    reason = ["{advertised_duplex_GBps} GB/s adds both directions; one way the line rate is "
              "{line_GBps} GB/s."]  # fmt: skip
    advice = "Compare with the line rate of one direction."
    if rate is not None:
        figures |= {"measured_GBps": rate, "share": 2 * rate / sold}
        reason.append("The {measured_GBps} GB/s measured are {share} of it.")
    multicast = case.cluster is not None and case.cluster.inside.multicast
    reduced = "all_reduce" in case.facts.collectives
    adding = case.expected_busbw("all_reduce") if multicast and reduced else None
    if adding is not None and rate is not None and adding > 1.1 * rate:
        figures["nvls_busbw_GBps"] = adding
        advice = (
            "Compare with the line rate of one direction. An all_reduce whose sums the NVSwitch "
            "makes (NVLS) would show a busbw of about {nvls_busbw_GBps} GB/s: see that "
            "NCCL_NVLS_ENABLE is not 0."
        )
    return found(
        case, "both_directions", figures, reason, advice,
        case.cited("advertised", "duplex", "busbw", "measured"),
        fault=rate is not None and 2 * rate < SOUND * sold, confidence=0.9,
    )  # fmt: skip


def _adds_directions(case: Case, sold: float) -> bool:
    """As said; else, whether it is twice the line rate of the card's links."""
    if case.facts.duplex is not None or case.inside is None:
        return bool(case.facts.duplex)
    return abs(sold - 2 * case.inside) < 0.05 * sold


def link_usable(case: Case) -> Finding | None:
    """What protocols leave of a link's line rate."""
    facts, cluster = case.facts, case.cluster
    links = facts.links or (cluster.inside.links if cluster else None)
    line = facts.link_line or (None if facts.duplex else facts.advertised)
    if line is None and links and case.inside:
        line = case.inside / links
    usable = facts.link_usable
    whole = usable is not None and line is not None and abs(usable - line) < 0.03 * line
    if whole or (usable is None and facts.links):
        usable = LINK_USABLE.get(cluster.generation) if cluster else None
    if usable is None or line is None or not 0.3 * line < usable <= line:
        return None
    figures: Figures = {
        "link_line_GBps": line, "link_usable_GBps": usable, "share": usable / line,
    }  # fmt: skip
    reason = ["{link_line_GBps} GB/s is the peak of one link, one way; packet headers and credits "
              "leave about {link_usable_GBps} GB/s, {share}."]  # fmt: skip
    if links:
        figures |= {"links": links, "line_GBps": links * line, "usable_GBps": links * usable}
        reason.append("{links:link|links} carry {usable_GBps} of {line_GBps} GB/s, one way.")
    if facts.measured and links and facts.measured <= links * line:
        figures |= {"measured_GBps": facts.measured, "line_share": facts.measured / links / line}
        reason.append("The {measured_GBps} GB/s measured are {line_share} of the line's "
                      "{line_GBps} GB/s; the copy engines and stores may pass what NCCL takes as "
                      "usable.")  # fmt: skip
    if facts.expected and links and abs(facts.expected - links * line) < 0.02 * facts.expected:
        reason.append("So the {line_GBps} GB/s that were expected are the line rate.")
    expected = case.expected_busbw() if facts.collectives else None
    if expected is not None:
        figures["expected_busbw_GBps"] = expected
        reason.append("Expected at 8 GiB is a busbw of {expected_busbw_GBps} GB/s.")
    return found(
        case, "link_usable", figures, reason,
        "Compare what is measured with the usable rate, not with the peak.",
        case.cited("links", "link_line", "link_usable", "usable", "advertised", "expected"),
        confidence=0.85,
    )  # fmt: skip


def line_figure(case: Case) -> Finding | None:
    """A network's rate that is the line's and not a measured one."""
    rate, line = case.facts.network, case.nic
    if rate is None or line is None or abs(rate - line) > 0.01 * line:
        return None
    low, high = DATA_SHARE
    figures: Figures = {
        "line_GBps": line, "line_Gbps": 8 * line, "low_GBps": low * line, "high_GBps": high * line,
    }  # fmt: skip
    return found(
        case, "line_rate", figures,
        ["{line_GBps} GB/s is the line rate of a network card of {line_Gbps} Gb/s, one way, not a "
         "measured figure; large messages reach about {low_GBps} to {high_GBps} GB/s of data."],
        "Compare measured figures with 0.9 of the line rate.",
        case.cited("network"),
    )  # fmt: skip


def average(case: Case) -> Finding | None:
    """The average of busbw over sizes is no verdict."""
    facts = case.facts
    peak = facts.peak or max(facts.busbw.values(), default=None)
    if facts.average and peak is None and case.table is None:
        return _average_alone(case)
    if not facts.average or peak is None or facts.average > 0.95 * peak:
        return None
    told = (case.nodes or 1) > 2 and not case.nics_assumed
    line = facts.expected or (case.node_rate if told else None)
    figures: Figures = {"average_GBps": facts.average, "peak_GBps": peak}
    reason = ["{average_GBps} GB/s is the mean over all sizes, small ones included: it depends on "
              "which sizes were measured, and is no verdict.",
              "The highest rate is {peak_GBps} GB/s, and it still rises there."
              if not_flat(case) is not None else "The peak is {peak_GBps} GB/s."]  # fmt: skip
    if line:
        figures |= {"line_GBps": line, "share": peak / line}
        reason.append("That is {share} of {line_GBps} GB/s.")
    return found(
        case, "average", figures, reason, "Judge by busbw at the largest sizes, 1 GiB and above.",
        case.cited("average", "peak", "busbw"), fault=bool(line) and peak < SOUND * (line or 0.0),
        confidence=0.9,
    )  # fmt: skip


def _average_alone(case: Case) -> Finding:
    """An average, and nothing of the sizes behind it."""
    line = case.node_rate if (case.nodes or 1) > 1 else case.inside
    if (case.nodes or 1) > 1 and case.nics_assumed:
        line = None
    figures: Figures = {"average_GBps": case.facts.average or 0.0}
    reason = ["{average_GBps} GB/s is the mean over all sizes, small ones included: it depends on "
              "which sizes were measured, and is no verdict."]  # fmt: skip
    if line:
        figures |= {"line_GBps": line, "low_GBps": DATA_SHARE[0] * line, "high_GBps": 0.97 * line}
        share = (case.facts.average or 0.0) / line
        figures["share"] = share
        reason.append("What carries it is {line_GBps} GB/s one way, of which the largest sizes "
                      "should reach {low_GBps} to {high_GBps} GB/s where GPUDirect RDMA works; "
                      "through the host's memory about two thirds of it are usual."
                      if (case.nodes or 1) > 1 else
                      "What carries it is {line_GBps} GB/s one way.")  # fmt: skip
        if share < SOUND:
            reason.append("The mean is {share} of the line: much too little if large sizes alone "
                          "were measured.")  # fmt: skip
    return found(
        case, "average", figures, reason, "Judge by busbw at the largest sizes: -b 8 -e 8G -f 2.",
        case.cited("average", "nic", "nics"), confidence=0.8,
    )  # fmt: skip


def slow_port(case: Case) -> Finding | None:
    """A port that has come up at less than its network card's rate."""
    port, line = case.facts.port, case.nic
    if port is None or line is None or port > 0.9 * line or case.bonded:
        return None
    figures: Figures = {"port_GBps": port, "port_Gbps": 8 * port, "line_GBps": line,
                        "line_Gbps": 8 * line}  # fmt: skip
    reason = ["The port runs at {port_Gbps} Gb/s = {port_GBps} GB/s, though the network card could "
              "do {line_Gbps} Gb/s: a cable, transceiver or switch of the slower kind, or a "
              "setting of the port, does this, and that is the rate to reckon with."]  # fmt: skip
    if case.nics:
        figures["node_GBps"] = port * case.nics
        reason.append("All {nics} of a node carry {node_GBps} GB/s one way.")
        figures["nics"] = case.nics
    return found(
        case, "slow_port", figures, reason,
        "See ibstat (Rate) and mlxlink on both ends; exchange the cable or transceiver, or set the "
        "switch's port to the full rate.",
        case.cited("port", "nic"), fault=True, confidence=0.9,
    )  # fmt: skip


def not_flat(case: Case) -> Finding | None:
    """The largest size is not yet at the peak."""
    facts = case.facts
    rows = sorted(case.table.rows if case.table else (), key=lambda row: row.size)
    rising = facts.says("rising", "not flat", "still grow")
    if len(rows) > 1 and rows[-1].size >= 1.5 * rows[-2].size:
        rising = rows[-1].best.busbw > 1.04 * max(row.best.busbw for row in rows[:-1])
    largest = facts.max_bytes
    if not rising or largest is None or not 2**20 <= largest < LARGE:
        return None
    figures: Figures = {"largest_bytes": largest, "rerun_bytes": LARGE}
    reason = ["busbw still rises at the largest size, {largest_bytes}: the curve is not flat yet, "
              "so its last value is not the peak."]  # fmt: skip
    expected = case.expected_busbw()
    if expected is not None:
        figures["expected_busbw_GBps"] = expected
        reason.append("Expected at 8 GiB is a busbw of {expected_busbw_GBps} GB/s.")
    return found(
        case, "not_flat", figures, reason, "Run again up to 8 GiB: -e 8G.",
        case.cited("texts", "max_bytes") or case.lines(*rows[-2:]),
    )  # fmt: skip
