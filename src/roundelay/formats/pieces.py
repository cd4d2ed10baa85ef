"""Events and nodes that somebody has cut out of a trace: JSON objects one after another.

People paste one kernel of a profile, or a few nodes of an execution trace: with a comma behind it,
dots for what they have left out, and often without its end. Objects are found by their brackets;
of one that is cut off what is whole is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from ..i18n import message
from .note import Note

MOST: Final = 1 << 20
"""Bytes that are looked at: a piece is what fits into a message."""
DEEP: Final = 64
"""Brackets within one another."""
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+("?)|[{}\[\],]', re.DOTALL)
_DOTS: Final = re.compile(r"^[ \t]*(?://|#)?[ \t]*(?:\.{2,}|…)[^\n\"{}]{0,80}$", re.M)
"""With words of what is left out."""
_BARE: Final = re.compile(
    r"(?<=[:\[,])(\s*)(0x[0-9a-fA-F]{1,16}|nccl[A-Z]\w{1,30}|-?nan|-?inf)"
    r"(?=\s*[,}\]])"
)
"""Words without quotation marks, as NCCL's example of a profiler writes them."""
_TRAILING: Final = re.compile(r",(\s*[}\]])")
_CLOSE: Final = {"{": "}", "[": "]"}
_HOLD: Final = ("traceEvents", "nodes", "workload_graph")
"""Keys of the lists that a whole trace has its events or nodes in."""


def read_pieces(data: bytes) -> tuple[list[dict[str, Any]], list[Note]]:
    """The objects, those within a trace's list each by itself, and what was odd."""
    text = _DOTS.sub("", data[:MOST].decode("utf-8", "replace"))
    found, notes = list[dict[str, Any]](), list[Note]()
    for value, whole in _values(text):
        if not whole:
            notes.append(Note(0, message("the last object is cut off; what is whole of it counts")))
        found += _flat(value)
    return found, notes


def loose_json(text: str) -> Any:
    """The first value of a text, without what is cut off of it; None where there is none."""
    return next((value for value, _ in _values(text)), None)


def _flat(value: Any) -> Iterator[dict[str, Any]]:
    """Objects of a list, or of an object that holds such a list."""
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item
    elif isinstance(value, dict):
        lists = [value[key] for key in _HOLD if isinstance(value.get(key), list)]
        for one in lists:
            yield from _flat(one)
        if not lists:
            yield value


def _values(text: str) -> Iterator[tuple[Any, bool]]:
    """The values that brackets make, and whether each is whole."""
    stack, begin, quoted = "", 0, False
    safe: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text):
        mark, at = token[0], token.start()
        if mark[0] == '"':
            quoted = bool(stack) and not token[1]  # the text ends within it
        elif mark == ",":
            safe = (at, stack) if stack else safe
        elif mark in _CLOSE:
            begin = at if not stack else begin
            stack += mark
            if len(stack) > DEEP:
                return
        elif stack and _CLOSE[stack[-1]] == mark:
            stack = stack[:-1]
            safe = (at + 1, stack)
            if not stack:
                safe = None
                if (value := _decoded(text[begin : at + 1])) is not None:
                    yield value, True
        else:
            stack, safe = "", None
    if stack:
        tried = [(text.rstrip().rstrip("\\") + '"', stack)] if quoted else []
        tried += [(text[: safe[0]], safe[1])] if safe else []
        for part, open_ in tried:
            closed = part[begin:] + "".join(_CLOSE[mark] for mark in reversed(open_))
            if (value := _decoded(closed)) is not None:
                yield value, False
                return


def _decoded(text: str) -> Any:
    """The value; where it is none, without commas that nothing follows, and with words quoted."""
    bare = _BARE.sub(r'\1"\2"', text)
    for tried in (text, _TRAILING.sub(r"\1", text), _TRAILING.sub(r"\1", bare)):
        try:
            return json.loads(tried)
        except (ValueError, RecursionError):
            continue
    return None
