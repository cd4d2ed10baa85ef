"""A timeline as a small file: columns in as few bytes as their numbers need, compressed.

A trace file for Perfetto takes some 500 bytes an event, this takes about ten. The file is a line
that names the format, and a zlib stream of a MessagePack map.
"""

from __future__ import annotations

import zlib
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np

from ..errors import RoundelayError
from ..timeline import COLUMNS, Act, Column, Timeline, What

_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Whole = Annotated[int, msgspec.Meta(ge=-(2**62), lt=2**62)]
_Width = Literal[1, 2, 4, 8]

HEAD: Final = b"roundelay/timeline 1\n"
LIMIT: Final = 2**31
"""Bytes that a file may have when it is unpacked."""
_LEVEL: Final = 1
_WIDTHS: Final[tuple[_Width, ...]] = (1, 2, 4, 8)
_AFTER: Final = ("ready", "end")


class _Column(msgspec.Struct):
    """Numbers: how many, the first, and the differences from one to the next, little-endian."""

    count: _Count
    first: _Whole
    width: _Width
    steps: bytes


class _File(msgspec.Struct, forbid_unknown_fields=True):
    columns: dict[str, _Column]
    calls: dict[int, str]
    names: list[str]
    nodes: list[_Count]
    acts: list[tuple[_Whole, list[_Whole], list[tuple[_Count, _Count]]]]
    lost: _Count


def write_timeline(timeline: Timeline) -> bytes:
    """The timeline as a file."""
    values = {name: getattr(timeline, name) for name in COLUMNS}
    for name in _AFTER:  # near to `begin`, so they need fewer bytes
        values[name] = values[name] - values["begin"]
    file = _File(
        {name: _packed(column) for name, column in values.items()}, dict(timeline.calls),
        list(timeline.names), list(timeline.nodes),
        [(a.step, list(a.peers), list(a.chunks)) for a in timeline.acts], timeline.lost,
    )  # fmt: skip
    return HEAD + zlib.compress(msgspec.msgpack.encode(file), _LEVEL)


def read_timeline(data: bytes) -> Timeline:
    """The timeline of a file that `write_timeline` has made.

    Raises:
        RoundelayError: it is no such file; the message says why.
    """
    if not data.startswith(HEAD):
        raise RoundelayError(f"no timeline file: it begins with {data[:20]!r}; expected {HEAD!r}")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(data[len(HEAD) :], LIMIT)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise RoundelayError(
                f"a timeline file that is cut off, or larger than {LIMIT:,} bytes unpacked"
            )
        file = msgspec.msgpack.decode(plain, type=_File)
        columns: dict[str, Any] = {name: _unpacked(file.columns[name]) for name in COLUMNS}
    except (zlib.error, msgspec.DecodeError, KeyError, ValueError) as error:
        raise RoundelayError(f"a damaged timeline file: {error}") from None
    for name in _AFTER:
        if len(columns[name]) == len(columns["begin"]):
            columns[name] = columns[name] + columns["begin"]
    acts = [Act(step, tuple(peers), tuple(chunks)) for step, peers, chunks in file.acts]
    timeline = Timeline(
        **columns, calls=file.calls, names=file.names, nodes=file.nodes, acts=acts, lost=file.lost
    )
    check_indices(timeline)
    return timeline


def _packed(column: Column) -> _Column:
    if not len(column):
        return _Column(0, 0, 1, b"")
    steps = np.diff(column)
    least, most = int(steps.min(initial=0)), int(steps.max(initial=0))
    width = next(w for w in _WIDTHS
                 if -(2 ** (8 * w - 1)) <= least and most < 2 ** (8 * w - 1))  # fmt: skip
    return _Column(len(column), int(column[0]), width, steps.astype(f"<i{width}").tobytes())


def _unpacked(packed: _Column) -> Column:
    steps = np.frombuffer(packed.steps, f"<i{packed.width}").astype(np.int64)
    return np.cumsum(np.concatenate([[packed.first], steps]))[: packed.count]


def check_indices(timeline: Timeline) -> None:
    """That indices are in range, so that whoever uses it needs no care.

    Raises:
        RoundelayError: one is not.
    """
    participants = len(timeline.names)
    for name, column, end in (
        ("rank", timeline.rank, participants), ("what", timeline.what, len(What)),
        ("act", timeline.act, len(timeline.acts)), ("peer", timeline.peer, participants),
    ):  # fmt: skip
        low = 0 if name in ("rank", "what") else -1
        if len(column) and not (low <= column.min() and column.max() < end):
            raise RoundelayError(
                f"a damaged timeline: {name} from {column.min()} to {column.max()}; "
                f"expected {low} to {end - 1}"
            )
