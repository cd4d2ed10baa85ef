"""Policies over the hour of a real service: `python benchmarks/scaling.py [--write]`.

ROUNDELAY_DATA names the folder that holds `traces/`. With --write the table goes to
benchmarks/scaling.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from report import report

from roundelay.clusters import cluster
from roundelay.scaling import (
    POLICIES,
    Fixed,
    Outcome,
    Request,
    Scaler,
    Service,
    best_target,
    least_fixed,
    policy,
    read_requests,
    simulate,
)
from roundelay.scaling.choose import TARGETS
from roundelay.scaling.policy import CALM
from roundelay.units import format_time
from roundelay.workloads.generate.clocked import Large, memory_rate, speed

TRACE = "traces/azure-llm-2023-code.csv"
SETTINGS = ((60.0, CALM), (10.0, CALM), (10.0, 60.0))
"""Seconds of a start, and of the calm before there are fewer."""
LEAST, MOST = 2, 32
LLAMA_70B = Large(layers=80, hidden=8192, inner=28672, heads=64)
"""Llama 3 70B (arXiv:2407.21783, table 3)."""
HEAD = ("policy", "target", "in time", "refused", "first token, 99 %", "instances", "card hours",
        "simulated in")  # fmt: skip


def body() -> list[str]:
    """The tables, by how long an instance takes to start."""
    file = Path(os.environ["ROUNDELAY_DATA"]) / TRACE
    asked = read_requests(file.read_text(), str(file))
    lines = ["", f"{len(asked):,} requests of `{TRACE}` to instances of Llama 3 70B, each over 8 "
             f"cards of dgx-h100 as the clock has them, {LEAST} to {MOST} of them.",
             "In time: first token within 2 s, later ones within 100 ms.", ""]  # fmt: skip
    for start, calm in SETTINGS:
        lines += [f"## An instance starts in {start:g} s; fewer after a calm of {calm:g} s", "",
                  _line(HEAD), _line(["---"] * len(HEAD)),
                  *_rows(asked, start, calm), ""]  # fmt: skip
    return lines


def _rows(asked: Sequence[Request], start: float, calm: float) -> Iterator[str]:
    where = cluster("dgx-h100")
    service = Service(speed(where, 8, LLAMA_70B, memory_rate(where), 32, start), cards=8)
    count = least_fixed(asked, service, MOST) or MOST
    begun = time.perf_counter()
    found = simulate(asked, service, Scaler(Fixed(count), count, count))
    yield _row("fixed", "", found, time.perf_counter() - begun)
    for name in POLICIES:
        begun = time.perf_counter()

        def scaler(target: float, name: str = name) -> Scaler:
            return Scaler(policy(name, target, start), LEAST, MOST, calm)

        target, found = best_target(asked, service, scaler)
        yield _row(name, f"{target:g}", found, (time.perf_counter() - begun) / len(TARGETS))


def _row(name: str, target: str, found: Outcome, seconds: float) -> str:
    first = format_time(float(np.nanquantile(found.first, 0.99)))
    return _line([name, target, f"{found.in_time:.1%}", f"{found.refused:,}", first,
                  f"{found.mean_instances:.2f}", f"{found.card_hours:.1f}",
                  format_time(seconds)])  # fmt: skip


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    report(__file__, "Instances for the requests of a real service", "", body)
