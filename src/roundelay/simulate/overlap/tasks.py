"""A step of training: tasks on the streams of every card, and what they wait for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ...collectives import UnknownName, collective
from ...errors import RoundelayError

COMPUTE: Final = "compute"
COMM: Final = "comm"
LONGEST: Final = 9e6
"""Seconds that the tasks of a step take together, at most, so that picoseconds fit 64 bits."""


@dataclass(frozen=True)
class Group:
    """Ranks that exchange with one another, and all other ranks in groups of the same form.

    Ranks 0, stride, 2 * stride, ... are one; 1, 1 + stride, ... the next.

    Attributes:
        size: ranks of a group.
        stride: from one to the next.
    """

    size: int
    stride: int = 1

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("stride", self.stride)):
            if not isinstance(value, int) or value < 1:
                raise RoundelayError(f"group: {name} = {value!r}; expected 1 or more")

    def __str__(self) -> str:
        apart = f", {self.stride} apart" if self.stride > 1 else ""
        return f"groups of {self.size:,}{apart}"

    @property
    def block(self) -> int:
        """Ranks that several groups share without a rest."""
        return self.size * self.stride


@dataclass(frozen=True)
class Exchange:
    """A collective among the ranks of a group, and in all other groups likewise.

    Attributes:
        collective: its name.
        size: bytes, as in nccl-tests' size column.
        group: who exchanges; None: all ranks.
    """

    collective: str
    size: int
    group: Group | None = None

    def __post_init__(self) -> None:
        collective(self.collective)
        if not isinstance(self.size, int) or not 0 <= self.size < 2**63:
            raise RoundelayError(f"size = {self.size!r}; expected a whole number of bytes, "
                                 "0 or more")  # fmt: skip


@dataclass(frozen=True)
class Task:
    """What every rank does once in a step.

    Attributes:
        name: its own.
        stream: where it stands in line: it begins when the task listed before it there has ended.
        work: seconds of computing, or an exchange.
        after: names of tasks listed earlier that must have ended on the same rank.
    """

    name: str
    stream: str
    work: float | Exchange
    after: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.work, Exchange) and not 0 <= self.work < math.inf:
            raise RoundelayError(f"task {self.name!r}: {self.work!r} seconds; expected 0 or more")

    @property
    def exchange(self) -> Exchange | None:
        """What it exchanges; None where it computes."""
        return self.work if isinstance(self.work, Exchange) else None


@dataclass(frozen=True, eq=False)
class Step:
    """The tasks of a step, the same on every rank.

    A task waits only for tasks listed before it, so there is always one that can go on.

    Attributes:
        tasks: in an order in which a rank could do them one by one.

    Raises:
        RoundelayError: no tasks, a name twice, or a task that waits for one listed later.
    """

    tasks: Sequence[Task]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise RoundelayError("a step without tasks; expected one at least")
        every = {task.name for task in self.tasks}
        seen: set[str] = set()
        for task in self.tasks:
            if task.name in seen:
                raise RoundelayError(f"two tasks {task.name!r}; expected names that differ")
            for name in task.after:
                if name not in every:
                    raise UnknownName(f"task that {task.name!r} waits for,", name, every)
                if name not in seen:
                    raise RoundelayError(f"task {task.name!r} waits for {name!r}, which is not "
                                         "listed before it; list it earlier")  # fmt: skip
            seen.add(task.name)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """Names of streams, in order of first use."""
        return tuple(dict.fromkeys(task.stream for task in self.tasks))

    @cached_property
    def forgotten(self) -> dict[str, list[str]]:
        """Tasks that no later one waits for, by the task after which that is so."""
        last = {task.name: task.name for task in self.tasks}
        last |= {name: task.name for task in self.tasks for name in task.after}
        found: dict[str, list[str]] = {}
        for name, by in last.items():
            found.setdefault(by, []).append(name)
        return found

    @cached_property
    def exchanges(self) -> dict[Exchange, int]:
        """What is exchanged, and how many tasks do."""
        found: dict[Exchange, int] = {}
        for task in self.tasks:
            if task.exchange:
                found[task.exchange] = found.get(task.exchange, 0) + 1
        return found

    @cached_property
    def groups(self) -> tuple[Group | None, ...]:
        """Who exchanges with whom."""
        return tuple(dict.fromkeys(exchange.group for exchange in self.exchanges))
