"""What tables of kernels say: how much of the time is communication, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import Final

from ...formats.kernel_tables import Kernel, KernelTables, Shares, read_kernel_tables
from ...formats.kineto import words
from ...units import format_time
from ..finding import Evidence, Figures, Finding, names, tell

LISTED: Final = 6
UNEVEN: Final = 10.0
"""Times the median from which the longest call tells of waiting."""
_OF_HOST: Final = re.compile(r"(?:cuda|hip|cu)[A-Z]\w+(?:$|\s)")
STRAY: Final = 0.1
"""Of the time, by which a rank must compute more than the others to be called late."""


def table_of_kernels_findings(file: str, data: bytes) -> list[Finding]:
    """What the first table of a text says.

    Raises:
        RoundelayError: there is none.
    """
    tables = read_kernel_tables(data)
    if tables.tool == "hta":
        return _ranks(file, tables.shares)
    if tables.tool == "nsys copies":
        return [_copies(file, tables.kernels)]
    if tables.tool == "nsys ranges" or all(_OF_HOST.match(k.name) for k in tables.kernels):
        return [_of_host(file, tables.kernels)]
    return [found for found in (_waits(file, tables.kernels), _shares(file, tables)) if found]


def _rows(kernels: Sequence[Kernel]) -> str:
    told = [f"{_short(k)} {100 * k.share:.3g} % ({k.calls} x "
            f"{format_time(k.total / max(k.calls, 1))})" for k in kernels]  # fmt: skip
    return names(told, LISTED)


def _copies(file: str, kernels: Sequence[Kernel]) -> Finding:
    """The table of copies and fills (cuda_gpu_mem_time_sum)."""
    figures: Figures = {"told": _rows(kernels), "seconds": sum(k.total for k in kernels)}
    return tell(
        "copies", file, figures,
        ["Copies and fills take {seconds} s in all, of which: {told}. Collectives of NCCL are "
         "kernels and do not stand in this table; how many bytes were copied neither."],
        "Compare with the table of kernels (cuda_gpu_kern_sum) and of sizes "
        "(cuda_gpu_mem_size_sum).",
        _at(file, kernels), confidence=0.85, area="time",
    )  # fmt: skip


def _of_host(file: str, kernels: Sequence[Kernel]) -> Finding:
    """Tables of the host's calls (cuda_api_sum) and of ranges that a program has marked (NVTX)."""
    largest = sorted(kernels, key=lambda k: -k.share)
    figures: Figures = {"told": _rows(largest)}
    reason = ["Calls or ranges on the host, the largest first: {told}."]
    if any("nccl" in k.name.lower() for k in kernels):
        reason.append("Of a collective that is the time in which the host puts it in line, and not "
                      "how long it ran on the card.")  # fmt: skip
    if any("Synchronize" in k.name for k in kernels):
        reason.append("In calls that synchronize the host waits for work on the card, which may be "
                      "computation, copies or collectives.")  # fmt: skip
    return tell(
        "host_calls", file, figures, reason,
        "See the table of kernels (cuda_gpu_kern_sum) for how long collectives run.",
        _at(file, largest), confidence=0.85, area="time",
    )  # fmt: skip


def _communicates(kernel: Kernel) -> bool:
    return words.communicates(kernel.name) or kernel.name.startswith(("nccl:", "c10d::"))


def _at(file: str, kernels: Sequence[Kernel]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, k.line, f"{k.name[:80]} {100 * k.share:.3g} %, {k.calls} calls")
                 for k in kernels[:4])  # fmt: skip


def _waits(file: str, kernels: Sequence[Kernel]) -> Finding | None:
    """Collectives whose longest call is far from the usual one: data has the same size mostly."""
    odd = [k for k in kernels if _communicates(k) and k.median and k.most
           and k.most > UNEVEN * k.median and k.total / k.calls > 2 * k.median]  # fmt: skip
    if not odd:
        return None
    told = [f"{_short(k)} {format_time(k.median or 0)}, {format_time(k.total / k.calls)}, "
            f"{format_time(k.most or 0)}" for k in odd]  # fmt: skip
    return tell(
        "uneven_calls", file, {"told": names(told, LISTED)},
        ["Calls of the same kernel that last very differently (median, mean, longest): {told}. A "
         "kernel of NCCL begins when its own rank comes and ends when the last one has; unless "
         "sizes differ as much, the long ones waited for a rank that was late."],
        "Trace all ranks for the same steps: the one whose own calls are short is the late one.",
        _at(file, odd), confidence=0.75, area="time",
    )  # fmt: skip


