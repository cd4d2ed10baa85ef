"""The text of tokens as they come: whole characters, up to where it shall stop."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class Stream:
    """Text of one request.

    Attributes:
        stopped: whether a stop sequence has come.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """Stop before the first of these, which are not empty."""
        self._stops = stops
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.stopped = False

    def push(self, data: bytes, last: bool = False) -> str:
        """What can be said now; what may be the beginning of a stop sequence is held back.

        Args:
            data: of the next token.
            last: nothing comes after it.
        """
        if self.stopped:
            return ""
        self._held += self._decoder.decode(data, last)
        found = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            self.stopped = True
            said, self._held = self._held[: min(found)], ""
            return said
        keep = 0 if last else max((_overlap(self._held, stop) for stop in self._stops), default=0)
        cut = len(self._held) - keep
        said, self._held = self._held[:cut], self._held[cut:]
        return said


def _overlap(text: str, stop: str) -> int:
    """Characters at the end of a text with which a stop sequence begins."""
    lengths = range(min(len(text), len(stop) - 1), 0, -1)
    return next((n for n in lengths if text.endswith(stop[:n])), 0)
