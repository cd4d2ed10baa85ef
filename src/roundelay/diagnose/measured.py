"""What a table of nccl-tests says by itself: its peak, and what its columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from ..formats.nccl_tests import Table, bus_factor
from ..topology import Cluster
from .expected import Judged
from .finding import Evidence, Figures, Finding, tell
from .possible import Bounds, sound_table


def measured_findings(
    file: str, tables: Sequence[Table], cluster: Cluster | None, rows: Sequence[Judged] = ()
) -> list[Finding]:
    """A finding for each table, by the figures that can be; with rows, also how good it is."""
    found = []
    for table in tables:
        sound = sound_table(table, file, Bounds.of(cluster))[0]
        if sound is not None:
            lines = {row.line for row in sound.rows}
            found.append(_peak(file, sound, [row for row in rows if row.row.line in lines]))
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


def _peak(file: str, table: Table, judged: Sequence[Judged]) -> Finding | None:
    timings = [(timing, row) for row in table.rows for _, timing in row.timings()]
    best, row = max(timings, key=lambda pair: pair[0].busbw)
    if not best.busbw or not table.collective:
        return None
    figures: Figures = {
        "collective": table.collective, "peak_GBps": best.busbw, "bytes": row.size,
        "ranks": table.ranks or "?", "least_us": min(timing.time_us for timing, _ in timings),
    }  # fmt: skip
    reason = ["The highest busbw of {collective} is {peak_GBps} GB/s, at {bytes} (ranks: {ranks}); "
              "no call takes less than {least_us} us."]  # fmt: skip
    if table.ranks:
        figures["factor"] = float(bus_factor(table.collective, table.ranks))
        reason.append("busbw is {factor} times algbw.")
    errors = [timing.error for timing, _ in timings if timing.error is not None]
    if errors:
        figures["error"] = max(errors)
        reason.append("The column error is the largest relative rounding error, {error}, and no "
                      "count of wrong elements, as #wrong of newer versions is.")  # fmt: skip
    reason[1:1] = _beside(judged, row.line, figures)
    advice = "Name the cluster (--cluster) to have each row compared with what is expected of it."
    if judged:
        advice = "`roundelay check` with the same --cluster shows each row beside what is expected."
    return tell(
        "measured", f"{table.collective}, n = {table.ranks or '?'}", figures, reason,
        advice, (Evidence(file, row.line, row.text),), confidence=0.95,
    )  # fmt: skip
