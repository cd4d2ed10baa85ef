"""Predicted against measured on this machine: the clock for CPUs, on figures that a probe finds.

    python benchmarks/predicted.py [--write]

Between hosts with slow links, which are network namespaces of this machine (see testbed.py; that
needs root), and on one node, also with more ranks than cores. A run takes about six minutes, and
the machine should have nothing else to do. With --write the tables go to benchmarks/predicted.md,
and their summary to docs/guides/validation.md.
"""

import contextlib
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from hosts import RATE, Setting, on_hosts
from report import report
from testbed import BURST, Testbed, why_not
from validation import aligned

from roundelay.bench import ours
from roundelay.bench.cells import GRID, Point, Request, count_of
from roundelay.bench.contest import Contestant
from roundelay.bench.figures import durations
from roundelay.bench.job import Command, Job
from roundelay.bench.predicted import Predictor
from roundelay.clusters import cluster
from roundelay.probe import as_cluster, probe_here
from roundelay.run.launch import rank_environments
from roundelay.topology import Cluster
from roundelay.units import Rate, format_rate, format_size, format_time

SIZES = tuple(32 << 10 << k for k in range(10))  # 32 KiB to 16 MiB
SECONDS = 1.0  # of timed calls at each size
BLOCKS = 4  # that they are made in
HOSTS = ((2, 2), (2, 2, 2, 2))
ONE_NODE = (2, 4, 8)
FULL = 131_072 * 8 / 1e9 * 1e6  # us until an empty bucket of BURST is full again, at RATE
PAGE = Path(__file__).parent.parent / "docs" / "guides" / "validation.md"


@dataclass(frozen=True)
class Row:
    """Microseconds of a point: of calls, median and the middle eight tenths; of the pause between
    calls, in which buffers are written and ranks meet; and as predicted."""

    collective: str
    size: int
    measured: float
    low: float
    high: float
    pause: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less 1, in percent."""
        return 100 * (self.predicted / self.measured - 1)

    @property
    def error_with_pause(self) -> float:
        """The same where a link that lay idle had saved up what it then lets through at once."""
        return 100 * (self.predicted / (self.measured + min(self.pause, FULL)) - 1)


@dataclass(frozen=True)
class Table:
    """The rows of one setting, and the clusters that were probed before and after."""

    title: str
    shaped: bool
    rows: Sequence[Row]
    probed: Sequence[Cluster]


def measure(job: Job, point: Point, predict: Predictor) -> Row:
    """Time a point, in blocks of calls."""
    request = Request((), (), (), seconds=SECONDS)
    runner = Contestant(job, point.usually_in_place, ours=True)
    runner.prepare(point, request, check=True)
    if runner.wrong:
        sys.exit(f"{point}: {runner.wrong} wrong elements")
    calls = max(2, min(100, math.ceil(SECONDS / runner.call_seconds / BLOCKS)))
    taken, pauses = [], []
    for _ in range(BLOCKS):
        replies = job.ask(60, "run", form=runner.form, calls=calls, lead=2)
        spans = [reply["spans"] for reply in replies]
        taken += durations(spans)
        pauses += [
            min(begin for begin, _ in later) - max(end for _, end in call)
            for call, later in pairwise(zip(*spans, strict=True))
        ]
    low, middle, high = np.percentile(taken, (10, 50, 90)) / 1e3
    pause = statistics.median(pauses) / 1e3
    row = Row(point.collective, point.nbytes, middle, low, high, pause, predict(point))
    print(row, f"{row.error:+.1f} %", file=sys.stderr, flush=True)
    return row


@contextlib.contextmanager
def started(ranks: int, placed: Callable[[Command], Command]) -> Iterator[Job]:
    """Our workers."""
    with tempfile.TemporaryDirectory() as name:
        address = Path(name) / "ours.sock"
        command = placed(ours.command(ranks, address))
        with contextlib.closing(Job("roundelay", ranks, command, Path(name), address)) as job:
            job.wait()
            yield job


def rows(ranks: int, predict: Predictor, placed: Callable[[Command], Command]) -> list[Row]:
    """Measure all points."""
    with started(ranks, placed) as job:
        return [
            measure(job, Point(name, "auto", ranks, count_of(name, size, ranks, "float32"),
                               "float32", "sum", 0), predict)
            for name in GRID for size in SIZES
        ]  # fmt: skip


def probe_hosts(bed: Testbed, setting: Setting) -> Cluster:
    """What `roundelay probe` writes in a job over the hosts."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "here.toml")
        line = [sys.executable, "-m", "roundelay", "probe", "--output", file]
        n = setting.ranks
        command = Command([line] * n, rank_environments(ours.environment(), n))
        placed = on_hosts(command, bed, setting)
        each = [subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL)
                for line, env in zip(placed.lines, placed.env, strict=True)]  # fmt: skip
        ended = [process.wait() for process in each]
        if any(ended):
            sys.exit("a rank of `roundelay probe` failed")
        return cluster(file)


