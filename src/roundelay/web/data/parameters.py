"""Parameters of the page, read from text; what is wrong is said in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ...collectives import UnknownName
from ...errors import RoundelayError
from ...units import format_size, parse_params, parse_size

Reader = Callable[[str], Any]

TEXT_LIMIT: Final = 200
"""Characters of a parameter."""
SIZE_LIMIT: Final = 2**50
"""Bytes of a collective."""
_WHOLE: Final = re.compile(r"\d{1,15}", re.A)


def read(name: str, readers: Mapping[str, Reader], given: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a view's data, read from text.

    Raises:
        UnknownName: no such parameter.
        RoundelayError: one that is none, or too long.
    """
    found = {}
    for key, text in given.items():
        if key not in readers:
            raise UnknownName(f"parameter of {name}", key, readers)
        if len(text) > TEXT_LIMIT:
            raise RoundelayError(
                f"{key} has {len(text):,} characters; expected at most {TEXT_LIMIT}"
            )
        found[key] = readers[key](text)
    return found


def whole(name: str, low: int, high: int) -> Reader:
    """A reader of whole numbers from `low` to `high`."""

    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise RoundelayError(
                f"{name} = {text!r:.40}; expected a whole number, {low:,} to {high:,}"
            )
        return int(text)

    return read


def of_schedule(most: int) -> dict[str, Reader]:
    """The parameters that say which schedule, over at most so many ranks, and of how many bytes."""
    return {
        "collective": str,
        "algorithm": str,
        "n": whole("n", 2, most),
        "params": parse_params,
        "root": whole("root", 0, most - 1),
        "size": size,
    }


def size(text: str) -> int:
    """Bytes, such as 64M."""
    found = parse_size(text)
    if found > SIZE_LIMIT:
        raise RoundelayError(f"{text}; expected at most {format_size(SIZE_LIMIT)}")
    return found
