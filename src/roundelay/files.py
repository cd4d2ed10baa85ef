"""Reading a file that somebody has named."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .errors import RoundelayError

LIMIT: Final = 2**29
"""Bytes of a file, where nothing is said."""


def read_file(path: Path, most: int = LIMIT) -> bytes:
    """The bytes of a regular file, which end.

    Args:
        path: of the file.
        most: bytes that it may have.

    Raises:
        RoundelayError: it is a device, a pipe or a folder, or too large.
        OSError: it cannot be read.
    """
    size = path.stat().st_size
    if not path.is_file():
        raise RoundelayError(f"{path} is no regular file; save it as one first")
    if size > most:
        raise RoundelayError(f"{path} has {size:,} bytes; expected at most {most:,}")
    return path.read_bytes()
