"""Measure what the schedule, its algorithms and the verifier cost, against the targets.

    python benchmarks/schedule.py [--write]

Every figure is the best of several runs (the machine's noise only ever adds), but for the long
proofs, which run once. With --write the table goes to benchmarks/schedule.md.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from report import report

import roundelay as rl
from roundelay.cost import cost_of
from roundelay.lower import lower


def best(work: Callable[[], object], runs: int = 7) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def build_and_parts() -> list[tuple[str, str, str]]:
    ring = rl.find("all_reduce/ring")
    schedule = ring(16384)
    rows = [
        ("build the ring all-reduce, 16,384 ranks", "< 10 ms", ms(best(lambda: ring(16384)))),
        ("memory of its arrays", "< 2 MB", f"{schedule.nbytes / 1e6:.2f} MB"),
    ]
    near = ("ring", "double_tree", "leader", "rails", "rails3", "switch", "rails_switch")
    butterflies = ("recursive_doubling", "halving_doubling", "swing", "bine")
    for names, limit in ((near, "< 5 ms"), (butterflies, "< 25 ms")):
        for name in names:
            algorithm = rl.find(f"all_reduce/{name}")
            whole = best(lambda algorithm=algorithm: algorithm(16384).part(7777))
            made = algorithm(16384)
            part = best(lambda made=made: made.part(7777))
            figure = f"{ms(part)} (with building the schedule: {ms(whole)})"
            rows.append((f"one rank's part, {name}, 16,384 ranks", limit, figure))
    return rows


def programs() -> list[tuple[str, str, str]]:
    rows = []
    for name in ("ring", "double_tree", "leader", "rails", "rails3", "switch", "halving_doubling"):
        made = rl.build(f"all_reduce/{name}", 16384)
        took = best(lambda made=made: lower(made, 7777))
        rows.append(
            (f"one rank's program with its waits, {name}, 16,384 ranks", "< 5 ms", ms(took))
        )
    return rows


def shapes() -> list[tuple[str, str, str]]:
    rails = rl.build("all_reduce/rails", 4096, group=8)
    chain, tree = (
        rl.build("broadcast/chain", 1000, pieces=64),
        rl.build("broadcast/double_tree", 1000),
    )
    here = Path(rl.__file__).parent / "algorithms"
    files = [f for f in here.glob("*/*.py") if f.name != "__init__.py"]
    longest = max(files, key=lambda f: len(f.read_text().splitlines()))
    lines = len(longest.read_text().splitlines())
    return [
        ("two-level ring in ring, 4,096 ranks", "4 rounds, < 0.5 MB",
         f"{len(list(rails))} rounds, {rails.nbytes / 1e6:.2f} MB"),
        ("pipelined chain, 64 pieces", "1 round", f"{len(list(chain))} round"),
        ("double tree, pipelined", "1 round a tree", f"{len(list(tree))} rounds for 2 trees"),
        (f"lines of the longest algorithm file ({longest.parent.name}/{longest.name})", "<= 60",
         str(lines)),
    ]  # fmt: skip


def large() -> list[tuple[str, str, str]]:
    slowest, name = 0.0, ""
    for algorithm in rl.algorithms():
        if not algorithm.dense:
            took = best(lambda algorithm=algorithm: cost_of(algorithm, 100_000), 3)
            if took > slowest:
                slowest, name = took, f"{algorithm.collective}/{algorithm.name}"
    what = f"any algorithm but the direct family, 100,000 ranks: build and cost (slowest: {name})"
    return [(what, "< 1 s", f"{slowest:.2f} s")]


def proofs() -> list[tuple[str, str, str]]:
    def complete(name: str, n: int) -> str:
        begun = time.perf_counter()
        verdict = rl.verify(rl.build(name, n), complete=True)
        took = time.perf_counter() - begun
        assert verdict.ok
        assert verdict.sampled is None
        return f"{took:.2f} s"

    begun = time.perf_counter()
    cases = 0
    for algorithm in rl.algorithms():
        for n in range(1, 34):
            for params in algorithm.variants(n):
                root = 5 * n // 8 if algorithm.kind.rooted else 0
                assert rl.prove(algorithm, n, root=root, params=params).ok
                cases += 1
    took = time.perf_counter() - begun
    return [
        ("prove ring, 1,024 ranks, every chunk", "< 3 s", complete("all_reduce/ring", 1024)),
        ("prove halving-doubling, 4,096 ranks, every chunk", "< 15 s",
         complete("all_reduce/halving_doubling", 4096)),
        (f"prove every algorithm, n = 1 to 33, every group ({cases:,} cases)", "< 20 s",
         f"{took:.1f} s"),
    ]  # fmt: skip


def commands() -> list[tuple[str, str, str]]:
    def run(*words: str) -> float:
        return best(
            lambda: subprocess.run([sys.executable, *words], check=True, capture_output=True), 5
        )

    bare = run("-c", "import numpy, msgspec")
    whole = run("-c", "import roundelay")
    nothing = run("-c", "pass")
    return [
        ("import roundelay", "< 200 ms",
         f"{ms(whole - nothing)} (NumPy and msgspec alone: {ms(bare - nothing)})"),
        ("roundelay demo, whole process", "< 10 s", f"{run('-m', 'roundelay', 'demo'):.2f} s"),
    ]  # fmt: skip


def figures() -> list[str]:
    rows = build_and_parts() + programs() + shapes() + large() + proofs() + commands()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        f"- peak memory of the whole run: {peak:,.0f} MiB",
        "",
        "Best of several runs; proofs run once.",
        "",
        "| what | target | measured |",
        "|---|---|---|",
        *(f"| {what} | {target} | {found} |" for what, target, found in rows),
    ]


if __name__ == "__main__":
    report(__file__, "The schedule: figures", "", figures)
