"""Names of hosts, addresses and users replaced, the same one by the same word everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import Any, Final

_KINDS: Final = (
    ("address", re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")),
    ("address", re.compile(r"(?<![\w:.])(?:[\da-fA-F]{0,4}:){2,7}[\da-fA-F]{0,4}(?![\w:])")),
    ("mac", re.compile(r"(?<![\w:])(?:[\da-fA-F]{2}:){5}[\da-fA-F]{2}(?![\w:])")),
    ("guid", re.compile(r"\b(?:0x)?[\da-fA-F]{16}\b")),
)  # fmt: skip
_USER: Final = re.compile(
    r"(?<=/home/)[\w.-]+|(?<=/[Uu]sers/)[\w.-]+|(?<=/scratch/)[\w.-]+|"
    r"\b(?:USER|LOGNAME|[Uu]ser(?:name)?)=([\w.-]+)|(?<![\w.-])[A-Za-z_][\w.-]*(?=@[A-Za-z][\w-]*)"
)
_HOST: Final = re.compile(
    r"(?<![\w.-])([A-Za-z][\w-]*(?:\.[\w-]+)*):\d+:\d+ \[|"
    r"\b(?:on|at) +(?:(?:node|host) +)?([A-Za-z][\w.-]*[\w-])(?= +device\b| exited|:\d|<\d)|"
    r"\b(?:[Hh]ost(?:name)?|[Nn]ode(?:name)?|HOSTNAME)(?:[=:] *| +)([A-Za-z][\w.-]*\d[\w.-]*)|"
    r"(?<=@)([A-Za-z][\w-]*(?:\.[\w-]+)*)|"
    r"(?<![\w.-])([A-Za-z][\w-]*(?:\.[\w-]+)*)(?=<\d+>)|"
    r"\[([A-Za-z][\w-]*(?:\.[\w-]+)*):\d+\](?=[: ])"
)
_MEANT: Final = frozenset(("127.0.0.1", "0.0.0.0", "::", "::1"))
"""Addresses that say nothing of anybody."""
_DIGITS: Final = re.compile(r"\d+")
_LIST: Final = r"\[[\d,-]+\]"
"""Numbers of hosts, as Slurm writes them."""


class Anonymous:
    """Replaces words, in any value that JSON knows."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._words: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._hosts: re.Pattern[str] | None = None
        for host in sorted(hosts):
            self._host(host)

    def _word(self, kind: str, text: str) -> str:
        if text not in self._words:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._words[text] = f"{kind}-{self._counts[kind]}"
        return self._words[text]

    def _host(self, name: str) -> None:
        if name and name not in self._words and name != "localhost":
            self._word("host", name)
            self._hosts = None

    def _like(self) -> re.Pattern[str]:
        """Names of hosts that are known, and such as differ from one in numbers alone."""
        if self._hosts is None:
            names = [word for word, other in self._words.items() if other.startswith("host-")]
            shapes = sorted({_shape(name) for name in names}, key=len, reverse=True)
            any_of = "|".join(shapes) or r"(?!)"
            self._hosts = re.compile(
                rf"(?<![\w.-])(?:{any_of})(?:(?:\.[A-Za-z][\w-]*){{2,}})?(?![\w-])"
            )
        return self._hosts

    def _kind(self, kind: str, text: str) -> str:
        plain = text in _MEANT or (kind == "address" and ":" in text and not _is_address(text))
        return text if plain or text in self._words.values() else self._word(kind, text)

    def text(self, text: str) -> str:
        """The text with its names replaced."""
        self._note(text)
        text = self._like().sub(lambda m: self._word("host", m[0]), text)
        users = [word for word, other in self._words.items() if other.startswith("user-")]
        if users:
            any_of = "|".join(map(re.escape, sorted(users, key=len, reverse=True)))
            text = re.sub(rf"(?<=[/=~])(?:{any_of})(?![\w.-])|(?<![\w.-])(?:{any_of})(?=@)",
                          lambda m: self._words[m[0]], text)  # fmt: skip
        for kind, pattern in _KINDS:
            text = pattern.sub(lambda m, k=kind: self._kind(k, m[0]), text)  # type: ignore[misc]
        return text

    def _note(self, text: str) -> None:
        """Hosts and users that the text shows to be such."""
        for found in _HOST.finditer(text):
            self._host(next(filter(None, found.groups())))
        for found in _USER.finditer(text):
            self._word("user", found[1] or found[0])

    def value(self, value: Any) -> Any:
        """The value with all its texts' names replaced; keys stay."""
        for text in _texts(value):  # a name may stand before the line that shows it to be one
            self._note(text)
        return self._replaced(value)

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self._replaced(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._replaced(inner) for inner in value]
        return value


def _shape(name: str) -> str:
    """A pattern of names that have other numbers; the last one may be a list."""
    parts = [re.escape(part) for part in _DIGITS.split(name)]
    if len(parts) == 1:
        return parts[0]
    return r"\d+".join(parts[:-1]) + rf"(?:\d+|{_LIST})" + parts[-1]


def _is_address(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
