"""Rates beside one another: before a change and after it, and of more and more cards."""

from __future__ import annotations

from itertools import pairwise

from ...finding import Figures, Finding
from ..case import GB, Case, found
from .network import OLDER, PATH


def changed(case: Case) -> Finding | None:
    """What a change has cost, or brought."""
    before, after = case.facts.before, case.facts.after
    if not before or not after or case.facts.by_version:
        return None
    figures: Figures = {"before_GBps": before, "after_GBps": after, "share": after / before,
                        "times": max(before, after) / min(before, after)}  # fmt: skip
    if after >= OLDER * before:
        return _no_loss(case, figures)
    reason = ["{after_GBps} GB/s after {before_GBps} GB/s: {share} of it are left."]
    advice = ("Undo the change for one run to be sure that it is the cause, then take it back step "
              "by step; compare the logs of both (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,"
              "TUNING): ways, channels, algorithm, protocol.")  # fmt: skip
    if before >= PATH * after:
        reason.append("So much is more often a fast way lost than another choice of algorithm.")
    if lost := _lost(case, after, figures):
        reason.append(lost)
    return found(
        case, "slower_after", figures, reason, advice, case.cited("before", "after"), fault=True,
        confidence=0.85,
    )  # fmt: skip


def falls_with_cards(case: Case) -> Finding | None:
    """More cards of a host, and much less."""
    series = sorted(case.facts.by_ranks.items())
    pairs = (pair for pair in pairwise(series) if pair[0][1] >= PATH * pair[1][1])
    fall = next(pairs, None)
    if fall is None:
        return None
    (few, fast), (many, slow) = fall
    figures: Figures = {"few": few, "fast_GBps": fast, "many": many, "slow_GBps": slow,
                        "times": fast / max(slow, 1e-9)}  # fmt: skip
    reason = ["{fast_GBps} GB/s with {few:card|cards}, {slow_GBps} GB/s with {many}: {times} times "
              "less. A ring goes at the rate of its slowest way, and with {many} cards one of them "
              "may be of another kind: cards that are joined in pairs or fours by NVLink reach the "
              "others over PCIe, or across sockets."]  # fmt: skip
    if lost := _lost(case, slow, figures):
        reason.append(lost)
    return found(
        case, "falls_with_cards", figures, reason,
        "See with nvidia-smi topo -m which cards are joined; keep what exchanges most (tensor "
        "parallelism) within a group of joined cards, and see that P2P over PCIe is on "
        "(NCCL_P2P_LEVEL, ACS).",
        case.cited("by_ranks"), fault=True, confidence=0.8,
    )  # fmt: skip


def grows_with_cards(case: Case) -> Finding | None:
    """As many times the cards, as many times the rate: each brings a network card."""
    series = sorted(case.facts.by_ranks.items())
    if len(series) != 2 or (case.nodes or 1) < 2:
        return None
    (few, slow), (many, fast) = series
    if slow <= 0 or abs(fast / slow - many / few) > 0.15 * many / few:
        return None
    figures: Figures = {"few": few, "slow_GBps": slow, "many": many, "fast_GBps": fast,
                        "times": many / few}  # fmt: skip
    return found(
        case, "grows_with_cards", figures,
        ["{times} times the cards on the same hosts, {times} times the rate ({slow_GBps} and "
         "{fast_GBps} GB/s): between nodes a card uses the network cards that are next to it, so "
         "with fewer cards of a node some network cards carry nothing."],
        "Compare with the rate of the network cards that are used; NCCL_DEBUG=INFO names them.",
        case.cited("by_ranks"), confidence=0.7,
    )  # fmt: skip


def _no_loss(case: Case, figures: Figures) -> Finding:
    grown = figures["after_GBps"] > figures["before_GBps"]  # type: ignore[operator]
    alike = float(figures["times"]) < 1 / OLDER
    reason = "{after_GBps} GB/s after {before_GBps} GB/s: {times} times as fast."
    if alike or not grown:
        reason = "{after_GBps} GB/s after {before_GBps} GB/s: runs differ by as much of themselves."
    return found(
        case, "after_change", figures, [reason],
        "Repeat each a few times, on the same nodes, before a difference is believed.",
        case.cited("before", "after"), confidence=0.7,
    )  # fmt: skip


def _lost(case: Case, after: float, figures: Figures) -> str:
    """Which way it still goes, by what that carries."""
    if case.cluster is None or (case.nodes or 1) > 1 or case.cluster.inside.kind == "bus":
        return ""
    pcie = case.cluster.nics.card_pcie / GB
    if after > 1.05 * pcie:
        return ""
    figures["pcie_GBps"] = pcie
    return ("It is no more than PCIe gives, {pcie_GBps} GB/s one way: the links between the cards "
            "(NVLink, xGMI) do not carry it.")  # fmt: skip
