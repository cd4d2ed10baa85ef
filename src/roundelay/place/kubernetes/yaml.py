"""YAML that people read: a comment above what was chosen. Written by hand, so nothing is needed."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

WIDTH: Final = 96
"""Columns of comments."""
_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_WORDS: Final = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
"""Read as something else than text by YAML 1.1."""
_HIDDEN: Final = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


class Why(NamedTuple):
    """A value, and the reason for it."""

    value: Any
    reason: str


class Manifest(NamedTuple):
    """Several documents, and what stands above them."""

    head: Sequence[str]
    values: Sequence[Mapping[str, Any]]


def plain(value: Any) -> Any:
    """The value without reasons."""
    if isinstance(value, Why):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def documents(head: Sequence[str], values: Sequence[Mapping[str, Any]]) -> str:
    """Several documents under a comment."""
    top = [line for text in head for line in _comment(text, "")]
    parts = ["\n".join(_mapping(value, "")) for value in values]
    return "\n".join([*top, "---", "\n---\n".join(parts)]) + "\n"


def _comment(text: str, indent: str) -> list[str]:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return textwrap.wrap(shown, WIDTH - len(indent), initial_indent=f"{indent}# ",
                         subsequent_indent=f"{indent}# ", break_on_hyphens=False)  # fmt: skip


def _mapping(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, one in value.items():
        if isinstance(one, Why):
            yield from _comment(one.reason, indent)
            one = one.value
        yield from _entry(f"{indent}{_scalar(key)}:", one, indent)


def _entry(start: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield start
        yield from _mapping(value, indent + "  ")
    elif isinstance(value, list) and value:
        yield start
        for item in value:
            yield from _item(item, indent)
    elif isinstance(value, str) and "\n" in value and _literal(value):
        yield f"{start} |-"
        yield from (f"{indent}  {line}" for line in value.split("\n"))
    else:
        yield f"{start} {_scalar(value)}"


def _item(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Why):
        yield from _comment(value.reason, indent)
        value = value.value
    if isinstance(value, Mapping) and value:
        lines = list(_mapping(value, indent + "  "))
        first = next(i for i, line in enumerate(lines) if not line.lstrip().startswith("#"))
        yield from lines[:first]
        yield f"{indent}- {lines[first].lstrip()}"
        yield from lines[first + 1 :]
    elif isinstance(value, list):
        yield f"{indent}- {_quoted(plain(value))}"
    else:
        yield from _entry(f"{indent}-", value, indent)


def _literal(text: str) -> bool:
    """Whether it may stand as it is, line by line."""
    lines = text.split("\n")
    return (all(line and line.isprintable() for line in lines) and not text.startswith(" ")
            and not _HIDDEN.search(text))  # fmt: skip


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return _quoted(value)


def _quoted(value: Any) -> str:
    """As in JSON, which is YAML too, but for what YAML wants escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
