"""Tracing a part of a program: all ranks record, and rank 0 gets the timeline of all.

Ranks of one machine have one clock. The clocks of other machines are compared before and after:
each rank says what its clock shows in a few all-gathers. What it says was sent after it was read
and is read before the all-gather ends there, so each of them bounds the difference from both
sides; the middle of the tightest bounds is taken, and half of their distance is the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self

import msgspec
import numpy as np
import numpy.typing as npt

from .errors import RoundelayError
from .recorder import EVENTS, Recorder
from .timeline import COLUMNS, Act, Column, Timeline

WARM: Final = 3
ROUNDS: Final = 12
"""All-gathers that compare clocks, after a few that only make ready."""


class Ranks(Protocol):
    """What tracing needs of a communicator."""

    rank: int
    ranks: int

    def all_gather(self, x: Any, /) -> Any:
        """See `Communicator`."""

    def gather(self, x: Any, /, *, counts: Sequence[int]) -> Any:
        """See `Communicator`."""


class Clocks(NamedTuple):
    """How much each rank's clock is ahead of rank 0's, at some moment.

    Attributes:
        at: ns of rank 0's clock.
        ahead: [rank], ns.
        error: [rank], ns by which `ahead` may be wrong.
    """

    at: int
    ahead: npt.NDArray[np.int64]
    error: npt.NDArray[np.int64]


class Trace:
    """What happens inside a `with` block; see `Communicator.trace`.

    Attributes:
        error: seconds by which times of different machines may be wrong; 0 on one machine, and
            where the block has not ended well.
    """

    def __init__(self, comm: Ranks, recorder: Recorder, events: int,
                 in_order: Callable[[Callable[[], Any]], Any]) -> None:  # fmt: skip
        self.error = 0.0
        self._comm, self._recorder, self._events = comm, recorder, events
        self._in_order = in_order
        self._timeline: Timeline | None = None

    @property
    def timeline(self) -> Timeline:
        """The events: on rank 0 of all ranks, on the others of this process.

        Times are those of rank 0's clock on rank 0, and elsewhere of the own one.

        Raises:
            RoundelayError: the block has not ended yet.
        """
        if self._timeline is None:
            raise RoundelayError("the timeline is there when the `with` block of the trace ends")
        return self._timeline

    def __enter__(self) -> Self:
        self._before = compare(self._comm)
        self._was_on = self._recorder.events > 0
        self._since = self._in_order(lambda: self._recorder.start(self._events))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        own = self._timeline = self._in_order(self._taken)
        if error is not None:  # the others may not come
            return
        after = compare(self._comm)
        parts = self._gathered(pack(own))
        self.error = max(int(self._before.error.max()), int(after.error.max())) / 1e9
        if self._comm.rank == 0:
            timelines = [adjusted(unpack(data), r, self._before, after)
                         for r, data in enumerate(parts)]  # fmt: skip
            self._timeline = Timeline.joined(timelines)

    def _taken(self) -> Timeline:
        found = self._recorder.timeline(self._since)
        if not self._was_on:
            self._recorder.stop()
        return found

    def _gathered(self, data: bytes) -> list[bytes]:
        """What all ranks bring, on rank 0."""
        sizes = self._comm.all_gather(np.array([len(data)], np.int64))
        whole = self._comm.gather(np.frombuffer(data, np.uint8), counts=sizes.tolist())
        if self._comm.rank != 0:
            return []
        ends = np.cumsum(sizes)
        return [whole[e - s : e].tobytes() for s, e in zip(sizes, ends, strict=True)]


def compare(comm: Ranks) -> Clocks:
    """The ranks' clocks beside rank 0's; every rank must call it."""
    clocks = comm.all_gather(np.frombuffer(clock_name().ljust(64)[:64].encode(), np.uint8))
    names = [row.tobytes() for row in clocks.reshape(comm.ranks, -1)]
    nothing = np.zeros(comm.ranks, np.int64)
    if len(set(names)) == 1:
        return Clocks(time.monotonic_ns(), nothing, nothing)
    shown = np.zeros((ROUNDS, comm.ranks), np.int64)
    ended = np.zeros(ROUNDS, np.int64)
    for k in range(-WARM, ROUNDS):
        row = comm.all_gather(np.array([time.monotonic_ns()], np.int64))
        if k >= 0:
            ended[k] = time.monotonic_ns()
            shown[k] = row
    every = comm.all_gather(ended).reshape(comm.ranks, ROUNDS).T
    return differences(names, shown, every)


def differences(
    names: Sequence[bytes], shown: npt.NDArray[np.int64], ended: npt.NDArray[np.int64]
) -> Clocks:
    """How much clocks differ, by what they showed.

    Args:
        names: [rank], equal where two ranks have one clock.
        shown: [round, rank], what the rank's clock showed before it sent that.
        ended: [round, rank], what it showed when all had come.
    """
    most = (ended - shown[:, :1]).min(axis=0)
    least = (shown - ended[:, :1]).max(axis=0)
    for name in set(names):
        same = np.array([other == name for other in names])
        most[same], least[same] = most[same].min(), least[same].max()
    own = np.array([name == names[0] for name in names])
    ahead = np.where(own, 0, (most + least) // 2)
    return Clocks(int(ended[-1, 0]), ahead, np.where(own, 0, (most - least + 1) // 2))


def adjusted(timeline: Timeline, rank: int, before: Clocks, after: Clocks) -> Timeline:
    """A rank's events on the clock of rank 0: clocks drift, so between the two measurements."""
    return timeline.shifted(-lead(timeline.begin, rank, before, after))


def lead(times: Column, rank: int, before: Clocks, after: Clocks) -> Column:
    """By how many ns a rank's clock was ahead of rank 0's at these times on it."""
    first, last = int(before.ahead[rank]), int(after.ahead[rank])
    begin, end = before.at + first, after.at + last
    if first == last or begin == end:
        return np.full(times.shape, last)
    part = (times - begin) / (end - begin)
    drifted: Column = first + np.rint(part * (last - first)).astype(np.int64)
    return drifted


def clock_name() -> str:
    """A text that is equal for processes with the same monotonic clock."""
    boot = space = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        space = str(Path("/proc/self/ns/time").readlink())
    return f"{boot} {space}"


class _Packed(msgspec.Struct, array_like=True):
    columns: list[bytes]
    calls: dict[int, str]
    names: list[str]
    nodes: list[int]
    acts: list[Act]
    lost: int


def pack(timeline: Timeline) -> bytes:
    """A timeline as bytes, for another rank."""
    columns = [getattr(timeline, name).tobytes() for name in COLUMNS]
    return msgspec.msgpack.encode(
        _Packed(columns, dict(timeline.calls), list(timeline.names), list(timeline.nodes),
                list(timeline.acts), timeline.lost)
    )  # fmt: skip


def unpack(data: bytes) -> Timeline:
    """The timeline that `pack` got."""
    p = msgspec.msgpack.decode(data, type=_Packed)
    arrays = [np.frombuffer(column, np.int64) for column in p.columns]
    columns: dict[str, Any] = dict(zip(COLUMNS, arrays, strict=True))
    return Timeline(**columns, calls=p.calls, names=p.names, nodes=p.nodes, acts=p.acts,
                    lost=p.lost)  # fmt: skip


__all__ = ["EVENTS", "Clocks", "Trace", "adjusted", "compare", "differences", "lead", "pack",
           "unpack"]  # fmt: skip
