"""The wire format of protobuf, as far as execution traces need it: protobuf.dev, Encoding."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final

from ...errors import RoundelayError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
TYPES: Final = (
    ("double", "<d"), ("float", "<f"), ("int32", ""), ("int64", ""), ("uint32", ""),
    ("uint64", ""), ("sint32", "zigzag"), ("sint64", "zigzag"), ("fixed32", "<I"),
    ("fixed64", "<Q"), ("sfixed32", "<i"), ("sfixed64", "<q"), ("bool", ""), ("string", "text"),
    ("bytes", "raw"),
)  # fmt: skip
"""Of attributes: the value of type i stands in field 3 + 2i, a list of such values in the next."""
_MASK: Final = (1 << 64) - 1


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, and where it ends.

    Raises:
        RoundelayError: it does not end within 10 bytes.
    """
    value = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK, place + 1
        shift += 7
    raise RoundelayError(f"no number at byte {at}: the file is cut off, or is no protobuf")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: number, and what it holds.

    Raises:
        RoundelayError: it is no message.
    """
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = varint(data, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise RoundelayError(f"field {number} is of wire type {kind}; expected 0, 1, 2 or 5")
        if size > len(data) - at:
            raise RoundelayError(f"field {number} has {size:,} bytes, and {len(data) - at:,} are "
                                 "left: the file is cut off, or is no protobuf")  # fmt: skip
        yield number, data[at : at + size]
        at += size


def number_of(value: int | bytes, how: str, signed: bool) -> Any:
    """A value as its type says; `how` as in TYPES."""
    if isinstance(value, bytes):
        if how == "text":
            return value.decode("utf-8", "replace")
        if how == "raw":
            return value
        size = struct.calcsize(how) if how.startswith("<") else 0
        if not size or size != len(value):
            raise RoundelayError(f"a number of {len(value)} bytes, where none can be")
        return struct.unpack(how, value)[0]
    if how == "zigzag":
        return (value >> 1) ^ -(value & 1)
    if how:
        raise RoundelayError("a number where there can be none")
    return value - (1 << 64) if signed and value >> 63 else value


def numbers(value: bytes, how: str, signed: bool) -> Iterator[Any]:
    """A packed list."""
    at, size = 0, struct.calcsize(how) if how.startswith("<") else 0
    while at < len(value):
        if size:
            yield number_of(value[at : at + size], how, signed)
            at += size
        else:
            found, at = varint(value, at)
            yield number_of(found, how, signed)


def put_varint(value: int) -> bytes:
    """A number, 7 bits a byte; one below 0 as of 64 bits."""
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def put(number: int, value: int | bytes, kind: int | None = None) -> bytes:
    """A field."""
    if isinstance(value, int):
        return put_varint(number << 3 | VARINT) + put_varint(value)
    kind = BYTES if kind is None else kind
    size = put_varint(len(value)) if kind == BYTES else b""
    return put_varint(number << 3 | kind) + size + value


def put_value(how: str, value: Any) -> int | bytes:
    """As `number_of` reads it."""
    if how == "text":
        return str(value).encode()
    if how == "raw":
        return bytes(value)
    if how == "zigzag":
        return (int(value) << 1) ^ (int(value) >> 63)
    return struct.pack(how, value) if how else int(value)


def packed(how: str, values: Iterable[Any]) -> bytes:
    """As `numbers` reads it."""
    made = (put_value(how, value) for value in values)
    return b"".join(put_varint(m) if isinstance(m, int) else m for m in made)
