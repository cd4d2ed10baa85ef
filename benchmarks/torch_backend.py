"""Measure torch.distributed over Roundelay beside Gloo, in turns and in the same processes.

    python benchmarks/torch_backend.py [--write]

Needs torch. A run takes about fifteen minutes, and the machine should have nothing else to do:
where ranks share processors with other work, every call waits for its turn. With --write the
tables go to benchmarks/torch_backend.md.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from report import report

from roundelay.units import format_size

RANKS = (2, 4, 8)
WORKER = Path(__file__).with_name("torch_worker.py")


def measured(ranks: int) -> dict[str, Any]:
    """What the worker finds."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "found.json"
        command = [sys.executable, "-m", "roundelay", "launch", "-n", str(ranks)]
        subprocess.run([*command, str(WORKER), str(place)], check=True, stdout=sys.stderr)
        return json.loads(place.read_text())


def us(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def table(heads: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def cells(rows: list[dict[str, Any]]) -> list[str]:
    """Every cell, and what they are together."""
    ratios = [r["gloo_us"] / r["ours_us"] for r in rows]
    shown = ([r["call"], format_size(r["bytes"]), us(r["ours_us"]), us(r["gloo_us"]),
              f"{ratio:.1f}"] for r, ratio in zip(rows, ratios, strict=True))  # fmt: skip
    fast = sum(ratio >= 2 for ratio in ratios)
    return [
        f"Geometric mean of Gloo's time by ours: {statistics.geometric_mean(ratios):.1f}. At least "
        f"twice as fast in {fast} of {len(ratios)} cells; least ratio {min(ratios):.2f}.",
        "",
        *table(["call", "size", "ours, us", "Gloo, us", "Gloo / ours"], shown),
    ]


def calls(ranks: int, found: dict[str, Any]) -> list[str]:
    """Collectives and messages."""
    return [
        f"## {ranks} ranks",
        "",
        f"Collectives. {cells(found['rows'])[0]}",
        *cells(found["rows"])[1:],
        f"The same all-reduce of 8 bytes by `group.comm`, without torch's dispatch: "
        f"{found['direct_us']:.2f} us.",
        "",
        f"Messages. {cells(found['messages'])[0]}",
        *cells(found["messages"])[1:],
    ]


def training(ranks: int, found: dict[str, float]) -> list[str]:
    """A step, and what of it is communication."""
    ours, gloo = (found[name] - found["alone_us"] for name in ("ours_us", "gloo_us"))
    return [
        f"DistributedDataParallel, {ranks} ranks, a transformer of 1.6 million parameters: a step "
        f"takes {us(found['alone_us'])} us with a hook that exchanges nothing, "
        f"{us(found['ours_us'])} us over Roundelay and {us(found['gloo_us'])} us over Gloo. What "
        f"communication adds: {us(ours)} us and {us(gloo)} us, Gloo / ours {gloo / ours:.1f}.",
        "",
    ]


def body() -> list[str]:
    lines = ["", "Ours: `init_process_group(\"roundelay\")`; Gloo: a group of the same processes. "
             "Medians of turns.", ""]  # fmt: skip
    for ranks in RANKS:
        found = measured(ranks)
        lines += calls(ranks, found)
        lines += training(ranks, found["ddp"])
    return lines


def about() -> str:
    import torch

    return f", torch {torch.__version__}, one thread a rank"


if __name__ == "__main__":
    report(__file__, "torch.distributed over Roundelay and over Gloo", about(), body)
