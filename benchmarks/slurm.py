"""Measure where jobs stand on a real Slurm: its own choice, and that of `roundelay place`.

    python benchmarks/slurm.py [--write]

Eight hosts under two leaves of one spine, each a network namespace of this machine (see
slurm_bed.py); hosts have links of 1 Gbit/s, and leaves one of 1 Gbit/s upwards, so 4:1. It needs
root and Slurm's daemons. With --write the tables go to benchmarks/slurm.md.
"""

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from report import report
from slurm_bed import SlurmBed, environment, machine, why_not

RATE = "1gbit"
NUMBERS = 1_000_000
TIMES = 9
PATTERNS = {
    "two groups that alternate": ("0,2,4,6", "1,3,5,7"),
    "pairs, first with fifth": ("0,4", "1,5", "2,6", "3,7"),
    "two groups in order": ("0,1,2,3", "4,5,6,7"),
}
HELD = 12
"""Cases of three hosts in use, drawn by chance, in which a job of four looks for its place."""


def place(folder: Path, job: str, *more: str) -> dict[str, object]:
    """What `roundelay place` says of a job, having written its files."""
    words = ["place", job, "--cluster", str(folder / "machine.toml"), "--topology",
             str(folder / "cluster.txt"), "--json", *more]  # fmt: skip
    done = subprocess.run([sys.executable, "-m", "roundelay", *words], capture_output=True,
                          text=True, check=True, timeout=120)  # fmt: skip
    return json.loads(done.stdout)


def exchanges(slurm: SlurmBed, folder: Path) -> Iterator[str]:
    """Time and bytes of each pattern, in Slurm's order and in ours."""
    worker = str(Path(__file__).with_name("slurm_worker.py"))
    yield "| groups | ranks | exchange, ms | bytes up from a leaf, MB | as placed, ms |"
    yield "|---|---|---:|---:|---:|"
    for name, groups in PATTERNS.items():
        words = [sys.executable, worker, str(NUMBERS), str(TIMES), *groups]
        lists = [list(map(int, group.split(","))) for group in groups]
        exchange = {"name": "x", "pattern": "all_reduce", "groups": lists, "size": 4 * NUMBERS}
        job = folder / "job.json"
        job.write_text(json.dumps({"name": "job", "exchange": [exchange]}))
        found = place(folder, str(job), "--for", "slurm", "--write", str(folder))
        for title, order, cost in (
            ("Slurm's order", (), found["against"]["first_fit"]),
            ("ours", ("-m", "arbitrary"), found["cost_us"]),
        ):
            more = {"SLURM_HOSTFILE": str(folder / "job.hosts")} if order else {}
            env = environment(Path(sys.executable).parent, **more)
            before = slurm.bed.crossed(0)
            done = slurm.run("srun", "-N8", "-n8", *order, *words, env=env, timeout=300)
            crossed = (slurm.bed.crossed(0) - before) / TIMES / 1e6
            seconds = [float(s) for s in re.findall(r"right, ([\d.]+) s", done.stdout)]
            assert len(seconds) == 8, done.stdout + done.stderr
            yield (f"| {name} | {title} | {max(seconds) * 1e3:.1f} | {crossed:.1f} | "
                   f"{cost / 1e3:.1f} |")  # fmt: skip


def switches(slurm: SlurmBed, folder: Path) -> Iterator[str]:
    """Leaves that a job of four is put under while others hold three hosts."""
    rng = random.Random(1)
    yield "| in use | Slurm's choice | leaves | ours | leaves |"
    yield "|---|---|---:|---|---:|"
    for _ in range(HELD):
        held = sorted(rng.sample(slurm.names, 3))
        number = slurm.run("sbatch", "--parsable", "-w", ",".join(held), "--exclusive", "-o",
                           "/dev/null", "--wrap", "sleep 300").stdout.strip()  # fmt: skip
        until(slurm, "RUNNING")
        (folder / "cluster.txt").write_text(slurm.topology())
        ours = list(dict.fromkeys(place(folder, "data=4,data_bytes=4MB")["hosts"]))
        own = slurm.run("srun", "-N4", "-n4", "hostname").stdout.split()
        slurm.run("scancel", number)
        until(slurm, "")
        yield (f"| {', '.join(held)} | {', '.join(sorted(own))} | {leaves(slurm, own)} | "
               f"{', '.join(sorted(ours))} | {leaves(slurm, ours)} |")  # fmt: skip
    (folder / "cluster.txt").write_text(slurm.topology())


def leaves(slurm: SlurmBed, hosts: list[str]) -> int:
    """How many leaf switches they hang on."""
    return len({slurm.leaves[slurm.names.index(host)] for host in hosts})


def until(slurm: SlurmBed, state: str) -> None:
    """Wait until the only job is in this state, or none is there."""
    end = time.monotonic() + 60
    while slurm.run("squeue", "-h", "-o", "%T").stdout.strip() != state:
        assert time.monotonic() < end, f"no job is {state or 'gone'} after a minute"
        time.sleep(0.2)


def body() -> list[str]:
    """The tables."""
    with SlurmBed(rate=RATE, above=RATE) as slurm, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "machine.toml").write_text(machine("1 Gb/s"))
        (folder / "cluster.txt").write_text(slurm.topology())
        version = slurm.run("scontrol", "--version").stdout.strip()
        return [
            f"- Slurm: {version}; 8 hosts under 2 leaves of one spine; 1 Gbit/s to each host, "
            "1 Gbit/s between a leaf and the spine",
            "",
            "## Order of ranks",
            "",
            f"All-reduce of {4 * NUMBERS / 1e6:g} MB in each group, all groups at once: median of "
            f"{TIMES}, of the slowest rank. `as placed` is what `roundelay place` says of it.",
            "",
            *exchanges(slurm, folder),
            "",
            "## Switches",
            "",
            "A job of four hosts, while three others are in use.",
            "",
            *switches(slurm, folder),
        ]


if __name__ == "__main__":
    if why := why_not():
        sys.exit(f"benchmarks/slurm.py: {why}")
    report(__file__, "Jobs on a real Slurm", "", body)
