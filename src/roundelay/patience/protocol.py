"""Connections that end when nothing whole is asked on them, or nothing taken."""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .rules import Rules

LEAST: Final = 1 << 14
"""Bytes that a client must take of an answer, each time that it is looked at."""


class Impatient(H11Protocol):
    """Closes connections on which nothing whole is asked, or nothing taken."""

    rules: ClassVar[Rules]
    _late: asyncio.TimerHandle | None = None
    _slow: asyncio.TimerHandle | None = None
    _part: object = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for a request; if too many wait, one must go."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # whatever is not taken is seen
        self._wait()
        here = [c for c in self.connections if c._open]
        if len(here) > self.rules.most:
            idle = [c for c in here if c._late or c.transport.is_closing()]
            min(idle, key=lambda c: (not c.transport.is_closing(), c._since))._leave()

    def handle_events(self) -> None:
        """See which part of the request has come."""
        super().handle_events()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
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
            most = self.rules.most
            self._refuse(
                503, f"{most} connections are open, and no more may be; try again in a while"
            )

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
            seconds = self.rules.head if part is h11.IDLE else self.rules.body
            self._late = self.loop.call_later(seconds, self._give_up, seconds)

    def _give_up(self, seconds: float) -> None:
        what = "head of a request" if self._part is h11.IDLE else "body of the request"
        self._refuse(408, f"no whole {what} in {seconds:g} s; expected one")

    def pause_writing(self) -> None:
        """Some of an answer waits for the client: watch it."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """All of it is taken."""
        super().resume_writing()
        if self._slow is not None:
            self._slow.cancel()

    def _watch(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._slow = self.loop.call_later(self.rules.take, self._look, left)

    def _look(self, before: int) -> None:
        """See that the client takes its answer."""
        taken = before - self.transport.get_write_buffer_size()
        if taken < min(before, LEAST):
            self.transport.abort()
        else:
            self._watch()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        self._refuse(400, "no HTTP request that can be read; expected a method and a path")

    def _refuse(self, status: int, text: str) -> None:
        """Say it, unless an answer has begun; and close."""
        if self.transport.is_closing():
            return
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(self.rules.told(text, status)).encode()
            fields = {
                **self.rules.headers,
                "Content-Type": "application/json",
                "Connection": "close",
                "Content-Length": str(len(body)),
            }
            named: list[Any] = [(k.encode(), v.encode()) for k, v in fields.items()]
            for event in (h11.Response(status_code=status, headers=named), h11.Data(data=body),
                          h11.EndOfMessage()):  # fmt: skip
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # whoever answers it needn't any more
            self.cycle.message_event.set()
        self.transport.close()
