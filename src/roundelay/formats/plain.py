"""Bytes of a file as they were before somebody packed them, within bounds."""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Final

from ..errors import RoundelayError

LIMIT: Final = 2**30
"""Bytes to which a packed file may grow."""
_ESCAPES: Final = (
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,999}(?:\x07|\x1b\\)|\(B|[@-Z\\-_])"
)
ESCAPES: Final = re.compile(_ESCAPES)
"""What colours a terminal and moves its cursor."""
RAW_ESCAPES: Final = re.compile(_ESCAPES.encode())
"""The same, in bytes."""
_GZIP: Final = b"\x1f\x8b"
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def unpacked(data: bytes, limit: int = LIMIT) -> bytes:
    """The bytes; those of a gzip file are unpacked.

    Raises:
        RoundelayError: the file is damaged, or grows beyond the limit.
    """
    parts: list[bytes] = []
    left = limit
    while data.startswith(_GZIP):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            part = unpacker.decompress(data, left + 1)
        except zlib.error as error:
            raise RoundelayError(f"no sound gzip file: {error}; try to pack it again") from None
        left -= len(part)
        if left < 0:
            raise RoundelayError(
                f"a gzip file that grows beyond {limit:,} bytes; unpack it and pass the part that "
                "matters"
            )
        parts.append(part)
        data = unpacker.unused_data
    return b"".join(parts) if parts else data


def text_of(data: bytes, limit: int = LIMIT) -> str:
    """The text: UTF-8, or what the mark at its start says; what is no text becomes U+FFFD."""
    data = unpacked(data, limit)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")
