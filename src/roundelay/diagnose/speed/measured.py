"""What a table of nccl-tests says by itself: its peak, what its columns mean, who ran."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from ...formats.nccl_tests import Measured, Row, Table, bus_factor, sent_only
from ...topology import Cluster
from ..finding import Evidence, Figures, Finding, names, tell
from .beside import beside_findings
from .cards import card_of
from .expected import Judged
from .possible import Bounds, sound_table

LOW: Final = 10.0
"""GB/s: less is no rate of a network card of 100 Gb/s, nor of PCIe 3.0 x16 (12.5 and 15.75 one way,
of which nine tenths and three quarters are usual)."""
RINGS: Final = frozenset(("all_reduce", "all_gather", "reduce_scatter"))
"""Collectives of which a ring's busbw is a rate between hosts."""
LARGE: Final = 2**26
"""Bytes: from this size on, a rate tells what the links carry."""
LONG_US: Final = 200.0
"""us: a small call that takes more is slow by any network between cards."""
SMALL: Final = 2**20
"""Bytes: where no size is larger, times are latency."""
FLAT_FROM: Final = 2**24
"""Bytes that the largest size must have, for a rate that stays to be what a way carries."""
FLAT: Final = 0.93
"""Of the highest rate: sizes above it are called flat."""
PROPORTIONAL: Final = 0.8
"""Of the sizes' ratio: times that grow by more are no latency."""
ROUNDED: Final = 0.01
"""A relative error above it is no rounding of a sum."""


def measured_findings(
    file: str, measured: Measured, cluster: Cluster | None, rows: Sequence[Judged] = ()
) -> list[Finding]:
    """What is said of how it was run, and of each table by the figures that can be.

    Args:
        file: that was read.
        measured: what it holds.
        cluster: where it was measured, which bounds what can be.
        rows: beside what is expected; with them it is also said how good a table is.
    """
    found = [_apart(file, measured), _alone(file, measured), _averages(file, measured)]
    whole: list[Table] = []
    for table in measured.tables:
        sound = sound_table(table, file, Bounds.of(cluster))[0]
        if sound is not None:
            lines = {row.line for row in sound.rows}
            own = [row for row in rows if row.row.line in lines]
            found += [_peak(file, sound, own), _small(file, sound), _empty(file, sound)]
            whole.append(sound)
    found += beside_findings(file, whole)
    return [finding for finding in found if finding is not None]


def _beside(judged: Sequence[Judged], line: int, figures: Figures) -> list[str]:
    """How many rows are as expected, and what is expected at the peak."""
    if not judged:
        return []
    best = [row.expected_busbw for row in judged if row.row.line == line]
    figures |= {
        "good": sum(row.verdict == "as expected" for row in judged), "judged": len(judged),
        "times": median(row.ratio for row in judged), "expected_GBps": max(best, default=0.0),
    }  # fmt: skip
    return ["Of {judged:time|times} {good} are as expected, where {expected_GBps} GB/s is expected "
            "at the peak; the median time is {times} times the expected one."]  # fmt: skip


def _apart(file: str, measured: Measured) -> Finding | None:
    """The same rank is listed on several hosts."""
    if not measured.apart:
        return None
    hosts = {device.host for table in measured.tables for device in table.devices}
    hosts |= {device.host for device in (*measured.apart, *measured.listed)}
    rank = measured.apart[0].rank
    figures: Figures = {"rank": rank, "hosts": names(sorted(hosts), 4)}
    return tell(
        "ran_alone", file, figures,
        ["Rank {rank} is listed on more than one host ({hosts}): the processes made no job "
         "together. Each host measured by itself, nothing crossed the network, and rows of "
         "several tables stand among one another.",
         "The likely cause is a test built without MPI."],
        "Build with `make MPI=1 MPI_HOME=...` and start one process a card with mpirun. The lines "
        "`# Rank` must number all ranks of all hosts once.",
        (Evidence(file, 0, f"Rank {rank}: {figures['hosts']}"),), fault=True, confidence=0.9,
    )  # fmt: skip


def _alone(file: str, measured: Measured) -> Finding | None:
    """One rank, and no row."""
    if len(measured.listed) != 1 or measured.apart:
        return None
    one = measured.listed[0]
    return tell(
        "one_rank", file, {"ranks": 1, "host": one.host},
        ["One rank only is listed (on {host}): nothing is exchanged, so busbw and its average are "
         "0 by their formula, (n - 1) / n with n = 1. Nothing was measured."],
        "Use two cards or more: -g 8 on one host, or one process a card with mpirun and a test "
        "built with MPI=1.",
        (Evidence(file, 0, f"Rank {one.rank} on {one.host}"),), fault=True, confidence=0.9,
    )  # fmt: skip


