"""How much the server works for its clients at one time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Thread
from typing import Final, TypeVar

from ..errors import RoundelayError

LOOK: Final = 0.5
"""Seconds from one look whether a client that waits is still there to the next."""
T = TypeVar("T")


class Busy(RoundelayError):
    """As many wait as may, or the server ends."""


class Gone(RoundelayError):
    """The client has gone while it waited."""


class Turns:
    """Lets so much work be done at one time, each in a thread of its own; the rest waits.

    The threads are not waited for when the server ends: what they work out is wanted by nobody
    then.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        """So many at one time, and so many that wait for them."""
        self._turns, self._free = asyncio.Semaphore(at_once), waiting

    async def do(self, work: Callable[[], T], gone: Callable[[], Awaitable[bool]]) -> T:
        """What the work gives, when it has its turn.

        Args:
            work: in a thread.
            gone: whether whoever wants it has gone.

        Raises:
            Busy: too many wait, or the server ends.
            Gone: there is nobody to do it for.
        """
        if not self._free:
            raise Busy("many other requests are being answered; try again in a while")
        self._free -= 1
        try:
            await self._turn(gone)
        except asyncio.CancelledError:
            raise Busy("the server ends") from None
        finally:
            self._free += 1
        done = in_thread(work)
        done.add_done_callback(lambda _: self._turns.release())
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            raise Busy("the server ends") from None

    async def _turn(self, gone: Callable[[], Awaitable[bool]]) -> None:
        while True:
            if await gone():
                raise Gone("the client has gone")
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._turns.acquire()
                    return


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """What a function gives that is called in a thread which nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(found: T | None, error: Exception | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found)  # type: ignore[arg-type]

    def go() -> None:
        found, error = None, None
        try:
            found = work()
        except Exception as raised:
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, found, error)

    Thread(target=go, daemon=True).start()
    return future
