"""What tables say beside one another, and beside the network cards that a command names."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from ...formats.nccl_tests import Row, Table
from ..finding import Evidence, Figures, Finding, tell

ALIKE: Final = 0.05
"""Of the time: runs on one machine differ by as much of themselves."""
LARGE: Final = 2**20
"""Bytes from which a rate tells more than latency."""
SLOWER: Final = 1.3
"""Times as long, of sizes that are nearly the same."""
RATES: Final = (100, 200, 400, 800)
"""Gb/s of a port of a network card."""


def beside_findings(file: str, tables: Sequence[Table]) -> list[Finding]:
    """Two tables of one thing, and ranks that are fewer than the network cards named."""
    found = [_two(file, *tables)] if len(tables) == 2 else []
    found += [_unaligned(file, tables), *(_one_each(file, table) for table in tables)]
    return [finding for finding in found if finding is not None]


def _two(file: str, first: Table, second: Table) -> Finding | None:
    """The second run beside the first, at the sizes that both have."""
    if not first.collective or _what(first) != _what(second):
        return None
    before = {row.size: row for row in first.rows}
    pairs = [(before[row.size], row) for row in second.rows if row.size and row.size in before]
    ratios = [b.best.time_us / a.best.time_us for a, b in pairs if a.best.time_us > 0]
    if len(ratios) != len(pairs) or not ratios:
        return None
    a, b = max(pairs, key=_apart)
    figures: Figures = {
        "collective": first.collective, "sizes": len(pairs), "times": median(ratios),
        "bytes": a.size, "first_us": a.best.time_us, "second_us": b.best.time_us,
    }  # fmt: skip
    reason = ["Two tables of {collective} with {sizes:size|sizes} in common: the second takes "
              "{times} times the time of the first (median), and differs most at {bytes}, "
              "{second_us} us after {first_us} us."]  # fmt: skip
    if abs(median(ratios) - 1) < ALIKE:
        reason.append("Runs differ by as much of themselves.")
    return tell(
        "two_runs", file, figures, reason,
        "Repeat each a few times, on the same nodes, before a difference is believed.",
        tuple(Evidence(file, row.line, row.text) for row in (a, b)), confidence=0.85,
    )  # fmt: skip


def _unaligned(file: str, tables: Sequence[Table]) -> Finding | None:
    """A size that is no multiple of 16, beside one that is, and much slower."""
    rows = [(table.collective, row) for table in tables for row in table.rows if row.size > LARGE]
    for name, odd in rows:
        near = [row for other, row in rows if other == name and odd.size % 16
                and not row.size % 16 and abs(row.size - odd.size) < 0.01 * odd.size]  # fmt: skip
        if not near or odd.best.time_us < SLOWER * near[0].best.time_us:
            continue
        figures: Figures = {
            "odd": odd.size, "even": near[0].size, "odd_GBps": odd.best.busbw,
            "even_GBps": near[0].best.busbw, "times": odd.best.time_us / near[0].best.time_us,
        }  # fmt: skip
        return tell(
            "two_runs", name or file, figures,
            ["A size of {odd} B is no multiple of 16 and takes {times} times as long as one of "
             "{even} B: {odd_GBps} GB/s beside {even_GBps} GB/s.",
             "Kernels copy 16 bytes at once only where sizes and addresses allow it, and piece by "
             "piece elsewhere. No link differs between the two."],
            "Use sizes and offsets that are multiples of 16 bytes, and compare runs at the same "
            "size.",
            (Evidence(file, odd.line, odd.text), Evidence(file, near[0].line, near[0].text)),
            confidence=0.8,
        )  # fmt: skip
    return None


def _what(table: Table) -> tuple[object, ...]:
    return table.collective, table.ranks, {(row.dtype, row.redop) for row in table.rows}


def _apart(pair: tuple[Row, Row]) -> float:
    a, b = pair[0].best.time_us, pair[1].best.time_us
    return max(a, b) / min(a, b)


def _one_each(file: str, table: Table) -> Finding | None:
    """So few ranks that most of the network cards named have nothing to carry."""
    timings = [(timing.busbw, row) for row in table.rows for _, timing in row.timings()]
    rate, row = max(timings, key=lambda pair: pair[0])
    fits = next((gbps for gbps in RATES if rate <= gbps / 8), None)
    if table.ranks is None or not 2 <= table.ranks <= len(table.named) or fits is None:
        return None
    figures: Figures = {
        "ranks": table.ranks, "named": len(table.named), "busbw_GBps": rate, "fits_Gbps": fits,
        "fits_GBps": fits / 8, "share": rate / fits * 8,
    }  # fmt: skip
    return tell(
        "fewer_ranks_than_nics", file, figures,
        ["{ranks:rank|ranks}, and {named:network card is|network cards are} named in the command: "
         "a rank uses the network cards that are next to its card, mostly one, so with one rank a "
         "node the others carry nothing, and their rates do not add up.",
         "{busbw_GBps} GB/s is {share} of one of {fits_Gbps} Gb/s ({fits_GBps} GB/s one way)."],
        "Start one process for each card of a node (-N 8, or -g 8): then each brings its own "
        "network card.",
        (Evidence(file, row.line, row.text),), confidence=0.75,
    )  # fmt: skip
