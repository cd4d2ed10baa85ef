"""Several instances behind one door: each request to the least loaded; the dead start again.

With a scaler they come and go with what is asked.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from ...errors import RoundelayError
from ...scaling import Scaler, Seen
from .instance import Instance
from .messages import Ask, Options, Piece

FIRST_PAUSE: Final = 0.5
"""Seconds before an instance is started again; twice as long after each failure, up to `PAUSE`."""
PAUSE: Final = 30.0
LOOK: Final = 1.0
"""Seconds from one look of the scaler to the next: on one machine a look costs nothing."""
DRAIN: Final = 0.1
"""Seconds between looks whether an instance that shall end has requests left."""


class Full(RoundelayError):
    """There are as many requests as may wait."""


class NoneReady(RoundelayError):
    """No instance is ready."""


@dataclass
class Counts:
    """What has happened since the start.

    Attributes:
        requests: by how they ended: stop, length, cancelled, error, refused.
        tokens: made.
        restarts: of instances.
    """

    requests: dict[str, int]
    tokens: int = 0
    restarts: int = 0


class Replicas:
    """The instances, and who watches over them.

    Attributes:
        instances: all that take requests, also those that are down.
        counts: see `Counts`.
    """

    def __init__(self, options: Options, count: int, queue: int,
                 scaler: Scaler | None = None) -> None:  # fmt: skip
        """Not started yet.

        Args:
            options: of each.
            count: how many at first.
            queue: requests of each that may wait beside those that run.
            scaler: how many later; None: always as many.
        """
        self._options, self._queue, self._scaler = options, queue, scaler
        self.instances = [Instance(options) for _ in range(count)]
        self.counts = Counts(dict.fromkeys(("stop", "length", "cancelled", "error", "refused"), 0))
        self._watching: dict[Instance, asyncio.Task[None]] = {}
        self._leaving: dict[Instance, asyncio.Task[None]] = {}
        self._scaling: asyncio.Task[None] | None = None
        self._admitted = 0

    @property
    def places(self) -> int:
        """Requests that run at once in an instance."""
        return self._options.batch

    @property
    def most(self) -> int:
        """Requests at once, running or waiting."""
        return len(self.instances) * (self._options.batch + self._queue)

    @property
    def limit(self) -> int:
        """Requests at once with as many instances as there may ever be."""
        count = self._scaler.most if self._scaler else len(self.instances)
        return count * (self._options.batch + self._queue)

    @property
    def load(self) -> int:
        """Requests at the moment, running or waiting."""
        return sum(instance.load for instance in self.instances)

    async def start(self) -> None:
        """Start all; return when they are ready.

        Raises:
            InstanceDown: one could not be started.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for instance in self.instances:
                    group.create_task(instance.start())
        except* RoundelayError as errors:
            await self.stop()
            raise errors.exceptions[0] from None
        self._watching = {i: asyncio.create_task(self._watch(i)) for i in self.instances}
        if self._scaler:
            self._scaling = asyncio.create_task(self._scale(self._scaler))

    async def _watch(self, instance: Instance) -> None:
        """Start it again whenever it has ended."""
        while True:
            await instance.gone.wait()
            await asyncio.sleep(FIRST_PAUSE)
            self.counts.restarts += 1
            await self._up(instance)

    async def _up(self, instance: Instance) -> None:
        """Start it, however often that takes."""
        pause = FIRST_PAUSE
        while instance.ready is None:
            try:
                await instance.start()
            except RoundelayError as error:
                pause = min(2 * pause, PAUSE)
                print(f"roundelay: {error}; trying again in {pause:g} s", file=sys.stderr)
                await asyncio.sleep(pause)

    async def _scale(self, scaler: Scaler) -> None:
        """As many as the scaler wants."""
        while True:
            await asyncio.sleep(LOOK)
            more = scaler.count(self._seen()) - len(self.instances)
            for _ in range(more):
                instance = Instance(self._options)
                self.instances.append(instance)
                self._watching[instance] = asyncio.create_task(self._come(instance))
            for _ in range(-more):
                instance = min(self.instances, key=lambda i: (i.ready is not None, i.load))
                self.instances.remove(instance)
                self._leaving[instance] = asyncio.create_task(self._leave(instance))

    def _seen(self) -> Seen:
        """What there is now; what has come is not weighed, as lengths of answers are not known."""
        running = sum(min(instance.load, self.places) for instance in self.instances)
        waiting = self.load - running
        return Seen(time.monotonic(), len(self.instances), self.places, running, waiting, 0)

    async def _come(self, instance: Instance) -> None:
        await self._up(instance)
        await self._watch(instance)

    async def _leave(self, instance: Instance) -> None:
        """It takes no more requests; when it has none it ends."""
        await _ended(self._watching.pop(instance))
        while instance.load:
            await asyncio.sleep(DRAIN)
        await instance.stop()
        del self._leaving[instance]

    @contextmanager
    def admitted(self, more: int) -> Iterator[None]:
        """Places for so many requests, from now on; all that are asked must have them.

        Raises:
            Full: there are not so many.
            NoneReady: no instance is there to take them.
        """
        if self._admitted + more > self.most:
            self.counts.requests["refused"] += more
            raise Full(f"{self._admitted} requests are running or waiting; at most {self.most} "
                       "may, so try again later")  # fmt: skip
        self._ready()
        self._admitted += more
        try:
            yield
        finally:
            self._admitted -= more

    def _ready(self) -> list[Instance]:
        ready = [instance for instance in self.instances if instance.ready]
        if not ready:
            self.counts.requests["error"] += 1
            raise NoneReady("no instance is ready; it is being started, so try again later")
        return ready

    def give_up(self, why: str) -> None:
        """End every request by an error."""
        for instance in (*self.instances, *self._leaving):
            instance.give_up(why)

    async def ask(self, ask: Ask) -> AsyncIterator[Piece]:
        """A request's pieces from the least loaded instance; leaving early cancels it.

        Raises:
            NoneReady: there is none.
            InstanceDown: it ended before the request did.
        """
        ended = "cancelled"
        pieces = min(self._ready(), key=lambda instance: instance.load).ask(ask)
        try:
            async for piece in pieces:
                self.counts.tokens += 1
                ended = piece.finish or ended
                yield piece
        except RoundelayError:
            ended = "error"
            raise
        finally:
            self.counts.requests[ended] += 1
            await pieces.aclose()  # type: ignore[attr-defined]

    async def stop(self) -> None:
        """Let all finish what they have, and end."""
        tasks = [*self._watching.values(), *self._leaving.values()]
        for task in ([self._scaling] if self._scaling else []) + tasks:
            await _ended(task)
        await asyncio.gather(*(i.stop() for i in (*self.instances, *self._leaving)))


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancel it, and wait until it is."""
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
