"""What a table of nccl-tests says by itself: its peak, and what its columns mean."""

from __future__ import annotations

from collections.abc import Sequence

from ..formats.nccl_tests import Table, bus_factor
from ..topology import Cluster
from .finding import Evidence, Figures, Finding, tell
from .possible import Bounds, sound_table


def measured_findings(file: str, tables: Sequence[Table], cluster: Cluster | None) -> list[Finding]:
    """A finding for each table, by the figures of it that can be."""
    sound = (sound_table(table, file, Bounds.of(cluster))[0] for table in tables)
    return [found for table in sound if table and (found := _peak(file, table)) is not None]


def _peak(file: str, table: Table) -> Finding | None:
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
    return tell(
        "measured", f"{table.collective}, n = {table.ranks or '?'}", figures, reason,
        "Name the cluster (--cluster) to have each row compared with what is expected of it.",
        (Evidence(file, row.line, row.text),), confidence=0.95,
    )  # fmt: skip
