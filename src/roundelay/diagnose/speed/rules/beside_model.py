"""What the rows show beside what the model expects."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean, median
from typing import Final

from ...finding import Figures, Finding
from ..case import GB, Case, found
from ..expected import Judged
from .tables import SMALL, falls_with_size

TIMES: Final = 4.0
"""Times the model's latency that small calls over a network that is assumed must take."""
LITTLE: Final = 0.25
"""Of the rate of network cards that are assumed: less is off whatever they are."""
FLOOR_US: Final = 8.0
"""Above the model that the time of small calls must lie to be called a floor."""
RING: Final = (0.7, 0.87)
"""Of the links' line rate one way, between which a ring's busbw lies at large sizes."""
NO_NVLS: Final = (
    "It is what a ring gives, {line_share} of the {line_GBps} GB/s one way, as where the "
    "NVSwitch does not add (NVLS), be it turned off (NCCL_NVLS_ENABLE=0), not in "
    "this version of NCCL (before 2.18), or not to be had in the virtual machine."
)
FILLED: Final = 0.85
"""Of the line of slower network cards, from which they are full."""
LARGE: Final = 32 << 20
"""Bytes from which bandwidth decides."""
MUCH: Final = 2.0
"""Times the expected time that middle sizes must take to be called off: versions of NCCL differ."""


def launch_floor(case: Case) -> Finding | None:
    """Small calls all take one time, well above what cards and links need."""
    small = [row for row in _best(case.rows) if row.row.size <= SMALL]
    if len(small) < 2:
        return None
    times = [row.timing.time_us for row in small]
    floor, model = median(times), max(row.expected_us for row in small)
    if max(times) > 1.6 * min(times) or floor < 1.4 * model or floor - model < FLOOR_US:
        return None
    figures: Figures = {"floor_us": floor, "expected_us": model, "upto_bytes": small[-1].row.size}
    between = (case.nodes or 1) > 1 or (case.cluster is not None and case.cluster.hosts > 1)
    if between and case.nics_assumed and floor < TIMES * model:
        return None
    return found(
        case, "launch_floor", figures,
        ["Up to {upto_bytes} every call takes about {floor_us} us, while cards and links need at "
         "most {expected_us} us.",
         "Between nodes that is latency of the network, its plugin or NCCL's proxy, or launching "
         "by the host; the table does not tell which." if between else
         "Inside a node that is launching by the host as a rule."],
        "Run on one node alone: what stays there is launching, which CUDA graphs (-G 1) and "
        "binding to cores lower; the rest is the network's and its plugin's." if between else
        'Write launch = "{floor_us} us" into the cluster file to compare the rest. CUDA graphs '
        "(-G 1), binding to cores and a fixed clock lower it.",
        case.lines(*(row.row for row in small)), confidence=0.75,
    )  # fmt: skip