def between_hosts(each: tuple[int, ...]) -> Table:
    """Hosts behind slow links."""
    setting = Setting(each, False, ())
    with Testbed(len(each), RATE) as bed:
        before = probe_hosts(bed, setting)
        found = rows(setting.ranks, Predictor(before, each), lambda c: on_hosts(c, bed, setting))
        after = probe_hosts(bed, setting)
    return Table(f"{len(each)} hosts x {each[0]} ranks, {RATE}", True, found, (before, after))


def one_node(ranks: int) -> Table:
    """Processes of this machine."""
    before = as_cluster(probe_here(ranks))
    found = rows(ranks, Predictor(before), lambda command: command)
    return Table(f"one node, {ranks} ranks", False, found, (before, as_cluster(probe_here(ranks))))


def spread(errors: Sequence[float]) -> str:
    """Median and p90 of absolute errors."""
    return " | ".join(f"{v:.1f}" for v in np.percentile(np.abs(errors), (50, 90)))


def summary(tables: Sequence[Table]) -> list[str]:
    """How near, setting by setting."""
    shaped = [row for table in tables if table.shaped for row in table.rows]
    lines = ["| where | rows | median % | p90 % | with the pause: median % | p90 % | target |",
             "|" + "---|" * 7]  # fmt: skip
    for title, some, counted, target in [
        *((t.title, t.rows, t.shaped, "") for t in tables),
        ("all hosts with slow links", shaped, True, "10"),
    ]:
        paused = spread([row.error_with_pause for row in some]) if counted else "- | -"
        errors = spread([row.error for row in some]) if some else "- | -"
        lines.append(f"| {title} | {len(some)} | {errors} | {paused} | {target} |")
    return lines


def section(table: Table) -> list[str]:
    """A setting's part of the page."""
    heads = ["collective", "size", "measured, us", "middle 80 %, us", "predicted, us", "error %"]
    heads += ["pause, us", "error with it %"] if table.shaped else []
    lines = [f"## {table.title}", "", *(probed(c) for c in table.probed), "",
             "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]  # fmt: skip
    for row in table.rows:
        cells = [row.collective, format_size(row.size), f"{row.measured:,.0f}",
                 f"{row.low:,.0f} to {row.high:,.0f}", f"{row.predicted:,.0f}",
                 f"{row.error:+.0f}"]  # fmt: skip
        if table.shaped:
            cells += [f"{row.pause:,.0f}", f"{row.error_with_pause:+.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def probed(c: Cluster) -> str:
    """A probe's figures, in a line."""
    figures = {
        "rate": c.inside.rate,
        "of all": c.inside.uplink or 0.0,
        **({"between hosts": c.nics.rate} if c.nics.count else {}),
    }
    told = [f"{name} {format_rate(Rate(rate, 'oneway'))}" for name, rate in figures.items()]
    told.append(f"step {format_time(c.inside.latency)}")
    if c.nics.count:
        told.append(f"between hosts {format_time(c.nics.latency)}")
    return f"- probed: {', '.join(told)}; adding {c.inside.reduce * 1e9:.3f} ns a byte more"


def page(tables: Sequence[Table], load: float) -> list[str]:
    """All figures."""
    return [
        f"- load of the machine before the run: {load:.1f}",
        "",
        "The algorithm is the one that `auto` takes. Each setting is probed first, and the clock",
        "predicts from that file alone; the probe afterwards shows how steady the machine is.",
        "Times are medians, from the first rank's start to the last rank's end; results are",
        f"checked. Hosts are network namespaces of this machine, each behind a link of {RATE} that",
        f"a token bucket (`tc tbf`, burst {BURST}) holds to its rate.",
        "",
        "Between two calls ranks write their buffers and meet. In that pause buckets fill again,",
        "up to their burst, and let through at once what they have saved: a call is quicker by the",
        "pause. The clock takes calls to follow at once; the last column adds the pause to what",
        "was measured.",
        "",
        *summary(tables),
        "",
        *(line for table in tables for line in section(table)),
    ]


def main() -> None:
    """Measure and report."""
    load = os.getloadavg()[0]
    tables = []
    if reason := why_not():
        print(f"hosts with slow links: not measured: {reason}", file=sys.stderr)
    else:
        tables += [between_hosts(each) for each in HOSTS]
    tables += [one_node(ranks) for ranks in ONE_NODE]
    report(__file__, "Predicted and measured: this machine", "", lambda: page(tables, load))
    if "--write" in sys.argv:
        begin, end = "<!-- here -->\n", "<!-- end of here -->"
        before, rest = PAGE.read_text("utf-8").split(begin)
        shown = "\n".join(["```text", *aligned(summary(tables)), "```", "", ""])
        PAGE.write_text(before + begin + "\n" + shown + end + rest.split(end)[1], "utf-8")


if __name__ == "__main__":
    main()
