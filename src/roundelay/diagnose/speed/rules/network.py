"""What slows data down between nodes."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Final

from ...finding import Figures, Finding
from ..case import GB, Case, found
from .rates import SOUND

SLOW: Final = 0.75
"""Of the usual rate: a pair, a version or a size below it is another matter than noise."""
OLDER: Final = 0.85
"""Of the older version's rate: versions on one machine differ by some percent."""
PATH: Final = 1.8
"""Times the newer rate: what is lost with a fast path is more than that."""
STEP: Final = 5e-6
"""Seconds: no network card or switch alone makes a step as long."""


def all_to_all(case: Case) -> Finding | None:
    """Of an all_to_all between nodes only a part crosses the network."""
    nodes, cards, ranks = case.nodes, case.cards, case.ranks
    busbw = max(case.facts.busbw.values(), default=None)
    if case.collective != "all_to_all" or busbw is None or not (nodes and cards and ranks):
        return None
    if nodes < 2:
        return None
    algbw = busbw * ranks / (ranks - 1)
    card = algbw * (nodes - 1) / nodes
    figures: Figures = {
        "busbw_GBps": busbw, "algbw_GBps": algbw, "crossing_share": (nodes - 1) / nodes,
        "network_card_GBps": card, "network_node_GBps": card * cards,
    }  # fmt: skip
    reason = ["busbw is no wire rate on two levels: {crossing_share} of what a rank sends crosses "
              "the network.",
              "algbw is {algbw_GBps} GB/s, so {network_card_GBps} GB/s a card and "
              "{network_node_GBps} GB/s a node cross it."]  # fmt: skip
    low = False
    if case.node_rate:
        low = card * cards < SOUND * case.node_rate
        figures |= {"node_rate_GBps": case.node_rate, "share": card * cards / case.node_rate}
        reason.append("That is {share} of a node's {node_rate_GBps} GB/s, one way.")
    advice = "Compare what crosses the network with the rate of the network cards."
    if low:
        advice = ("See that sizes are large (-e 1G), and that every card uses a network card of "
                  "its own (NCCL_DEBUG=INFO).")  # fmt: skip
    return found(
        case, "two_levels", figures, reason, advice,
        case.cited("busbw", "nic_per_card", "nodes", "cards"), fault=low, confidence=0.85,
    )  # fmt: skip


def fixed_step(case: Case) -> Finding | None:
    """One chunk a step: the time of a step makes the rate."""
    facts, rate = case.facts, case.facts.per_connection
    if not rate or not facts.chunk_bytes:
        return None
    step = facts.chunk_bytes / (rate * GB)
    limit = min(filter(None, (case.nic, facts.wire_test)), default=None)
    if step < STEP or (limit is not None and rate > SOUND * limit):
        return None
    figures: Figures = {"chunk_bytes": facts.chunk_bytes, "step_us": step * 1e6, "rate_GBps": rate}
    reason = ["A connection moves one chunk a step, and a step takes {step_us} us whatever the "
              "wire could do: {chunk_bytes} / {step_us} us = {rate_GBps} GB/s."]  # fmt: skip
    larger = {size: rate for size, rate in facts.by_chunk.items() if rate}
    if larger:
        size = max(larger)
        figures |= {"larger_bytes": size, "larger_GBps": larger[size],
                    "larger_step_us": size / (larger[size] * GB) * 1e6}  # fmt: skip
        reason.append("Chunks of {larger_bytes} agree with it: {larger_step_us} us a step, and "
                      "{larger_GBps} GB/s.")  # fmt: skip
    return found(
        case, "fixed_step", figures, reason,
        "Try larger chunks (NCCL_P2P_NET_CHUNKSIZE=1048576, NCCL_BUFFSIZE) or more connections at "
        "once; then look for what makes a step slow: the proxy's core, interrupts, a way through "
        "the host's memory.",
        case.cited("per_connection", "chunk_bytes", "by_chunk", "wire_test"), fault=True,
        confidence=0.85,
    )  # fmt: skip


