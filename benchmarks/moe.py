"""Measure dispatch to experts: copies, slow links, the clock, and a layer that hides its exchange.

    python benchmarks/moe.py [--short] [--write]

The nodes with slow links are network namespaces of this machine (see testbed.py), which needs root;
the layer needs torch. A run takes about ten minutes, and the machine should have nothing else to
do. With --write the figures go to benchmarks/moe.md. --short is a trial run.
"""

import importlib.util
import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from hosts import link_speed
from report import report
from testbed import BURST, Testbed, why_not

from roundelay import moe
from roundelay.moe.bounds import Decode
from roundelay.units import format_time

if SHORT := "--short" in sys.argv:
    sys.argv.remove("--short")
COUNTED = 1 << (14 if SHORT else 17)  # tokens
PUBLISHED = {("flat_expert", None): 7.000, ("flat_card", None): 6.716, ("two_hop", None): 4.633,
             ("two_hop", 4): 3.460}  # fmt: skip
NODES, CARDS, LIMIT = 4, 2, 4
RATE = "50mbit"
TOKENS, WIDTH, ITERS = 512, 1024, 3 if SHORT else 11
LAYER_RATE = "200mbit"
LONG = 1200  # seconds that a job may take
PORT = 29400
LAYER = Path(__file__).with_name("moe_layer.py")


