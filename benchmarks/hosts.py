"""Measure collectives between hosts with slow links, beside what a link allows.

    python benchmarks/hosts.py [--write]

The hosts are network namespaces of this machine (see testbed.py), so it needs root. Gloo is
measured beside, in turn, where torch is installed or ROUNDELAY_BENCH_GLOO names a Python that has
it. A run takes about five minutes, and the machine should have nothing else to do. With --write
the tables go to benchmarks/hosts.md.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import hosts_link
from report import report
from testbed import BURST, Testbed, why_not

from roundelay.bench import ours
from roundelay.bench.cells import Point, Request, count_of
from roundelay.bench.contest import Contest
from roundelay.bench.figures import Figure
from roundelay.bench.job import Command, Job, SideLost
from roundelay.bench.rivals import RIVALS
from roundelay.units import format_size

RATE = "1gbit"
PORT = 29400
SECONDS = 2.0  # of timed calls of each side, form and cell
KIB, MIB = 1 << 10, 1 << 20
OTHERS = ("broadcast", "all_gather", "reduce_scatter", "all_to_all")
SMALL = {2: 300, 4: 700}
"""Targets for 8 bytes in us, by number of hosts."""
LARGE = {"all_reduce": 1.08, "broadcast": 1.1, "all_gather": 1.1, "reduce_scatter": 1.1,
         "all_to_all": 1.1}  # fmt: skip
"""Targets at 16 MiB, as times the bound."""


@dataclass(frozen=True)
class Setting:
    """Hosts with so many ranks each, numbered host by host or, where they are even, in turn."""

    each: tuple[int, ...]
    scattered: bool
    cells: tuple[tuple[str, int], ...]

    @property
    def ranks(self) -> int:
        return sum(self.each)

    def host(self, rank: int) -> int:
        if self.scattered:
            return rank % len(self.each)
        return [host for host, ranks in enumerate(self.each) for _ in range(ranks)][rank]

    def crossing(self, collective: str, size: int) -> Fraction:
        """Bytes that must cross some host's link, in one direction."""
        n, hosts = self.ranks, len(self.each)
        share = {
            "all_reduce": Fraction(2 * (hosts - 1), hosts),
            "broadcast": Fraction(1),
            "all_to_all": max(Fraction(own * (n - own), n) for own in self.each),
        }.get(collective, Fraction(n - min(self.each), n))
        return size * share

    def title(self) -> str:
        order = "round-robin over the hosts" if self.scattered else "host by host"
        ranks = " + ".join(map(str, self.each))
        return f"{len(self.each)} hosts, {ranks} ranks, numbered {order}"


REDUCTIONS = tuple(("all_reduce", size) for size in (8, 32 * KIB, MIB, 16 * MIB))
LARGE_OTHERS = tuple((name, 16 * MIB) for name in OTHERS)
SETTINGS = (
    Setting((2, 2), False, REDUCTIONS + LARGE_OTHERS),
    Setting((2, 2), True, REDUCTIONS + LARGE_OTHERS),
    Setting((2, 2, 2, 2), False, REDUCTIONS),
    Setting((2, 2, 2, 2), True, REDUCTIONS),
    Setting((1, 3), False, REDUCTIONS + LARGE_OTHERS),
)


def link_speed(bed: Testbed) -> tuple[float, float]:
    """What a link bears: goodput of one TCP stream in bits/s, and the round trip of 8 bytes, us."""
    host = bed.address(0)
    program = [sys.executable, hosts_link.__file__]
    serve = [*bed.inside(0), *program, "serve", host]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().strip()
        call = [*bed.inside(1), *program, "call", host, port]
        trip = subprocess.run(call, capture_output=True, text=True, check=True).stdout
        return float(server.stdout.readline()), float(trip)


def on_hosts(command: Command, bed: Testbed, setting: Setting) -> Command:
    """The command of a side with every rank on its host."""
    lines = [[*bed.inside(setting.host(r)), *line] for r, line in enumerate(command.lines)]
    own = [
        {
            "ROUNDELAY_NODE": f"host{setting.host(r)}",
            "ROUNDELAY_INTERFACE": "eth0",
            "ROUNDELAY_ADDRESS": f"{bed.address(setting.host(0))}:{PORT}",
            "GLOO_SOCKET_IFNAME": "eth0",
        }
        for r in range(setting.ranks)
    ]
    return Command(lines, [{**env, **more} for env, more in zip(command.env, own, strict=True)])