def version_regression(case: Case) -> Finding | None:
    """A newer library is slower."""
    series = sorted(case.facts.by_version.items(), key=lambda item: _version(item[0]))
    falls = (pair for pair in pairwise(series) if pair[1][1] < OLDER * pair[0][1])
    fall = next(falls, None)
    if fall is None:
        return None
    (before, fast), (after, slow) = fall
    figures: Figures = {
        "before": before, "before_GBps": fast, "after": after, "after_GBps": slow,
        "times": fast / max(slow, 1e-9), "share": slow / max(fast, 1e-9),
    }  # fmt: skip
    if fast < PATH * slow:
        return _less_by_choice(case, figures)
    return found(
        case, "version_regression", figures,
        ["{after} is {times} times slower than {before}: {after_GBps} after {before_GBps} GB/s.",
         "So much is seldom another choice of algorithm alone: more often a fast path is lost "
         "(GPUDirect RDMA, a network card, the plugin for the network); the figures do not tell "
         "which."],
        "Compare the logs of both versions (NCCL_DEBUG=INFO): which network cards are chosen, does "
        "GDRDMA stand behind NET/IB, is the plugin loaded? Then set NCCL_NET_GDR_LEVEL, "
        "NCCL_IB_HCA and NCCL_ALGO to what the older one chose.",
        case.cited("by_version"), fault=True,
    )  # fmt: skip


def _less_by_choice(case: Case, figures: Figures) -> Finding:
    """A fall that another choice of the library explains."""
    advice = ("Compare the logs of both versions (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=INIT,GRAPH,"
              "TUNING): channels, algorithm, protocol, network cards; then set what the older one "
              "chose.")  # fmt: skip
    if case.collective in ("send_recv", "all_to_all"):
        advice = ("Set NCCL_NCHANNELS_PER_NET_PEER=4 (from 2.20 on a pair of ranks gets fewer "
                  "channels, which suits all-to-all and not single pairs), and compare the logs of "
                  "both versions.")  # fmt: skip
    return found(
        case, "version_regression", figures,
        ["{after} reaches {share} of {before}: {after_GBps} after {before_GBps} GB/s.",
         "With so little lost it is as a rule no path, but how the newer version spreads the "
         "work (channels for each peer, algorithm, protocol)."],
        advice, case.cited("by_version"), fault=True, confidence=0.7,
    )  # fmt: skip


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:4])


def slow_nodes(case: Case) -> Finding | None:
    """Every slow pair has one of a few nodes in it."""
    pairs = case.facts.by_pair
    usual = max(pairs.values(), default=0.0)
    slow = {pair: rate for pair, rate in pairs.items() if rate < SLOW * usual}
    if not slow or len(slow) == len(pairs):
        return None
    sound = {node for pair in pairs if pair not in slow for node in pair}
    certain, doubtful = _suspects(list(slow), sound)
    names = ", ".join([*certain, *(f"{a} / {b}" for a, b in doubtful)])
    figures: Figures = {
        "nodes": names, "slow_GBps": sorted(slow.values())[len(slow) // 2], "usual_GBps": usual,
        "slow_pairs": len(slow), "pairs": len(pairs), "sound": ", ".join(sorted(sound)),
    }  # fmt: skip
    advice = "Look at their network cards (rate, width, errors, PCIe link), or take them out."
    if doubtful:
        advice = ("Look at their network cards (rate, width, errors, PCIe link), or take them out. "
                  "Of x / y test each with a sound node: {sound}.")  # fmt: skip
    return found(
        case, "slow_nodes", figures,
        ["Every slow pair ({slow_GBps} instead of {usual_GBps} GB/s) contains one of these nodes: "
         "{nodes}.",
         "Pairs without them are fast, so single nodes, their ports or their cables are likelier "
         "than the switches in between."],
        advice, case.cited("by_pair"), fault=True, confidence=0.85, subject=names,
    )  # fmt: skip


def _suspects(
    slow: list[tuple[str, str]], sound: set[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """Nodes that must be slow, the fewest that explain all; and pairs of which one must be."""
    certain = {a for pair in slow for a, b in (pair, pair[::-1]) if b in sound and a not in sound}
    rest = [pair for pair in slow if not certain & set(pair)]
    while rest:
        node, times = Counter(n for pair in rest for n in pair).most_common(1)[0]
        if times == 1:
            break
        certain.add(node)
        rest = [pair for pair in rest if node not in pair]
    return sorted(certain), rest