def table(heads: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def counted() -> list[str]:
    """Copies between nodes of the schedules themselves, which `verify` has proved."""
    scores, placement = moe.uniform_scores(COUNTED, 256, seed=1), moe.Placement.even(256, ranks=64)
    home = np.arange(COUNTED) % 64
    rows = []
    for (scheme, limit), published in PUBLISHED.items():
        chosen = moe.choose(scores, 8, groups=8, max_groups=limit).experts
        schedule = moe.build(scheme, moe.Layout.of(chosen, home, placement), 8, limit)
        found = moe.copies(schedule, COUNTED, group=8)
        rows.append([scheme, str(limit or "all"), f"{published:.3f}", f"{found.between:.3f}",
                     f"{found.between / published - 1:+.2%}", f"{found.inside:.3f}"])  # fmt: skip
    return [
        "## Copies of a token",
        "",
        f"8 nodes of 8 cards, 256 experts, top 8, uniform scores, DeepSeek-V3's gate, {COUNTED:,} "
        "tokens. Aimed at: each within 0.5 %.",
        "",
        *table(["scheme", "nodes of a token", "expected between nodes", "counted", "difference",
                "inside nodes"], rows),
    ]  # fmt: skip


def job(bed: Testbed, node: list[int], words: list[str]) -> str:
    """What rank 0 prints; rank r runs on host r of the bed, as part of a node."""
    told = {
        "ROUNDELAY_RANKS": str(len(node)),
        "ROUNDELAY_ADDRESS": f"{bed.address(0)}:{PORT}",
        "ROUNDELAY_SECRET": secrets.token_hex(8),
        "ROUNDELAY_INTERFACE": "eth0",
        "OMP_NUM_THREADS": "1",
    }
    started = [
        subprocess.Popen(
            [*bed.inside(rank), sys.executable, *words],
            env={**os.environ, **told, "ROUNDELAY_RANK": str(rank), "ROUNDELAY_NODE": f"node{at}"},
            stdout=subprocess.PIPE, text=True,
        )
        for rank, at in enumerate(node)
    ]  # fmt: skip
    try:
        said = [each.communicate(timeout=LONG)[0] for each in started]
    finally:
        for each in started:
            each.kill()
    if any(each.wait() for each in started):
        sys.exit(f"a rank of `{' '.join(words)}` failed")
    return said[0]


def slow_links() -> list[str]:
    """Every scheme between nodes whose cards have a slow link each."""
    words = ["-m", "roundelay", "moe", "bench", "--nodes", NODES, "--cards", CARDS,
             "--max-nodes", LIMIT, "--tokens", TOKENS, "--hidden", WIDTH, "--iters", ITERS,
             "--json"]  # fmt: skip
    with Testbed(NODES * CARDS, RATE) as bed:
        speed = link_speed(bed)[0] / 8
        nodes = [rank // CARDS for rank in range(NODES * CARDS)]
        rows = json.loads(job(bed, nodes, [*map(str, words)]))["rows"]
        speed = max(speed, link_speed(bed)[0] / 8)
    shown = [line for row in rows for part in ("", "combine_") for line in [
        [row["scheme"], "combine" if part else "dispatch", *_beside_bound(row, part, speed),
         *_gain(rows[0], rows[-1], part, row), *_gain(rows[1], rows[-1], part, row)]
    ]]  # fmt: skip
    return [
        f"## {NODES} nodes of {CARDS} cards, a link of {RATE} for each card",
        "",
        f"Every card is a network namespace with one link, held to its rate by `tc tbf` (burst "
        f"{BURST}); the cards of a node share memory. {TOKENS} tokens of {WIDTH} float32 a card, "
        f"256 experts, top 8, at most {LIMIT} nodes a token. Medians of {ITERS} turns of all six "
        f"calls; a turn's time is that of its slowest rank. The bound is the bytes over the "
        f"goodput of one TCP stream, {speed * 8 / 1e6:.1f} Mbit/s. The gain of `two_hop` is the "
        "other scheme's time by its own; aimed at: 90 % of what the bytes promise.",
        "",
        *table(["scheme", "", "MB between", "bound", "time", "time / bound",
                "gain on flat_expert", "promised", "reached", "gain on flat_card", "promised",
                "reached"], shown),
    ]  # fmt: skip


def _beside_bound(row: dict[str, Any], part: str, speed: float) -> list[str]:
    sent, took = row[f"{part}bytes_between_nodes"], row[f"{part}time_us"] * 1e-6
    bound = sent / speed
    return [f"{sent / 1e6:.2f}", format_time(bound), format_time(took), f"{took / bound:.2f}"]


def _gain(flat: dict[str, Any], two: dict[str, Any], part: str, row: dict[str, Any]) -> list[str]:
    if row is not two:
        return ["", "", ""]
    times, sent = f"{part}time_us", f"{part}bytes_between_nodes"
    gain, promised = flat[times] / two[times], flat[sent] / two[sent]
    return [f"{gain:.2f}", f"{promised:.2f}", f"{gain / promised:.0%}"]


def layer() -> list[str]:
    """How much of the exchange of a layer is hidden, by how it is cut."""
    with Testbed(2, LAYER_RATE) as bed, tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "found.json"
        job(bed, [0, 1], [str(LAYER), str(place)])
        found: dict[str, list[dict[str, float]]] = json.loads(place.read_text())
    rows = [[how, *(format_time(median(t[key] for t in turns)) for key in ("step", "exchange")),
             f"{median(t['hidden'] for t in turns):.0%}"]
            for how, turns in found.items()]  # fmt: skip
    return [
        f"## A layer in torch, 2 nodes of a card, links of {LAYER_RATE}",
        "",
        "1,024 tokens of 512 float32 a card, 16 experts of 512 to 1,024 to 512, top 4; a step is "
        "forward and backward. Medians of rank 0 over turns. Hidden is the share of the time of "
        "its exchanges, those of counts and targets among them, in which it did not wait.",
        "",
        *table(["the layer", "step", "exchange in it", "hidden"], rows),
    ]


def on_the_clock() -> list[str]:
    """DeepSeek-V3's layer on its cluster, and its decoding."""
    words = [sys.executable, "-m", "roundelay", "moe", "bench", "--cluster", "h800:8",
             "--max-nodes", "4", *(["--tokens", "256"] if SHORT else [])]  # fmt: skip
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    v3 = Decode()
    return [
        "## On the clock",
        "",
        "DeepSeek-V3's layer, `roundelay " + " ".join(words[3:]) + "`; 2.03 ms is expected as the "
        "bound of the network, links inside not binding:",
        "",
        "```text", *said.rstrip().split("\n"), "```",
        "",
        f"Decoding, ({v3.dispatched} B + {v3.combined} B) x {v3.tokens} tokens x {v3.experts} "
        f"experts x {v3.hidden:,} / 50 GB/s: {v3.stage(50e9) * 1e6:.2f} us a stage (expected "
        f"120.96), {v3.token(50e9) * 1e3:.2f} ms a token (expected 14.76).",
        "",
    ]  # fmt: skip


def body() -> list[str]:
    lines = [f"- load of the machine before the run: {os.getloadavg()[0]:.1f}", "", *counted(),
             *on_the_clock()]  # fmt: skip
    if reason := why_not():
        return [*lines, f"Slow links: not measured: {reason}."]
    lines += slow_links()
    if importlib.util.find_spec("torch") is None:
        return [*lines, "The layer: not measured: there is no torch."]
    return lines + layer()


if __name__ == "__main__":
    report(__file__, "Dispatch to experts: figures", "", body)
