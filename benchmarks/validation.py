"""Predicted against measured: NCCL's time on published machines, good and bad alike.

    ROUNDELAY_DATA=... python benchmarks/validation.py [--write | --fit]

The published figures of tests/published, and the calibration rows where ROUNDELAY_DATA names their
folder. With --write the tables go to benchmarks/validation.md and docs/guides/validation.md. With
--fit the constants are fitted anew and printed.
"""

import os
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "published"))

import validation_fit  # noqa: E402
from measured import HERE, Row, calibration, published  # noqa: E402
from report import report  # noqa: E402
from validation_fit import cluster  # noqa: E402

from roundelay.simulate import nccl  # noqa: E402
from roundelay.units import format_size, format_time  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
BANDS = (
    ("to 32 KiB", 0, 32 << 10),
    ("to 1 MiB", 32 << 10, MIB),
    ("to 64 MiB", MIB, 64 * MIB),
    ("above", 64 * MIB, 1 << 62),
)
PAGE = ROOT / "docs" / "guides" / "validation.md"


def error(row: Row) -> float:
    """Predicted over measured, less 1."""
    machine = cluster(f"{row.machine}:{row.nodes}")
    made = nccl.predict(machine, row.collective, row.size, row.cards, row.algorithm)
    return made.time_s / row.time_s - 1


def spread(rows: Iterable[Row]) -> str:
    """Median and p90 of the absolute relative error, in percent."""
    errors = [abs(error(row)) * 100 for row in rows]
    return "| ".join(f"{v:.1f} " for v in np.percentile(errors, (50, 90))) if errors else "| "


def in_band(rows: Iterable[Row], low: int, high: int) -> list[Row]:
    """Rows above one size, up to another; size 0 is in the first band."""
    return [row for row in rows if low < row.size <= high or (row.size == low == 0)]