def _averages(file: str, measured: Measured) -> Finding | None:
    """An average whose rows are not there."""
    if not measured.averages:
        return None
    line, rate = measured.averages[0]
    if not rate:
        return None
    return tell(
        "average", file, {"average_GBps": rate},
        ["{average_GBps} GB/s is the mean over all sizes that were measured, small ones included: "
         "it depends on which sizes were chosen, and is no verdict. Its rows are not in this "
         "text."],
        "Judge by busbw at the largest sizes, 1 GiB and above, and give all rows.",
        (Evidence(file, line, f"Avg bus bandwidth: {rate}"),), confidence=0.9,
    )  # fmt: skip


def _small(file: str, table: Table) -> Finding | None:
    """No size at which bandwidth could show."""
    largest = max(row.size for row in table.rows)
    times = [timing.time_us for row in table.rows if row.size for _, timing in row.timings()]
    if largest >= SMALL or not times or _wrong(table) or _grows(table):
        return None
    figures: Figures = {"largest_bytes": largest, "least_us": min(times), "most_us": max(times)}
    reason = ["Sizes go up to {largest_bytes} only, and calls take {least_us} to {most_us} us: "
              "that is latency, of which the rate follows. What the links carry cannot be told "
              "from it."]  # fmt: skip
    if min(times) > LONG_US and max(times) < 2 * min(times):
        reason.append("That is long: some tens of us are usual. Whatever the size, a call takes "
                      "the same, so something costs it each time: many ranks over a slow way "
                      "between hosts (TCP sockets), the host that launches it, or a process that "
                      "shares its cores.")  # fmt: skip
    return tell(
        "small_only", table.collective or file, figures, reason,
        "Run up to 8 GiB to see bandwidth: -b 8 -e 8G -f 2.",
        tuple(Evidence(file, row.line, row.text) for row in table.rows[-1:]), confidence=0.9,
    )  # fmt: skip


def _wrong(table: Table) -> bool:
    """Whether results are wrong, so that rates tell nothing."""
    return bool(table.failed) or any(t.wrong for row in table.rows for _, t in row.timings())


def _grows(table: Table) -> bool:
    """Whether time goes with the size at the largest ones: then it is no latency."""
    rows = sorted((row for row in table.rows if row.size), key=lambda row: row.size)[-2:]
    if len(rows) < 2 or rows[0].size == rows[1].size:
        return False
    times = rows[1].best.time_us / max(rows[0].best.time_us, 1e-9)
    return times > PROPORTIONAL * rows[1].size / rows[0].size


def _flat(table: Table) -> list[Row]:
    """The largest sizes, over which busbw stays; empty where it does not."""
    rows = sorted((row for row in table.rows if row.size >= SMALL), key=lambda row: row.size)
    peak = max((row.best.busbw for row in rows), default=0.0)
    first = len(rows)
    while first and rows[first - 1].best.busbw >= FLAT * peak:
        first -= 1
    flat = rows[first:]
    whole = len(flat) > 2 and flat[-1].size >= max(4 * flat[0].size, FLAT_FROM)
    return flat if whole else []


def _empty(file: str, table: Table) -> Finding | None:
    """Sizes that are less than one element for each rank."""
    rows = [row for row in table.rows if not row.size]
    if not rows:
        return None
    times = [timing.time_us for row in rows for _, timing in row.timings()]
    figures: Figures = {"rows": len(rows), "call_us": median(times)}
    reason = ["{rows:row has|rows have} size 0: the test divides what was asked among all ranks "
              "and rounds it down, to whole elements or to 16 bytes, so nothing is sent, and "
              "{call_us} us is what a call itself takes. That is no fault."]  # fmt: skip
    advice = "Begin at a larger size (-b 1K)."
    least = min((row.size for row in table.rows if row.size), default=0)
    if least:
        figures["least_bytes"] = least
        advice = "Begin (-b) at {least_bytes}, the first size of which something is sent."
    return tell(
        "empty_rows", table.collective or file, figures, reason, advice,
        tuple(Evidence(file, row.line, row.text) for row in rows[:2]), confidence=0.9,
    )  # fmt: skip


