"""Operations that go on while the caller does something else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from threading import get_ident
from typing import Any, Final
from weakref import WeakSet

from ..errors import TooLate
from .members import ranks_text


class Handle:
    """An operation under way."""

    def __init__(
        self, future: Future[Any], interrupt: Callable[[], None],
        absent: Callable[[], Sequence[int]] = tuple,
    ) -> None:  # fmt: skip
        self._future, self._interrupt, self._absent = future, interrupt, absent

    def wait(self, timeout: float | None = None) -> Any:
        """The result, when it is there.

        Args:
            timeout: seconds to wait; without it, as long as it takes.

        Raises:
            TooLate: it is not there in time; it says which ranks of the node have not come.
                The operation goes on, and can be waited for again.
            RoundelayError: what went wrong in it.
            KeyboardInterrupt: the operation is ended, too.
        """
        try:
            return self._future.result(timeout)
        except LateError:
            if self._future.done():
                raise
            ranks = [*self._absent()]
            have = "have" if len(ranks) > 1 else "has"
            who = f": {ranks_text(ranks)} {have} not come to it" if ranks else ""
            raise TooLate(
                f"the operation has not ended within {timeout} s{who}; wait again",
                ranks[0] if ranks else -1,
            ) from None
        except KeyboardInterrupt:  # else the process could not end before the operation does
            if not self._future.done():
                self._interrupt()
            raise

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def error(self) -> BaseException | None:
        """What went wrong in it; None while it is under way."""
        return self._future.exception() if self._future.done() else None

    def then(self, call: Callable[[], Any]) -> None:
        """Have it called when it has ended: at once, or in the thread that ends it."""
        self._future.add_done_callback(lambda _: call())


def _interrupt_all() -> None:
    """Where the program has failed, its last calls would keep the process from ending."""
    if getattr(sys, "last_type", None) is not None:
        for worker in list(_WORKERS):
            worker.interrupt()


# Called before the threads of executors are waited for, which `atexit` is not.
threading._register_atexit(_interrupt_all)  # type: ignore[attr-defined]


class Worker:
    """A thread that does operations in the order in which they were submitted."""

    def __init__(
        self, name: str, interrupt: Callable[[], None],
        absent: Callable[[], Sequence[int]] = tuple,
    ) -> None:  # fmt: skip
        self._interrupt, self._absent = interrupt, absent
        self._threads = threads = list[int]()  # the one, once it has begun
        # Not a method of this object: that would be a cycle, and what it interrupts would stay.
        self._pool = ThreadPoolExecutor(1, name, lambda: threads.append(get_ident()))
        self._last: Handle | None = None
        _WORKERS.add(self)

    def interrupt(self) -> None:
        """Ends what is under way."""
        if not self.idle():
            self._interrupt()

    def submit(self, operation: Callable[[], Any]) -> Handle:
        """Have it done after all before it; at once, where the thread itself asks for it."""
        if self.mine():
            return Handle(_done(operation), self._interrupt)
        self._last = Handle(self._pool.submit(operation), self._interrupt, self._absent)
        return self._last

    def idle(self) -> bool:
        """Whether all that was submitted has been done."""
        return self._last is None or self._last.done()

    def mine(self) -> bool:
        """Whether it is the thread of the caller."""
        return get_ident() in self._threads

    def close(self) -> None:
        """Ends when what was submitted has been done."""
        self._pool.shutdown(wait=not self.mine())


_WORKERS: Final[WeakSet[Worker]] = WeakSet()


def _done(operation: Callable[[], Any]) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(operation())
    except Exception as error:
        future.set_exception(error)
    return future
