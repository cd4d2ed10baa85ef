"""Values of files, each by the name of its file, beside those that come with the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from ..errors import RoundelayError

T = TypeVar("T")


def name_of(path: Path) -> str:
    """What the value of a file is called."""
    return path.resolve().stem


def with_files(
    start: Mapping[str, T], paths: Iterable[Path], read: Callable[[Path], T]
) -> Mapping[str, T]:
    """What there is at the start, and the values of files.

    Raises:
        RoundelayError: a file that cannot be read, or two of one name.
    """
    found = dict(start)
    for path in paths:
        name = name_of(path)
        if name in found:
            raise RoundelayError(
                f"{path}: there is one named {name!r} already; expected files of different names"
            )
        try:
            found[name] = read(path)
        except OSError as error:
            raise RoundelayError(f"{path}: {error.strerror}") from None
        except RoundelayError as error:
            raise RoundelayError(f"{path}: {error}") from None
    return MappingProxyType(found)