def _peak(file: str, table: Table, judged: Sequence[Judged]) -> Finding | None:
    timings = [(timing, row) for row in table.rows if row.size for _, timing in row.timings()]
    if not timings:
        return None
    best, row = max(timings, key=lambda pair: pair[0].busbw)
    if not best.busbw or not table.collective:
        return None
    figures: Figures = {
        "collective": table.collective, "peak_GBps": best.busbw, "bytes": row.size,
        "ranks": table.ranks or "?", "least_us": min(timing.time_us for timing, _ in timings),
    }  # fmt: skip
    reason = ["The highest busbw of {collective} is {peak_GBps} GB/s, at {bytes} (ranks: {ranks}); "
              "no call takes less than {least_us} us."]  # fmt: skip
    if table.ranks and not sent_only(row):
        figures["factor"] = float(bus_factor(table.collective, table.ranks))
        reason.append("busbw is {factor} times algbw.")
    elif table.ranks:
        reason.append("algbw is equal to it: old versions of nccl-tests count in both only the "
                      "n - 1 of n pieces that a rank sends.")  # fmt: skip
    if table.ranks and 0 < len(table.devices) < table.ranks:
        figures["listed"] = len(table.devices)
        reason.append("Only {listed:rank is|ranks are} listed, but the ratio of busbw to algbw is "
                      "that of {ranks}: lines are left out of this text.")  # fmt: skip
    errors = [timing.error for timing, _ in timings if timing.error is not None]
    if errors and max(errors) < ROUNDED and not table.failed:
        figures["error"] = max(errors)
        reason.append("The column error is the largest relative rounding error, {error}, and no "
                      "count of wrong elements, as #wrong of newer versions is.")  # fmt: skip
    reason[1:1] = _beside(judged, row.line, figures)
    reason += _size_matters(table, best.busbw, figures)
    advice = "Name the cluster (--cluster) to have each row compared with what is expected of it."
    if judged:
        advice = "`roundelay check` with the same --cluster shows each row beside what is expected."
    return tell(
        "measured", f"{table.collective}, n = {table.ranks or '?'}", figures, reason,
        advice, (Evidence(file, row.line, row.text),), confidence=0.95,
    )  # fmt: skip


def _size_matters(table: Table, peak: float, figures: Figures) -> list[str]:
    """What the largest size lets say of the peak."""
    largest = max(row.size for row in table.rows)
    if _wrong(table):
        return []
    flat = _flat(table)
    told = _of_flat(table, flat, figures) if flat else []
    if SMALL <= largest < LARGE and not flat:
        figures["largest_bytes"] = largest
        return ["The largest size, {largest_bytes}, is small: a rate tells what the links carry "
                "from 64 MiB on, and the peak shows at 1 GiB and above."]  # fmt: skip
    ours = table.ranks_from == "text" and not table.devices  # `roundelay bench`, over processors
    kinds = [card_of(device.name) for device in table.devices]
    if table.nodes == 1 and any(kind is not None and not kind.line for kind in kinds):
        return told  # a rule tells what PCIe gives
    if (flat or largest >= LARGE) and peak < LOW and not ours:
        told += ["That is little for any link between cards: one network card of 100 Gb/s carries "
                "12.5 GB/s one way, PCIe 3.0 x16 about 12. NCCL's log (NCCL_DEBUG=INFO) shows "
                "which way it takes: TCP sockets, the host's memory, or one card for many "
                "ranks."]  # fmt: skip
    return told


def _of_flat(table: Table, flat: Sequence[Row], figures: Figures) -> list[str]:
    """A rate that stays over the largest sizes, and what bounds it between hosts."""
    figures |= {"flat_bytes": flat[0].size}
    told = ["From {flat_bytes} on busbw is flat: that is what the way carries as it is set, and "
            "larger sizes will not raise it much."]  # fmt: skip
    if (table.nodes or 1) < 2 or not table.ranks or table.ranks != len(table.devices):
        return told
    figures |= {"hosts": table.nodes or 0, "each": table.ranks // (table.nodes or 1)}
    told.append("The ranks are on {hosts} hosts, about {each} on each: such a rate is bounded as a "
                "rule by the way between hosts (network cards, their PCIe slots, the host's "
                "memory), and seldom by the links inside one.")  # fmt: skip
    if (table.nodes or 0) > 2 and table.collective in RINGS:
        figures["each_Gbps"] = 8 * max(row.best.busbw for row in flat)
        told.append("In a ring busbw is what all network cards of a host carry together, one way: "
                    "{each_Gbps} Gb/s.")  # fmt: skip
    return told
