"""Several instances behind one door: each request to the least loaded; the dead start again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...errors import RoundelayError
from .instance import Instance
from .messages import Ask, Options, Piece

FIRST_PAUSE: Final = 0.5
"""Seconds before an instance is started again; twice as long after each failure, up to `PAUSE`."""
PAUSE: Final = 30.0


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
        instances: all of them, also those that are down.
        most: requests at once, running or waiting.
        counts: see `Counts`.
    """

    def __init__(self, options: Options, count: int, queue: int) -> None:
        """Not started yet.

        Args:
            options: of each.
            count: how many.
            queue: requests of each that may wait beside those that run.
        """
        self.instances = [Instance(options) for _ in range(count)]
        self.most = count * (options.batch + queue)
        self.counts = Counts(dict.fromkeys(("stop", "length", "cancelled", "error", "refused"), 0))
        self._watching: list[asyncio.Task[None]] = []

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
        self._watching = [asyncio.create_task(self._watch(i)) for i in self.instances]

    async def _watch(self, instance: Instance) -> None:
        """Start it again whenever it has ended."""
        while True:
            await instance.gone.wait()
            pause = FIRST_PAUSE
            while instance.ready is None:
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE)
                self.counts.restarts += 1
                try:
                    await instance.start()
                except RoundelayError as error:
                    print(f"roundelay: {error}; trying again in {pause:g} s", file=sys.stderr)

    def room(self, more: int) -> None:
        """Whether so many requests more may come.

        Raises:
            Full: they may not.
        """
        if self.load + more > self.most:
            self.counts.requests["refused"] += more
            raise Full(f"{self.load} requests are running or waiting; at most {self.most} may, "
                       "so try again later")  # fmt: skip

    async def ask(self, ask: Ask) -> AsyncIterator[Piece]:
        """A request's pieces from the least loaded instance; leaving early cancels it.

        Raises:
            NoneReady: there is none.
            InstanceDown: it ended before the request did.
        """
        ready = [instance for instance in self.instances if instance.ready]
        if not ready:
            self.counts.requests["error"] += 1
            raise NoneReady("no instance is ready; it is being started, so try again later")
        ended = "cancelled"
        pieces = min(ready, key=lambda instance: instance.load).ask(ask)
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
        for task in self._watching:
            task.cancel()
        for task in self._watching:
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.gather(*(instance.stop() for instance in self.instances))