def by_site(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each site."""
    found = defaultdict(list)
    for row in rows:
        found[row.site].append(row)
    return dict(sorted(found.items()))


def each_machine_once(rows: Sequence[Row], figure: int) -> float:
    """Percent: of each machine and band of sizes the median (50) or p90 (90), then the mean over
    bands, then over machines."""
    means = []
    for some in by_site(rows).values():
        bands = [in_band(some, low, high) for _, low, high in BANDS]
        means.append(np.mean([np.percentile([abs(error(r)) * 100 for r in band], figure)
                              for band in bands if band]))  # fmt: skip
    return float(np.mean(means))


def summary(fitted: Sequence[Row], new: Sequence[Row]) -> list[str]:
    """How near, group by group, with the targets."""
    one = [row for row in new if row.nodes == 1]
    grouped = [row for row in fitted if row.nodes == 1]
    several = [row for row in (*fitted, *new) if row.nodes > 1 and row.size >= 256 * MIB]
    racks = [row for row in several if cluster(row.machine).hosts > 1]
    nodes = [row for row in several if row not in racks]
    full = [row for row in (*fitted, *new) if row.nodes == 1 and row.size >= 4 * GIB]
    rows = []
    if fitted:
        rows.append(("calibration rows, one node", grouped, "5, 15"))
        for collective in sorted({row.collective for row in grouped}):
            some = [row for row in grouped if row.collective == collective]
            rows.append((f"of these {collective}", some, "5, 15"))
    rows += [
        ("other machines and sites, one NVLink domain, all sizes", one, "8, 18"),
        ("of these above 1 MiB", [row for row in one if row.size > MIB], "8, 18"),
        ("several nodes, 256 MiB and more", nodes, "10, 20"),
        ("several NVLink racks, 512 MiB and more", racks, "10, 20"),
        ("full rate: one node, 4 GiB and more", full, "5, 5"),
    ]
    lines = ["| rows | number | median % | p90 % | target |", "|---|---|---|---|---|"]
    lines += [f"| {name} | {len(some)} | {spread(some)}| {goal} |" for name, some, goal in rows]
    lines += ["", "Each machine and band of sizes once, then the mean over bands and machines:",
              "", "| rows | median % | p90 % |", "|---|---|---|"]  # fmt: skip
    large = [row for row in one if row.size > MIB]
    for name, some in (("calibration, one node", grouped), ("other machines, one domain", one),
                       ("of these above 1 MiB", large)):  # fmt: skip
        if some:
            figures = [each_machine_once(some, figure) for figure in (50, 90)]
            lines.append(f"| {name} | {figures[0]:.1f} | {figures[1]:.1f} |")
    return lines


def sites(rows: Sequence[Row]) -> list[str]:
    """Median error of each machine, by band of sizes, with its sign."""
    heads = " | ".join(name for name, _, _ in BANDS)
    lines = [f"| where | machine | cards | {heads} |", "|---" * (3 + len(BANDS)) + "|"]
    for site, some in by_site(rows).items():
        cells = []
        for _, low, high in BANDS:
            errors = [error(row) * 100 for row in in_band(some, low, high)]
            cells.append(f"{np.median(errors):+.0f}" if errors else "")
        cards = ", ".join(str(n) for n in sorted({row.cards for row in some}))
        lines.append(f"| {site} | {some[0].machine} | {cards} | {' | '.join(cells)} |")
    return lines


def figures(rows: Sequence[Row]) -> list[str]:
    """Every published figure beside its prediction."""
    lines = ["| where | size | measured | predicted | by | error % |", "|---|---|---|---|---|---|"]
    for row in rows:
        machine = cluster(f"{row.machine}:{row.nodes}")
        made = nccl.predict(machine, row.collective, row.size, row.cards, row.algorithm)
        lines.append(
            f"| {row.site} | {format_size(row.size)} | {format_time(row.time_s)} "
            f"| {format_time(made.time_s)} | {made.algorithm} {made.protocol} "
            f"| {error(row) * 100:+.0f} |"
        )
    return lines


def sources() -> list[str]:
    """Where each published figure is from."""
    lines = []
    for path in sorted(HERE.glob("*/*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        lines.append(f"- {path.parent.name}/{path.stem}: <{table['source']}>. {table['note']}.")
    return lines


def filled(text: str, fitted: Sequence[Row], new: Sequence[Row]) -> str:
    """The guide with its tables, which stand between comments that name them."""
    parts = {
        "summary": summary(fitted, new),
        "sites": sites([*fitted, *new]),
        "figures": figures(new),
        "sources": sources(),
    }
    for name, lines in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        after = rest.split(end)[1]
        text = "\n".join([before + begin, "```text", *aligned(lines), "```", "", end + after])
    return text


def aligned(lines: Sequence[str]) -> list[str]:
    """Tables as plain text, which needs no translating."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    tables = [row for row in cells if len(row) > 1]
    out = []
    for row in cells:
        if len(row) > 1 and not set("".join(row)) - {"-"}:
            continue
        peers = [other for other in tables if len(other) == len(row)]
        widths = [max(len(other[i]) for other in peers) if peers else 0 for i in range(len(row))]
        out.append("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip())
    return out


def main() -> None:
    data = os.environ.get("ROUNDELAY_DATA")
    fitted, new = list(calibration(Path(data))) if data else [], list(published())
    if "--fit" in sys.argv:
        if not data:
            sys.exit("ROUNDELAY_DATA names no folder; the fit needs its calibration rows")
        print("\n".join(validation_fit.report(fitted)))
        return
    about = "" if data else "; without the calibration rows, as ROUNDELAY_DATA names no folder"
    report(__file__, "Predicted and measured: NCCL", about,
           lambda: ["", *summary(fitted, new), "", "Median error by machine, percent:", "",
                    *sites([*fitted, *new])])  # fmt: skip
    if "--write" in sys.argv:
        PAGE.write_text(filled(PAGE.read_text("utf-8"), fitted, new), "utf-8")


if __name__ == "__main__":
    main()
