"""What torch gets for a call: a `Work`, done or under way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist

from ..run.handles import Handle

FOREVER: Final = timedelta(0)
"""What torch gives, or less, where no time to wait is meant."""


class Finished(dist.Work):
    """A call that has been made.

    Attributes:
        tensors: what it has set.
    """

    def __init__(self, tensors: Any, source: int = -1) -> None:
        super().__init__()
        self.tensors, self.source = tensors, source

    def wait(self, timeout: timedelta = FOREVER) -> bool:
        """Returns at once, or when it has ended."""
        return True

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return True

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """What went wrong."""
        return None

    def result(self) -> Any:
        """The tensors that it has set."""
        return self.tensors

    def synchronize(self) -> None:
        """As `wait`."""
        self.wait()

    def block_current_stream(self) -> None:
        """As `wait`: there are no streams on the CPU."""
        self.wait()

    def source_rank(self) -> int:
        """The rank whose message has come, for a receive from any."""
        return self.source

    def _source_rank(self) -> int:
        return self.source_rank()

    def get_future(self) -> torch.futures.Future[Any]:
        """A future of the tensors."""
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result(self.tensors)
        return future


class Pending(Finished):
    """A call that another thread makes.

    Args of the constructor:
        handle: of the call.
        tensors: what it sets.
        timeout: seconds that `wait` takes at most where it is not told.
        help: brings the call forward, in the thread that waits for it; may take that long.
    """

    def __init__(
        self, handle: Handle, tensors: Any, timeout: float | None = None,
        help: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(tensors)
        self._handle, self._timeout, self._help = handle, timeout, help

    def wait(self, timeout: timedelta = FOREVER) -> bool:
        """See the class; `TooLate` leaves the call under way."""
        if timeout > FOREVER:
            self._handle.wait(timeout.total_seconds())
            return True
        if self._help is not None and not self._handle.done():
            self._help()
        self._handle.wait(self._timeout)
        return True

    def is_completed(self) -> bool:
        """See `Finished`."""
        return self._handle.done()

    def exception(self) -> BaseException | None:
        """See `Finished`."""
        return self._handle.error()

    def get_future(self) -> torch.futures.Future[Any]:
        """See `Finished`."""
        ended: torch.futures.Future[Any] = torch.futures.Future()

        # What `set_exception` stores is a value to torch's own code, as that of DDP, and no error.
        def outcome(_: torch.futures.Future[Any]) -> Any:
            if (error := self._handle.error()) is not None:
                raise error
            return self.tensors

        future: torch.futures.Future[Any] = ended.then(outcome)
        self._handle.then(lambda: ended.set_result(None))
        return future


class Receiving(Pending):
    """A receive under way, whose handle gives the rank that the message came from."""

    def source_rank(self) -> int:
        """See `Finished`."""
        return int(self._handle.wait(self._timeout))
