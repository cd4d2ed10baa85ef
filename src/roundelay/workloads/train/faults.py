"""What goes wrong on purpose: a rank that is slow, and one that is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Final

from .settings import Kill, Settings

LEAST: Final = 5e-4
"""Seconds that a slow rank sleeps at least."""


class Pace:
    """How slow this rank computes: after each piece it sleeps for what it has taken too little.

    What it computes counts by the processor's time: what other processes take from it is not
    slowed as well. Short sleeps last longer than they were asked to, so little is owed until it
    is more.

    Attributes:
        computed: seconds of the processor's time so far.
    """

    def __init__(self, settings: Settings, rank: int) -> None:
        self._more = next((s.times for s in settings.slow if s.rank == rank), 1.0) - 1
        self._owed = self.computed = 0.0
        self._last = time.thread_time()

    def begin(self) -> None:
        """It computes from now on; what was before was waiting."""
        self._last = time.thread_time()

    def catch_up(self) -> None:
        """It has computed."""
        now = time.thread_time()
        self.computed += now - self._last
        self._owed += (now - self._last) * self._more
        self._last = now
        if self._owed > LEAST:
            begun = time.monotonic()
            time.sleep(self._owed)
            self._owed -= time.monotonic() - begun


class Deaths:
    """Kills this rank where it was asked for."""

    def __init__(self, settings: Settings, rank: int, last_words: Callable[[Kill], None]) -> None:
        self._kills = [k for k in settings.kill if k.rank == rank]
        self._last_words = last_words
        self.step = 0

    def at(self, phase: str) -> None:
        """This rank is in the middle of a phase."""
        for kill in self._kills:
            if (kill.step, kill.phase) == (self.step, phase):
                self._last_words(kill)
                os.kill(os.getpid(), signal.SIGKILL)
