"""What a communicator counts all the time: its calls by kind, and its waits by peer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

from . import _native
from .run.group import Group
from .units import format_size

SIZES: Final = tuple(1024 << 3 * k for k in range(7))
"""Bytes up to which a call is of a size class: 1 KiB, 8 KiB, ..., 256 MiB."""
MOST: Final = 1024
"""Kinds that are told apart; calls of further algorithms count as of `OTHER`."""
OTHER: Final = "other"

Kind = tuple[str, str, str]
"""Collective, algorithm and size class."""


class CallCount(NamedTuple):
    """Calls of one kind that have ended well, since the communicator was made.

    Attributes:
        collective: such as "all_reduce".
        algorithm: with its parameters, such as "ring".
        size: class of the calls' bytes, such as "<=1KiB" or ">256MiB".
        calls: how many.
        bytes: of all of them, counted as the collective's size is (nccl-tests' convention).
        seconds: in which this rank was inside the engine for them, waits included.
    """

    collective: str
    algorithm: str
    size: str
    calls: int
    bytes: int
    seconds: float


class WaitCount(NamedTuple):
    """Waits of this rank for another one, since the communicator was made.

    Only waits that outlast the spinning count, and from then on: after about 50 us, or at once
    where more ranks than processors share the machine.

    Attributes:
        peer: rank that was waited for, or whose process has the helper that was.
        waits: how many.
        seconds: of all of them.
        longest_seconds: of one.
    """

    peer: int
    waits: int
    seconds: float
    longest_seconds: float


class Metrics(NamedTuple):
    """What one rank of a communicator has counted.

    Attributes:
        group: the communicator's name.
        rank: this process's rank in it.
        calls: by kind; those that set-up and reports make are among them.
        waits: by peer, ascending; a peer that was never waited for is not there.
    """

    group: str
    rank: int
    calls: list[CallCount]
    waits: list[WaitCount]


class Counters:
    """The counts of calls, by kind. They stay when the tasks that raise them are forgotten."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._counts: dict[Kind, _native.Counts] = {}

    def of(self, collective: str, algorithm: str, size: int) -> _native.Counts:
        """Where calls of this kind and of so many bytes count."""
        kind = collective, algorithm, size_class(size)
        if kind not in self._counts and len(self._counts) >= MOST:
            kind = collective, OTHER, kind[2]
        return self._counts.setdefault(kind, _native.Counts())

    def read(self) -> list[CallCount]:
        """What there is; any thread may ask."""
        read = [(kind, *counts.read()) for kind, counts in list(self._counts.items())]
        return [CallCount(*kind, calls, size, ns / 1e9) for kind, calls, size, ns in read if calls]


def size_class(size: int) -> str:
    """The class of so many bytes."""
    at = bisect_left(SIZES, size)
    sign, bound = ("<=", SIZES[at]) if at < len(SIZES) else (">", SIZES[-1])
    return sign + format_size(bound).replace(" ", "")


def waits(groups: Iterable[Group], rank: int) -> list[WaitCount]:
    """What a rank has waited for others, and for helpers in their processes."""
    found: dict[int, tuple[int, int, int]] = {}
    for group in groups:
        for participant, times, ns, longest in group.endpoints[rank].waits():
            peer = group.hosts[participant]
            before = found.get(peer, (0, 0, 0))
            found[peer] = before[0] + times, before[1] + ns, max(before[2], longest)
    return [WaitCount(peer, times, ns / 1e9, longest / 1e9)
            for peer, (times, ns, longest) in sorted(found.items())]  # fmt: skip