@contextlib.contextmanager
def sides(bed: Testbed, setting: Setting) -> Iterator[tuple[Job, dict[str, Job]]]:
    """Our job, and Gloo's where it is there."""
    commands = {"roundelay": ours.command}
    if RIVALS["gloo"].python() is not None:
        commands["gloo"] = RIVALS["gloo"].command
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        jobs = {}
        for side, command in commands.items():
            address = Path(name) / f"{side}.sock"
            placed = on_hosts(command(setting.ranks, address), bed, setting)
            job = Job(side, setting.ranks, placed, Path(name), address)
            stack.callback(job.close)
            job.wait()
            jobs[side] = job
        yield jobs.pop("roundelay"), jobs


def us(value: float) -> str:
    return f"{value:,.0f}"


@dataclass(frozen=True)
class Measured:
    """A cell, and what it took."""

    setting: Setting
    collective: str
    size: int
    ours: Figure
    gloo: float | None

    def row(self, speed: float) -> list[str]:
        """Of the table, where a link bears so many bits/s."""
        bound = float(self.setting.crossing(self.collective, self.size)) * 8 / speed * 1e6
        time, large = self.ours.time_us, self.size >= 32 * KIB
        return [
            self.collective,
            format_size(self.size),
            us(bound) if large else "-",
            us(time),
            f"{time / bound:.3f}" if large else "-",
            self._target(bound),
            str(self.ours.wrong),
            str(self.ours.calls),
            us(self.gloo) if self.gloo else "not measured",
            "not measured" if self.gloo is None else f"{self.gloo / bound:.2f}" if large else "-",
        ]

    def _target(self, bound: float) -> str:
        """What was aimed at, and whether it is reached."""
        if self.size == 8:
            limit = SMALL[len(self.setting.each)]
            return f"{limit} us: {'met' if self.ours.time_us <= limit else 'missed'}"
        if self.size < 16 * MIB:
            return "-"
        factor = LARGE[self.collective]
        return f"{factor}: {'met' if self.ours.time_us <= factor * bound else 'missed'}"


def measure(setting: Setting, contest: Contest, collective: str, size: int) -> Measured:
    n = setting.ranks
    count = count_of(collective, size, n, "float32")
    point = Point(collective, "auto", n, count, "float32", "sum", 0)
    figures, rivals = contest.measure(point)
    print(collective, size, figures, rivals, file=sys.stderr, flush=True)
    return Measured(setting, collective, size, figures[point.usually_in_place], rivals.get("gloo"))


def section(setting: Setting) -> list[str]:
    """Measure a setting; its part of the page."""
    request = Request((), (setting.ranks,), (), seconds=SECONDS)
    with Testbed(len(setting.each), RATE) as bed:
        before = link_speed(bed)
        with sides(bed, setting) as (our, theirs):
            contest = Contest(our, theirs, request, lambda text: print(text, file=sys.stderr))
            found = [measure(setting, contest, *cell) for cell in setting.cells]
        after = link_speed(bed)
    heads = ["collective", "size", "bound, us", "ours, us", "ours / bound", "target", "wrong",
             "calls", "Gloo, us", "Gloo / bound"]  # fmt: skip
    speed = max(before[0], after[0])
    return [
        f"## {setting.title()}",
        "",
        f"One TCP stream: {before[0] / 1e6:.0f} Mbit/s before, {after[0] / 1e6:.0f} after; "
        f"round trip of 8 bytes: {before[1]:.0f} us before, {after[1]:.0f} after.",
        "",
        *table(heads, (cell.row(speed) for cell in found)),
    ]


def table(heads: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def figures() -> list[str]:
    load = os.getloadavg()[0]
    rival = "in turn with ours" if RIVALS["gloo"].python() else "not measured: there is no torch"
    sections = [line for setting in SETTINGS for line in section(setting)]
    return [
        f"- load of the machine before the run: {load:.1f}",
        f"- Gloo: {rival}",
        "",
        f"Hosts are network namespaces on this machine, each with one link of {RATE} to a bridge,",
        f"held to it by `tc tbf` (burst {BURST}) in both directions; TCP with cubic. float32, sum,",
        "all_reduce and broadcast in place, the others out of place. The time of a call goes from",
        "the first rank's start to the last rank's end on the common clock, medians; results are",
        "checked. All hosts share the cores: there are more ranks than these.",
        "",
        "The bound is the bytes that must cross one host's link in one direction, at the goodput",
        "of a single TCP stream, the better of two measurements. A bucket that was full lets its",
        "burst through at once, so small sizes can be below their bound by that much.",
        "",
        *sections,
    ]


if __name__ == "__main__":
    if reason := why_not():
        print(f"hosts with slow links: not measured: {reason}", file=sys.stderr)
    else:
        try:
            report(__file__, "Hosts with slow links: figures", "", figures)
        except SideLost as lost:
            sys.exit(str(lost))
