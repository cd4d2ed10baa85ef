"""Programs that `launch` starts by this file's path, with nothing but the standard library.

``child.py rank PARENT COMMAND...`` becomes the command, and is killed when the launcher dies.
``child.py guard`` reads process groups from its input, one a line, and ends them when the input
ends without the line `done`: then the launcher has died, and ranks may have processes of their own.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress

_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def end_groups(groups: Collection[int]) -> None:
    """Ends what is left in process groups whose leaders have ended.

    At first by waiting, since helpers of Python clean up after their parent; then by SIGTERM,
    then by SIGKILL.
    """
    left = set(groups)
    for number, seconds in ((0, 1.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 1.0)):
        end = time.monotonic() + seconds
        left = _send(left, number)
        while left and time.monotonic() < end:
            time.sleep(0.01)
            left = _send(left, 0)


def _send(groups: set[int], number: int) -> set[int]:
    """Sends a signal, or none if it is 0; the groups that were there."""
    there = set()
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
            there.add(group)
    return there


def _rank(parent: int, command: list[str]) -> None:
    import ctypes  # takes 10 ms, which the launcher need not spend

    libc = ctypes.CDLL(None)
    libc.prctl(_SET_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before it could be said that we die with it
        os._exit(128 + signal.SIGKILL)
    os.execv(command[0], command)


def _guard() -> None:
    groups = []
    for line in sys.stdin:
        if line == "done\n":
            return
        groups.append(int(line))
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGTERM)
    end_groups(groups)


if __name__ == "__main__":
    if sys.argv[1] == "guard":
        _guard()
    else:
        _rank(int(sys.argv[2]), sys.argv[3:])
