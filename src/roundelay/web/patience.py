"""How long the server waits for a client, and how much it works for clients at one time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..errors import RoundelayError

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD: Final = 10.0
"""Seconds that a client has for the head of its request."""
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


def impatient(headers: Mapping[str, str]) -> type[H11Protocol]:
    """A protocol for uvicorn that gives clients `HEAD` seconds to ask, and refuses in JSON.

    Args:
        headers: on its refusals.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        """Closes connections on which nothing whole is asked."""

        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self._late = self.loop.call_later(HEAD, self._refuse_late)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            asking = self.cycle is None or self.cycle.response_complete
            if asking and self._late is None:
                self._late = self.loop.call_later(HEAD, self._refuse_late)
            elif not asking:
                self._in_time()

        def connection_lost(self, exc: Exception | None) -> None:
            self._in_time()
            super().connection_lost(exc)

        def _in_time(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _refuse_late(self) -> None:
            if not self.transport.is_closing() and self.conn.our_state is h11.IDLE:
                self._refuse(408, f"no whole request in {HEAD:g} s; expected one")

        def send_400_response(self, msg: str) -> None:
            self._refuse(400, "no HTTP request that can be read; expected GET and a path")

        def _refuse(self, status: int, text: str) -> None:
            body = json.dumps({"error": text}).encode()
            fields = {**headers, "Content-Type": "application/json", "Connection": "close",
                      "Content-Length": str(len(body))}  # fmt: skip
            named: list[Any] = [(k.encode(), v.encode()) for k, v in fields.items()]
            for event in (h11.Response(status_code=status, headers=named), h11.Data(data=body),
                          h11.EndOfMessage()):  # fmt: skip
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Impatient
