"""One thread that waits on many sockets: coroutines, and the loop that runs them.

Not asyncio: a start-up must work where the caller has an event loop of its own running, as in a
notebook. There is no kernel object beside sockets, so a forked child cannot disturb its parent.
"""

from __future__ import annotations

import selectors
import socket
import time
import types
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE
FOREVER: Final = float("inf")


@dataclass(frozen=True)
class Wait:
    """What a coroutine waits for: a socket, or a moment of `time.monotonic`."""

    sock: socket.socket | None
    events: int
    until: float


Work = Coroutine[Wait, None, None]


@types.coroutine
def ready(sock: socket.socket, events: int) -> Generator[Wait, None, None]:
    """Waits until a socket can be read, or written, or has failed."""
    yield Wait(sock, events, FOREVER)


@types.coroutine
def pause(seconds: float) -> Generator[Wait, None, None]:
    """Waits for some seconds."""
    yield Wait(None, 0, time.monotonic() + seconds)


@dataclass(eq=False)
class Task:
    """A coroutine under way; at its deadline TimeoutError is raised inside it."""

    work: Work
    deadline: float
    wait: Wait = field(default=Wait(None, 0, 0.0))
    ended: bool = False


class Loop:
    """Runs coroutines while somebody calls `run`, and keeps them in between.

    What a coroutine raises comes out of `run`, so one that may fail without harm to the others
    must catch its own errors.
    """

    def __init__(self) -> None:
        self._selector = selectors.PollSelector()
        self._tasks: set[Task] = set()
        self.current: Task | None = None
        self._bell: tuple[socket.socket, ...] = ()
        self._ending = False

    def end(self) -> None:
        """Has `run` return for good, in whatever thread it is."""
        self._ending = True
        self.wake()

    def hang_bell(self) -> None:
        """Makes `wake` work."""
        self._bell = socket.socketpair()
        for end in self._bell:
            end.setblocking(False)
        self._selector.register(self._bell[0], READ)

    def wake(self) -> None:
        """Has `run`, in whatever thread it is, look again whether it is done."""
        for rope in self._bell[1:]:
            with suppress(OSError):  # full: it will wake; closed: there is nothing to wake
                rope.send(b"!")

    def start(self, work: Work, deadline: float = FOREVER) -> Task:
        """Adds a coroutine; its first step is taken by `run`."""
        task = Task(work, deadline)
        self._tasks.add(task)
        return task

    def limit(self, seconds: float) -> None:
        """Sets the deadline of the coroutine that calls this, from now on."""
        if self.current is not None:
            self.current.deadline = time.monotonic() + seconds

    def run(self, done: Callable[[], bool], deadline: float | Callable[[], float]) -> bool:
        """Runs all coroutines until `done()`, or until the deadline; whether it is done.

        A deadline that may come nearer on the way is a function.
        """
        while not done():
            if self._ending:
                return False
            for task in self._due():
                self._step(task)
                if done():
                    return True
            end = deadline() if callable(deadline) else deadline
            now = time.monotonic()
            if now >= end:
                return False
            self._poll(min(end, self._next_moment()) - now)
        return True

    def stop(self, task: Task) -> None:
        """Ends a coroutine where it stands; its `finally` clauses run."""
        self._forget(task)
        task.work.close()

    def close(self) -> None:
        """Ends all coroutines."""
        for task in list(self._tasks):
            self.stop(task)
        self._selector.close()
        for end in self._bell:
            end.close()

    def _due(self) -> Iterator[Task]:
        now = time.monotonic()
        for task in list(self._tasks):
            if task in self._tasks and min(task.wait.until, task.deadline) <= now:
                yield task

    def _next_moment(self) -> float:
        return min((min(t.wait.until, t.deadline) for t in self._tasks), default=FOREVER)

    def _poll(self, seconds: float) -> None:
        for key, _ in self._selector.select(min(max(0.0, seconds), 3600.0)):
            if key.data is None:
                self._bell[0].recv(4096)
            elif key.data in self._tasks:
                self._step(key.data)

    def _step(self, task: Task) -> None:
        self._unwatch(task)
        late = time.monotonic() >= task.deadline
        if late:
            task.deadline = FOREVER  # raised once; it may go on
        self.current = task
        try:
            wait = task.work.throw(TimeoutError()) if late else task.work.send(None)
        except StopIteration:
            self._forget(task)
            return
        except BaseException:
            self._forget(task)
            raise
        finally:
            self.current = None
        task.wait = wait
        if wait.sock is not None:
            self._selector.register(wait.sock, wait.events, task)

    def _unwatch(self, task: Task) -> None:
        if task.wait.sock is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(task.wait.sock)
            task.wait = Wait(None, 0, FOREVER)

    def _forget(self, task: Task) -> None:
        self._unwatch(task)
        self._tasks.discard(task)
        task.ended = True
