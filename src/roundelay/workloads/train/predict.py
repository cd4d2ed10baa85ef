"""What the clock says of the steps that were measured, had all ranks but the slow ones been alike.

What a rank computes between two exchanges, and how long data move when all have come, are the
measured means. Who then waits for whom, and what is hidden, the clock finds. It gives each rank a
core of its own, so of what a rank computes only the processor's time counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from ...simulate.overlap import Exchange, Price, Step, StepClock, StepTiming, Task
from ...simulate.overlap.tasks import COMM, COMPUTE
from ...topology import Cluster, Fabric, Inside, Nics
from .measure import transfers
from .settings import Slow
from .stamps import Noted

NS = 1e-9


def predict(steps: Sequence[Sequence[Noted]], slow: Sequence[Slow]) -> tuple[StepTiming, float]:
    """The time of a step, and its seconds if no rank were slow.

    Args:
        steps: [step, rank] of the same ranks.
        slow: which are slow, and how much.
    """
    named = [note.rank for note in steps[0]]
    slower = [(named.index(s.rank), s.times) for s in slow if s.rank in named]
    skipped = {rank for rank, _ in slower}
    usual = [[n for r, n in enumerate(notes) if r not in skipped] or notes for notes in steps]
    tasks, prices = _tasks(usual, [transfers(notes) for notes in steps])
    clock = StepClock(Step(tasks), _node(len(named)), None, slower, prices=prices)
    return clock.time(), clock.time(evenly=True).time


def _tasks(steps: Sequence[Sequence[Noted]], moved: Sequence[Sequence[Sequence[int]]]
           ) -> tuple[list[Task], Mapping[Exchange, Price]]:  # fmt: skip
    """What a rank does, and what exchanges take."""
    usual = [note for notes in steps for note in notes]
    pieces = [fmean(column) for column in zip(*map(_pieces, usual), strict=True)]
    alone = min(1.0, fmean(note.computed for note in usual) / sum(pieces))
    works = [piece * alone * NS for piece in pieces]
    times = [fmean(t for step in moved for t in step[e]) * NS for e in range(len(moved[0]))]
    tasks: list[Task] = []
    prices: dict[Exchange, Price] = {}
    first = steps[0][0]
    before = sum(e.collective != "all_gather" for e in first.exchanges)
    for number, (e, seconds) in enumerate(zip(first.exchanges, times, strict=True)):
        after = [f"exchange {k}" for k in range(before)] if number == before else []
        tasks.append(Task(f"compute {number}", COMPUTE, works[number], after))
        exchange = Exchange(e.collective, e.bytes)
        tasks.append(Task(f"exchange {number}", COMM, exchange, [f"compute {number}"]))
        prices.setdefault(exchange, Price(latency=seconds))
    last = [f"exchange {k}" for k in range(len(times))]
    tasks.append(Task("the rest", COMPUTE, works[-1], last))
    return tasks, prices


def _pieces(note: Noted) -> Iterator[int]:
    """Ns that a rank computes before each exchange is issued, and after the last."""
    issued, at = [e.issued for e in note.exchanges], note.span[0]
    for moment in (*issued, note.span[1]):
        blocked = sum(max(0, min(b, moment) - max(a, at)) for a, b in note.blocked)
        yield moment - at - blocked
        at = moment


def _node(ranks: int) -> Cluster:
    """One machine with a core for each rank; what exchanges take on it is measured."""
    memory = Inside("bus", "memory", 1e10, latency=1e-6)
    nothing = Nics(0), Fabric("none")
    return Cluster("this machine", "measured", "cpu", 1, ranks, memory, *nothing, sockets=1)
