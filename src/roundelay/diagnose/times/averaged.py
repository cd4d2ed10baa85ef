"""What NCCL Inspector's series for Prometheus show: the best of each call, and cards that differ.

A collective's kernel runs until the last rank has come, so of the cards of a communicator the one
with the shortest mean time is the one that others wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from ...formats.inspector_prom import Mean, Series
from ..finding import Evidence, Figures, Finding, names, tell
from ..speed.possible import Bounds, Odd, odd_findings
from .matched import TOGETHER

LISTED: Final = 8
SHORTER: Final = 0.7
"""Of the others' median time, below which a card comes last on the whole."""
FEWEST: Final = 3
"""Cards of which it can be told whether one differs."""
Found = Mapping[Series, Mean]


def averaged_findings(files: Sequence[tuple[str, Found]]) -> list[Finding]:
    """Of all files of a job."""
    every = [(file, series, mean) for file, found in files for series, mean in found.items()]
    odd = {(file, series): why for file, series, mean in every if (why := _odd(file, series, mean))}
    sound = [row for row in every if row[:2] not in odd]
    told = odd_findings(names([file for file, _ in files], 3), list(odd.values()))
    if not sound:
        return told
    return [*told, *_late(sound), _reached(sound)]


_Row = tuple[str, Series, Mean]


def _at(row: _Row) -> Evidence:
    file, series, mean = row
    parts = [series.node, series.card, series.operation, series.size, series.choice]
    if mean.busbw is not None:
        parts.append(f"{mean.busbw:g} GB/s")
    if mean.time_us is not None:
        parts.append(f"{mean.time_us:g} us")
    return Evidence(file, mean.line, " ".join(filter(None, parts))[:300])


def _odd(file: str, series: Series, mean: Mean) -> Odd | None:
    at = _at((file, series, mean))
    if mean.time_us is not None and mean.time_us <= 0:
        return Odd("time", "time", mean.time_us, 0.0, at)
    if mean.busbw is not None and mean.busbw < 0:
        return Odd("negative", "busbw", mean.busbw, 0.0, at)
    if mean.busbw is not None and series.ranks != 1 and mean.busbw > Bounds.busbw:
        return Odd("high", "busbw", mean.busbw, Bounds.busbw, at)
    return None


def _reached(rows: Sequence[_Row]) -> Finding:
    """The best of each operation."""
    best: dict[str, _Row] = {}
    for row in rows:
        _, series, mean = row
        known = best.get(series.operation)
        if known is None or (mean.busbw or 0.0) > (known[2].busbw or 0.0):
            best[series.operation] = row
    parts = [f"{name} {mean.busbw or 0.0:.4g} GB/s ({series.size or '?'}, {series.choice or '?'})"
             for name, (_, series, mean) in best.items()]  # fmt: skip
    figures: Figures = {
        "series": len(rows), "cards": len({(s.node, s.card) for _, s, _ in rows}),
        "comms": len({s.comm for _, s, _ in rows}), "best": names(parts, LISTED),
    }  # fmt: skip
    return tell(
        "inspected", f"n = {max(s.ranks for _, s, _ in rows) or '?'}", figures,
        ["NCCL Inspector has {series} series of {cards:card|cards} and "
         "{comms:communicator|communicators} for Prometheus; the highest mean bus bandwidths: "
         "{best}.",
         "A mean has waiting for late ranks in it, so low ones say little of the network."],
        "Compare the highest with what the machine should do: roundelay cost, or nccl-tests and "
        "roundelay check. Lines of JSON (without NCCL_INSPECTOR_PROM_DUMP) tell each call.",
        tuple(_at(row) for row in list(best.values())[:LISTED]), confidence=0.9, area="time",
    )  # fmt: skip


def _late(rows: Sequence[_Row]) -> list[Finding]:
    """Cards whose calls are shorter than those of the others, series by series."""
    same: dict[Series, list[_Row]] = {}
    for row in rows:
        series = row[1]
        if row[2].time_us is not None and series.operation in TOGETHER:
            same.setdefault(series._replace(node="", card=""), []).append(row)
    found = []
    for series, group in same.items():
        times = [mean.time_us or 0.0 for _, _, mean in group]
        usual = median(times)
        short = [row for row in group if (row[2].time_us or 0.0) < SHORTER * usual]
        if len(group) < FEWEST or len(short) != 1:
            continue
        _, who, mean = short[0]
        figures: Figures = {
            "who": f"{who.node} {who.card}".strip() or "?", "operation": series.operation,
            "size": series.size or "?", "short_us": mean.time_us or 0.0, "usual_us": usual,
            "cards": len(group),
        }  # fmt: skip
        found.append(tell(
            "late_rank", f"{figures['who']}, group {series.comm or '?'}", figures,
            ["Calls of {operation} ({size}) take {short_us} us on {who}, and {usual_us} us on the "
             "card in the middle of {cards}: who comes last waits for nobody, so the others wait "
             "for {who}."],
            "Trace some steps of this card and of another with torch's profiler, and give both "
            "files here.", (_at(short[0]), _at(max(group, key=lambda r: r[2].time_us or 0.0))),
            fault=True, confidence=0.6, area="time",
        ))  # fmt: skip
    return found[:LISTED]
