"""A barrier through the store, which says who has not come and leaves the group as it was."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, Final

from ..errors import TooLate

PAUSE: Final = 0.002
"""Seconds between two looks into the store."""
GRACE: Final = 5.0
"""Seconds beyond its timeout that a rank waits for rank 0 to say what it has found."""
_PASSED: Final = b"passed"
_FAILED: Final = b"failed"


class Monitor:
    """The monitored barriers of a group, one after another.

    Rank 0 looks who comes and says so to the others. The words of its errors are those of torch's
    Gloo backend, which programs look for.
    """

    def __init__(self, store: Any, rank: int, ranks: int) -> None:
        """Among `ranks` ranks, this one being `rank`, through a store of theirs alone."""
        self._store, self._rank, self._ranks, self._turn = store, rank, ranks, 0

    def meet(self, timeout: timedelta, wait_all_ranks: bool) -> None:
        """Returns when all ranks have come.

        Args:
            timeout: for all of them.
            wait_all_ranks: on rank 0, look for all that are missing, not for the first alone.

        Raises:
            TooLate: a rank has not come in time; rank 0 says which.
        """
        self._turn += 1
        seconds = timeout.total_seconds()
        deadline = time.monotonic() + seconds
        if self._rank:
            self._store.set(self._key(self._rank), b"")
            self._hear(deadline + GRACE)
            return
        try:
            self._look(deadline, seconds, wait_all_ranks)
        except BaseException:
            self._store.set(self._key(0), _FAILED)
            raise
        self._store.set(self._key(0), _PASSED)

    def _look(self, deadline: float, seconds: float, wait_all_ranks: bool) -> None:
        """Wait for the others, in order."""
        late = []
        if seconds <= 0:
            raise TooLate("Rank 0 timed out in monitoredBarrier after 0 ms", 0)
        for rank in range(1, self._ranks):
            if self._comes(self._key(rank), deadline):
                continue
            late.append(rank)
            if not wait_all_ranks:
                break
        if late:
            raise TooLate(
                f"Rank{'s' if len(late) > 1 else ''} {', '.join(map(str, late))} failed to pass "
                f"monitoredBarrier in {seconds * 1e3:g} ms",
                late[0],
            )

    def _hear(self, deadline: float) -> None:
        """Wait for what rank 0 has found."""
        key = self._key(0)
        found = bytes(self._store.get(key)) if self._comes(key, deadline) else _FAILED
        if found != _PASSED:
            raise TooLate(
                f"Rank {self._rank} successfully reached monitoredBarrier, but received errors "
                "while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank",
                0,
            )

    def _comes(self, key: str, deadline: float) -> bool:
        while not self._store.check([key]):
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE)
        return True

    def _key(self, rank: int) -> str:
        return f"monitored {self._turn} {rank}"
