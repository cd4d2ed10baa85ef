"""Measure collectives between hosts with slow links, beside what a link allows.

    python benchmarks/hosts.py [--write]

The hosts are network namespaces of this machine (see testbed.py), so it needs root. Gloo is
measured beside, in turn, where torch is installed or ROUNDELAY_BENCH_GLOO names a Python that has
it. A run takes about four minutes, and the machine should have nothing else to do. With --write
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
from roundelay.bench.job import Command, Job, SideLost
from roundelay.bench.rivals import RIVALS
from roundelay.units import format_size

RATE = "1gbit"
PORT = 29400
SECONDS = 2.0  # of timed calls of each side, form and cell
KIB, MIB = 1 << 10, 1 << 20
OTHERS = ("broadcast", "all_gather", "reduce_scatter", "all_to_all")
SMALL = {(2, 8): 300, (4, 8): 700}
"""Targets in us, by number of hosts and size."""
LARGE = {"all_reduce": 1.08, "broadcast": 1.1, "all_gather": 1.1, "reduce_scatter": 1.1,
         "all_to_all": 1.1}  # fmt: skip
"""Targets at 16 MiB, as times the bound."""


@dataclass(frozen=True)
class Setting:
    """So many hosts with so many ranks each, numbered host by host or in turn."""

    hosts: int
    each: int
    scattered: bool
    cells: tuple[tuple[str, int], ...]

    @property
    def ranks(self) -> int:
        return self.hosts * self.each

    def host(self, rank: int) -> int:
        return rank % self.hosts if self.scattered else rank // self.each

    def crossing(self, collective: str, size: int) -> Fraction:
        """Bytes that must cross the link of a host, in the direction that has more of them."""
        share = {
            "all_reduce": Fraction(2 * (self.hosts - 1), self.hosts),
            "broadcast": Fraction(1),
            "all_to_all": Fraction(self.each * (self.hosts - 1), self.hosts),
        }.get(collective, Fraction(self.hosts - 1, self.hosts))
        return size * share

    def title(self) -> str:
        order = "round-robin over the hosts" if self.scattered else "host by host"
        return f"{self.hosts} hosts of {self.each} ranks, numbered {order}"


REDUCTIONS = tuple(("all_reduce", size) for size in (8, 32 * KIB, MIB, 16 * MIB))
LARGE_OTHERS = tuple((name, 16 * MIB) for name in OTHERS)
SETTINGS = (
    Setting(2, 2, False, REDUCTIONS + LARGE_OTHERS),
    Setting(2, 2, True, REDUCTIONS + LARGE_OTHERS),
    Setting(4, 2, False, REDUCTIONS),
    Setting(4, 2, True, REDUCTIONS),
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


def verdict(setting: Setting, collective: str, size: int, time: float, bound: float) -> str:
    """The target of a cell, and whether it is met."""
    if limit := SMALL.get((setting.hosts, size)):
        return f"{limit} us: {'met' if time <= limit else 'missed'}"
    factor = LARGE[collective]
    if size < 16 * MIB or (collective == "all_reduce" and setting.hosts > 2):
        return "-"
    return f"{factor}: {'met' if time <= factor * bound else 'missed'}"


def row(setting: Setting, contest: Contest, cell: tuple[str, int], speed: float) -> list[str]:
    collective, size = cell
    n = setting.ranks
    point = Point(collective, "auto", n, count_of(collective, size, n, "float32"), "float32",
                  "sum", 0)  # fmt: skip
    figures, rivals = contest.measure(point)
    figure, gloo = figures[point.usually_in_place], rivals.get("gloo")
    bound = float(setting.crossing(collective, size)) * 8 / speed * 1e6
    large = size >= 32 * KIB
    return [
        collective,
        format_size(size),
        us(bound) if large else "-",
        us(figure.time_us),
        f"{figure.time_us / bound:.3f}" if large else "-",
        verdict(setting, collective, size, figure.time_us, bound),
        str(figure.wrong),
        str(figure.calls),
        us(gloo) if gloo else "not measured",
        "not measured" if gloo is None else f"{gloo / bound:.2f}" if large else "-",
    ]


def measured(setting: Setting) -> list[str]:
    """The section of a setting."""
    request = Request((), (setting.ranks,), (), seconds=SECONDS)
    with Testbed(setting.hosts, RATE) as bed:
        before = link_speed(bed)
        with sides(bed, setting) as (our, theirs):
            contest = Contest(our, theirs, request, lambda text: print(text, file=sys.stderr))
            rows = []
            for cell in setting.cells:
                rows.append(row(setting, contest, cell, before[0]))
                print(*rows[-1], file=sys.stderr, flush=True)
        after = link_speed(bed)
    heads = ["collective", "size", "bound, us", "ours, us", "ours / bound", "target", "wrong",
             "calls", "Gloo, us", "Gloo / bound"]  # fmt: skip
    return [
        f"## {setting.title()}",
        "",
        f"One TCP stream: {before[0] / 1e6:.0f} Mbit/s before, {after[0] / 1e6:.0f} after; "
        f"round trip of 8 bytes: {before[1]:.0f} us before, {after[1]:.0f} after.",
        "",
        *table(heads, rows),
    ]


def table(heads: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def figures() -> list[str]:
    load = os.getloadavg()[0]
    rival = "in turn with ours" if RIVALS["gloo"].python() else "not measured: there is no torch"
    sections = [line for setting in SETTINGS for line in measured(setting)]
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
        "of a single TCP stream, measured before. A bucket that was full lets its burst through",
        "at once, so small sizes can be below their bound by that much.",
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
