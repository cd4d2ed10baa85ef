"""How long a server waits for its clients, and how many it listens to at one time.

Every connection may be one that asks nothing, or takes nothing of its answer. Such a one is sent
away after a time, and before that when others need its place.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD: Final = 10.0
"""Seconds that a client has for the head of its request."""
BODY: Final = 30.0
"""Seconds that it then has for the body."""
TAKE: Final = 30.0
"""Seconds in which it must take some of an answer that waits for it."""
LEAST: Final = 1 << 14
"""Bytes that it must take in that time."""
Told = Callable[[str, int], Any]
"""What stands in the body of a refusal, as JSON, by its text and status."""


def connections(wanted: int) -> int:
    """As many as are wanted, but at most half as many as the process may have files open."""
    return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def impatient(headers: Mapping[str, str], most: int, told: Told) -> type[H11Protocol]:
    """A protocol for uvicorn that waits only so long, and refuses in JSON.

    A request that is not whole in time gets status 408. Where more connections are open than may
    be, the one that has been asking for longest is sent away with status 503; so a client that
    asks at once is always heard, and only if all others wait for answers a new one is refused.

    Args:
        headers: on its refusals.
        most: connections that may be open.
        told: what stands in them.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        """Closes connections on which nothing whole is asked, or nothing taken."""

        _late: asyncio.TimerHandle | None = None
        _slow: asyncio.TimerHandle | None = None
        _part: object = None
        _since = 0.0

        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            transport.set_write_buffer_limits(0)  # whatever is not taken is seen
            self._wait()
            here = [c for c in self.connections if c._open]
            if len(here) > most:
                idle = [c for c in here if c._late or c.transport.is_closing()]
                min(idle, key=lambda c: (not c.transport.is_closing(), c._since))._leave()

        def handle_events(self) -> None:
            super().handle_events()
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._late, self._slow):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        @property
        def _open(self) -> bool:
            transport = self.transport
            return not transport.is_closing() or transport.get_write_buffer_size() > 0

        def _leave(self) -> None:
            """Make room for others."""
            if self.transport.is_closing():
                self.transport.abort()
            else:
                self._refuse(503, f"{most} connections are open, and no more may be; try again in "
                                  "a while")  # fmt: skip

        def _wait(self) -> None:
            """Wait for the part of the request that comes next; or no more, when it is whole."""
            part = self.conn.their_state
            if part is self._part:
                return
            self._part = part
            if self._late is not None:
                self._late.cancel()
                self._late = None
            if part in (h11.IDLE, h11.SEND_BODY):
                self._since = self.loop.time()
                seconds = HEAD if part is h11.IDLE else BODY
                self._late = self.loop.call_later(seconds, self._give_up, seconds)

        def _give_up(self, seconds: float) -> None:
            what = "head of a request" if self._part is h11.IDLE else "body of the request"
            self._refuse(408, f"no whole {what} in {seconds:g} s; expected one")

        def pause_writing(self) -> None:
            super().pause_writing()
            self._watch()

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._slow is not None:
                self._slow.cancel()

        def _watch(self) -> None:
            left = self.transport.get_write_buffer_size()
            self._slow = self.loop.call_later(TAKE, self._look, left)

        def _look(self, before: int) -> None:
            """See that the client takes its answer."""
            taken = before - self.transport.get_write_buffer_size()
            if taken < min(before, LEAST):
                self.transport.abort()
            else:
                self._watch()

        def send_400_response(self, msg: str) -> None:
            self._refuse(400, "no HTTP request that can be read; expected a method and a path")

        def _refuse(self, status: int, text: str) -> None:
            """Say it, unless an answer has begun; and close."""
            if self.transport.is_closing():
                return
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                body = json.dumps(told(text, status)).encode()
                fields = {**headers, "Content-Type": "application/json", "Connection": "close",
                          "Content-Length": str(len(body))}  # fmt: skip
                named: list[Any] = [(k.encode(), v.encode()) for k, v in fields.items()]
                for event in (h11.Response(status_code=status, headers=named), h11.Data(data=body),
                              h11.EndOfMessage()):  # fmt: skip
                    self.transport.write(self.conn.send(event) or b"")
            if self.cycle is not None:
                self.cycle.disconnected = True  # whoever answers it needn't any more
                self.cycle.message_event.set()
            self.transport.close()

    return Impatient
