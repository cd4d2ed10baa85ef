"""Exchange for long and see whether anything grows: memory, descriptors, threads, mappings.

    python benchmarks/soak.py [--write]

The job is that of tests/test_leaks.py: four processes make a million small calls and ten
thousand large ones, half of them on random groups that come and go. It takes about an hour. With
--write the table goes to benchmarks/soak.md.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from report import report

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from test_leaks import LARGE, MOST, RANKS, SMALL, largest, start_to_end

NODES = {"one node": None, "two nodes": "aabb"}


def figures() -> list[str]:
    lines = [
        "",
        f"{RANKS} ranks, {SMALL:,} calls of at most 1 KiB and {LARGE:,} of 1 to 4 MiB, of",
        "eight collectives, a tenth with `async_op`; half of them on random groups, which are",
        "split again and closed. First every sort of call is made once. Then forty samples are",
        "taken; the C library is told to give free memory back. Figures are those of the rank",
        "that has most, and the most in each third of the samples. The kernel may still count a",
        "thread that has been joined.",
        "",
        "| | | first third | second | last | may grow by |",
        "|---|---|---|---|---|---|",
    ]
    for name, nodes in NODES.items():
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            start_to_end(Path(folder), SMALL, LARGE, nodes, 7000)
            minutes = (time.monotonic() - begun) / 60
            ranks = [json.loads(Path(folder, f"{r}.json").read_text()) for r in range(RANKS)]
        for what, most in MOST.items():
            thirds = [max(c) for c in zip(*(largest(s, what) for s in ranks), strict=True)]
            shown = [f"{v / 2**20:.2f} MiB" if what == "memory" else str(v)
                     for v in (*thirds, most)]  # fmt: skip
            lines.append(f"| {name}, {minutes:.0f} min | {what} | {' | '.join(shown)} |")
        print("\n".join(lines[-len(MOST) :]), file=sys.stderr, flush=True)
    return lines


if __name__ == "__main__":
    report(__file__, "Soak: what grows", "", figures)
