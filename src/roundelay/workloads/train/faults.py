"""What goes wrong on purpose: a rank that is slow, and one that is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from .settings import Kill, Settings


class Pace:
    """How slow this rank computes: after each piece it sleeps for what it has taken too little."""

    def __init__(self, settings: Settings, rank: int) -> None:
        self.times = next((s.times for s in settings.slow if s.rank == rank), 1.0)
        self._last = time.monotonic()

    def begin(self) -> None:
        """It computes from now on."""
        self._last = time.monotonic()

    def catch_up(self) -> None:
        """It has computed."""
        if self.times > 1:
            time.sleep((time.monotonic() - self._last) * (self.times - 1))
            self._last = time.monotonic()


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