def _short(kernel: Kernel) -> str:
    return kernel.name.split("(")[0][:60]


def _shares(file: str, tables: KernelTables) -> Finding:
    told = [k for k in tables.kernels if _communicates(k)]
    alone = [k for k in told if ":" not in k.name.split("(")[0]]  # else calls that launch kernels
    told = alone or told
    share = sum(k.share for k in told)
    largest = sorted(
        (k for k in tables.kernels if not _communicates(k) and k.share), key=lambda k: -k.share
    )
    figures: Figures = {
        "share": share, "seconds": sum(k.total for k in told), "kinds": len(told),
        "told": _rows(told),
        "others": names([f"{_short(k)} {100 * k.share:.3g} %" for k in largest], 3) or "-",
    }  # fmt: skip
    if not told:
        return tell(
            "kernel_times", file, figures,
            ["No kernel of the table communicates; the largest: {others}."],
            "If collectives ran, take the table of all kernels, not its first rows alone.",
            _at(file, largest), confidence=0.85, area="time",
        )  # fmt: skip
    return tell(
        "kernel_times", file, figures,
        ["Collectives take {share} of the kernels' time, {seconds} s in all: {told}; the largest "
         "of the others: {others}.",
         "Their time includes waiting for other ranks, and a part of it may be hidden behind "
         "computation; such a table doesn't tell either."],
        "Give the trace itself, of several ranks: then it is said how much is exposed, and who is "
        "late.",
        _at(file, sorted(told, key=lambda k: -k.share)), confidence=0.9, area="time",
    )  # fmt: skip


def _ranks(file: str, rows: Sequence[Shares]) -> list[Finding]:
    """Temporal breakdown and overlap, as HTA gives them."""
    found = []
    shares = {row.rank: row.values["compute_time_pctg"] / 100 for row in rows
              if "compute_time_pctg" in row.values}  # fmt: skip
    if len(shares) > 1 and (late := _late(file, rows, shares)):
        found.append(late)
    overlap = {r.rank: r.values["comp_comm_overlap_pctg"] / 100 for r in rows
               if "comp_comm_overlap_pctg" in r.values}  # fmt: skip
    parts = [(name, median(r.values[key] for r in rows if key in r.values))
             for name, key in (("compute", "compute_time_pctg"), ("idle", "idle_time_pctg"),
                               ("other kernels", "non_compute_time_pctg"))
             if any(key in r.values for r in rows)]  # fmt: skip
    figures: Figures = {"ranks": len(rows)}
    if overlap:
        figures |= {"least_share": min(overlap.values()), "most_share": max(overlap.values())}
        reason = ["Of {ranks:rank|ranks}: {least_share} to {most_share} of the time of "
                  "communication is hidden behind computation; the rest is exposed."]  # fmt: skip
        if max(overlap.values()) < 0.5:
            reason.append("Less than half is hidden: the step could gain by more overlap.")
    else:
        figures["parts"] = ", ".join(f"{name} {share:.3g} %" for name, share in parts) or "-"
        reason = ["Shares of the time of {ranks:rank|ranks} (median): {parts}."]
    found.append(tell(
        "hta_shares", file, figures, reason,
        "Give the traces that the table was made from: then it is said who delays whom.",
        tuple(Evidence(file, r.line, f"rank {r.rank}") for r in rows[:2]), confidence=0.85,
        area="time",
    ))  # fmt: skip
    return found


def _late(file: str, rows: Sequence[Shares], shares: dict[int, float]) -> Finding | None:
    usual = median(shares.values())
    rank, most = max(shares.items(), key=lambda pair: pair[1])
    if most - usual < STRAY:
        return None
    line = next(row.line for row in rows if row.rank == rank)
    return tell(
        "straggler", file, {"rank": rank, "share": most, "usual_share": usual},
        ["Rank {rank} computes {share} of its time, the others {usual_share} (median). So it is "
         "the one that the others may wait for: it has more to do or is slower, unless its step is "
         "another one."],
        "Look whether it gets more data (an uneven batch, more experts), or whether its card is "
        "slowed down (nvidia-smi -q -d PERFORMANCE).",
        (Evidence(file, line, f"rank {rank}"),), fault=True, confidence=0.75, area="time",
    )  # fmt: skip
