"""Names of hosts, addresses and users replaced, the same one by the same word everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

_KINDS: Final = (
    ("address", re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")),
    ("address", re.compile(r"(?<![\w:])(?:[\da-fA-F]{1,4}:){3,7}[\da-fA-F]{1,4}(?![\w:])")),
    ("mac", re.compile(r"(?<![\w:])(?:[\da-fA-F]{2}:){5}[\da-fA-F]{2}(?![\w:])")),
    ("guid", re.compile(r"\b(?:0x)?[\da-fA-F]{16}\b")),
    ("user", re.compile(r"(?<=/home/)[\w.-]+|(?<=/Users/)[\w.-]+")),
)
_HOST: Final = re.compile(r"(?<![\w.-])([A-Za-z][\w-]*(?:\.[\w-]+)*):\d+:\d+ \[|"
                          r"\bon\s+([A-Za-z][\w.-]*)\s+device\b")  # fmt: skip
_MEANT: Final = frozenset(("127.0.0.1", "0.0.0.0"))
"""Addresses that say nothing of anybody."""


class Anonymous:
    """Replaces words, in any value that JSON knows."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._words: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        for host in sorted(hosts):
            self._word("host", host)

    def _word(self, kind: str, text: str) -> str:
        if text not in self._words:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._words[text] = f"{kind}-{self._counts[kind]}"
        return self._words[text]

    def text(self, text: str) -> str:
        """The text with its names replaced."""
        for found in _HOST.finditer(text):
            self._word("host", found[1] or found[2])
        for kind, pattern in _KINDS:
            text = pattern.sub(
                lambda m, k=kind: m[0] if m[0] in _MEANT else self._word(k, m[0]),  # type: ignore[misc]
                text,
            )
        hosts = [word for word, other in self._words.items() if other.startswith("host-")]
        if hosts:
            longest = sorted(map(re.escape, hosts), key=len, reverse=True)
            pattern = re.compile(rf"(?<![\w.-])(?:{'|'.join(longest)})(?![\w-])")
            text = pattern.sub(lambda m: self._words[m[0]], text)
        return text

    def value(self, value: Any) -> Any:
        """The value with all its texts' names replaced; keys stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner) for inner in value]
        return value