def far_below(case: Case) -> Finding | None:
    """Large messages are slower than they should be."""
    rows = _best(case.rows)
    large = [row for row in rows if row.row.size >= max(LARGE, rows[-1].row.size // 4)]
    best = min(large, key=lambda row: row.ratio, default=None)
    guessed = (case.nodes or 1) > 1 and case.nics_assumed
    if guessed and large:
        best = max(large, key=lambda row: row.timing.busbw)
    if best is None or best.verdict != "slower":
        return None
    if guessed and (falls_with_size(case) or case.node_rate is None):
        return None
    figures: Figures = {
        "busbw_GBps": best.timing.busbw, "expected_GBps": best.expected_busbw,
        "share": 1 / best.ratio, "at_bytes": best.row.size, "algorithm": best.expected.algorithm,
        "link": best.expected.binding_link,
    }  # fmt: skip
    reason = ["{busbw_GBps} GB/s at {at_bytes} is {share} of the {expected_GBps} GB/s expected "
              "({algorithm}; bound by {link})."]  # fmt: skip
    inside = (case.nodes or 1) == 1
    near = _like_fewer(case, best.timing.busbw)
    if inside:
        near = _like_pcie(case, best.timing.busbw) or _like_ring(case, best.timing.busbw)
    if near is not None:
        figures |= near[0]
        reason.append(near[1])
    if guessed:
        figures |= {"assumed": case.nics or 0, "each_Gbps": 8 * (case.nic or 0.0)}
        reason.append("That supposes {assumed:network card|network cards} of {each_Gbps} Gb/s a "
                      "node, as machines with such cards have as a rule; the text does not name "
                      "them, and with fewer or slower ones it may be all that they carry."
                      )  # fmt: skip
        if slower := _of_slower(case, best.timing.busbw, best.timing.algbw):
            figures |= slower
            reason.append("{assumed:card|cards} of {slow_Gbps} Gb/s carry {slow_GBps} GB/s one "
                          "way: with such ones {slow_share} of the line is reached, and nothing "
                          "is off.")  # fmt: skip
    little = best.timing.busbw < LITTLE * (case.node_rate or 0.0)
    return found(
        case, "far_below", figures, reason, _INSIDE if inside else _BETWEEN, case.lines(best.row),
        fault=little or not guessed, confidence=0.9 if best.ratio > 2 else 0.7,
    )  # fmt: skip


_INSIDE: Final = (
    "See that cards reach one another by NVLink: nvidia-smi topo -m, nvidia-smi nvlink -s, and "
    "`via P2P` in the log of NCCL_DEBUG=INFO."
)
_BETWEEN: Final = (
    "Run with NCCL_DEBUG=INFO: are all network cards used, each by the card next to it "
    "(NCCL_IB_HCA), and does GDRDMA stand behind NET/IB? Without it data pass through the host's "
    "memory. Test each network card with ib_write_bw."
)


def _like_pcie(case: Case, busbw: float) -> tuple[Figures, str] | None:
    """Whether it is what PCIe gives."""
    if case.cluster is None or case.cluster.inside.kind == "bus":
        return None
    pcie = case.cluster.nics.card_pcie / GB
    if not 0 < busbw < 1.05 * pcie:
        return None
    text = "No more than PCIe gives, {pcie_GBps} GB/s one way, as where NVLink is not used."
    return {"pcie_GBps": pcie}, text


def _like_ring(case: Case, busbw: float) -> tuple[Figures, str] | None:
    """Whether it is what a ring gives where the switch could add."""
    if case.cluster is None or not case.cluster.inside.multicast or case.collective != "all_reduce":
        return None
    line = case.cluster.inside.rate / GB
    if not RING[0] * line < busbw < RING[1] * line:
        return None
    return {"line_GBps": line, "line_share": busbw / line}, NO_NVLS


def _of_slower(case: Case, busbw: float, algbw: float) -> Figures | None:
    """Of how slow network cards it would be nearly all; of a tree the data cross once each way."""
    nics, nic = case.nics or 0, case.nic or 0.0
    carried = algbw if case.nodes == 2 and case.collective == "all_reduce" else busbw
    for gbps in (100, 200):
        line = nics * gbps / 8
        if gbps / 8 < 0.9 * nic and FILLED * line < carried <= line:
            return {"slow_Gbps": gbps, "slow_GBps": line, "slow_share": carried / line}
    return None


def _like_fewer(case: Case, busbw: float) -> tuple[Figures, str] | None:
    """How many of a node's network cards would give it."""
    nics, nic, n = case.nics, case.nic, case.ranks
    if not (nics and nic and n):
        return None
    tree = case.nodes == 2 and case.collective == "all_reduce"
    each = nic * (2 * (n - 1) / n if tree else 1.0)
    used = max(1, -(-busbw // each))
    if used > nics / 2:
        return None
    figures: Figures = {"used_nics": int(used), "nics": nics, "used_GBps": used * each}
    return (
        figures,
        "{used_nics} of {nics:network card|network cards} are enough for that: up to {used_GBps} "
        "GB/s.",
    )


def ring_rate(case: Case) -> Finding | None:
    """Of facts: an all_reduce at the ring's rate where the switch could add."""
    rate = case.best_rate
    if case.table is not None or rate is None or (case.nodes or 1) > 1 or (case.ranks or 0) < 3:
        return None
    off = any("off" in label for label in case.facts.busbw)
    sold = case.facts.advertised or case.facts.duplex
    near = None if off or sold else _like_ring(case, rate)
    if near is None:
        return None
    expected = case.expected_busbw("all_reduce")
    figures: Figures = {"measured_GBps": rate, **near[0]}
    reason = ["{measured_GBps} GB/s is no fault of the links.", near[1]]
    if expected is not None and expected > 1.1 * rate:
        figures["expected_GBps"] = expected
        reason.append("With it about {expected_GBps} GB/s are to be expected.")
    return found(
        case, "ring_rate", figures, reason,
        "See NCCL_NVLS_ENABLE, the version of NCCL, `NVLS multicast support` in the log of "
        "NCCL_DEBUG=INFO, and that the fabric manager runs.",
        case.cited("busbw", "measured", "card"), confidence=0.8,
    )  # fmt: skip


def slower(case: Case) -> Finding | None:
    """Several sizes are slower than expected, though the largest are not."""
    rows = _best(case.rows)
    if not rows or rows[-1].verdict == "slower" or rows[-1].row.size < LARGE:
        return None
    if (case.nodes or 1) > 1 and case.nics_assumed:
        return None
    floor = median(row.timing.time_us for row in rows[:3])
    late = [row for row in rows if row.verdict == "slower" and row.timing.time_us > 1.6 * floor]
    if len(late) < 2:
        return None
    times = geometric_mean(row.ratio for row in late)
    figures: Figures = {
        "from_bytes": late[0].row.size, "to_bytes": late[-1].row.size, "rows": len(late),
        "times": times, "algorithm": late[0].expected.algorithm,
        "protocol": late[0].expected.protocol,
    }  # fmt: skip
    return found(
        case, "slower_in_the_middle", figures,
        ["From {from_bytes} to {to_bytes} {rows:size|sizes} take {times} times as long as expected "
         "({algorithm}, {protocol}), while large ones do not: latency, or the choice of algorithm, "
         "is off, and not bandwidth."],
        "Compare with NCCL_ALGO and NCCL_PROTO set to the choice expected; see that no variable, "
        "tuner plugin or /etc/nccl.conf forces another.",
        case.lines(*(row.row for row in late[:5])), fault=times > MUCH, confidence=0.6,
    )  # fmt: skip


def _best(rows: Sequence[Judged]) -> list[Judged]:
    """The faster form of each row, by size."""
    best: dict[int, Judged] = {}
    for row in rows:
        known = best.get(row.row.line)
        if known is None or row.timing.time_us < known.timing.time_us:
            best[row.row.line] = row
    return sorted(best.values(), key=lambda row: row.row.size)
