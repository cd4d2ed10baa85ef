"""A thread that runs a session's loop while nobody else does, so that ranks are always heard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, RLock, Thread
from typing import Final

from .door import log
from .loop import FOREVER, Loop

PATIENCE: Final = 2.0
"""Seconds that its end is waited for; a step of a coroutine takes less."""


class Keeper:
    """Runs a loop in a thread of its own, and hands it to whoever has something to wait for.

    So a call that waits does that in its caller's thread, where Ctrl-C ends it.
    """

    def __init__(self, loop: Loop, name: str) -> None:
        self._loop = loop
        loop.hang_bell()
        self._turn, self._gate = RLock(), Condition()
        self._wanted, self._ended = 0, False
        self._thread = Thread(target=self._go, name=name, daemon=True)
        self._thread.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within this the loop is the caller's; callers take turns."""
        with self._gate:
            self._wanted += 1
        self._loop.wake()
        try:
            with self._turn:
                yield
        finally:
            with self._gate:
                self._wanted -= 1
                self._gate.notify()

    def end(self) -> None:
        """Ends the thread; the loop is the caller's."""
        with self._gate:
            self._ended = True
            self._gate.notify()
        self._loop.wake()
        self._thread.join(PATIENCE)

    def _go(self) -> None:
        while True:
            with self._gate:
                self._gate.wait_for(lambda: self._ended or not self._wanted)
            if self._ended:
                return
            try:
                with self._turn:
                    self._loop.run(lambda: self._ended or self._wanted > 0, FOREVER)
            except Exception:  # of one coroutine, which is no more; the others go on
                log.exception("a defect in Roundelay, in the thread %s", self._thread.name)
