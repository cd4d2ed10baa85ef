"""What NCCL Inspector writes: a line of JSON for each call that has ended.

Formats v4.0 to v4.3 (NCCL 2.28 to 2.31): plugins/profiler/inspector/README.md. In v4.3 a line
`dump_stats` gives the communicator for as many lines as it says; before, each line has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final, NamedTuple

import msgspec

from ..errors import RoundelayError
from ..i18n import message
from .kineto.words import collective
from .nccl_log import lines_of
from .note import Note
from .plain import unpacked

KEPT: Final = 2 * 10**6
"""Calls of a file."""
SET_OUT: Final = 5000
"""Lines of an object that was set out for reading."""
SHOWN: Final = 20
"""Lines that could not be read, which are listed one by one."""


class Inspected(NamedTuple):
    """A call as one rank has seen it.

    Attributes:
        comm: id of the communicator.
        rank, ranks, nodes: in it.
        host: name, or "".
        operation: such as "all_reduce", "send".
        number: of the call in the communicator.
        bytes: of its message.
        time_us: from its begin on this rank to its end.
        busbw, algbw: GB/s (1e9), as nccl-tests counts them.
        timed: how: "kernel_gpu", "kernel_cpu", "collective_cpu", or "".
        peer: of a message between two ranks, else -1.
        algorithm, protocol: or "".
        line: in the file.
    """

    comm: str
    rank: int
    ranks: int
    nodes: int
    host: str
    operation: str
    number: int
    bytes: int
    time_us: float
    busbw: float
    algbw: float
    timed: str
    peer: int
    algorithm: str
    protocol: str
    line: int


@dataclass
class Inspection:
    """A file: its calls, how many were overwritten before they could be written, what was odd."""

    calls: list[Inspected] = field(default_factory=list)
    dropped: int = 0
    notes: list[Note] = field(default_factory=list)


class _Line(msgspec.Struct):
    header: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    coll_perf: dict[str, Any] | None = None
    p2p_perf: dict[str, Any] | None = None
    dump_stats: dict[str, Any] | None = None
    id: str | int | None = None
    rank: int | None = None
    n_ranks: int | None = None
    nnodes: int | None = None
    hostname: str | None = None


_DECODE: Final = msgspec.json.Decoder(_Line).decode


def read_inspector(data: bytes) -> Inspection:
    """The calls of a file.

    Raises:
        RoundelayError: there are none.
    """
    found = read_inspector_lines(lines_of(BytesIO(unpacked(data))))
    if not found.calls:
        raise RoundelayError("no call of NCCL Inspector; expected lines of JSON with coll_perf")
    return found


def _objects(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers; of an object that was set out over several, all in one."""
    held, begun, indent = list[bytes](), 0, 0
    for number, raw in enumerate(lines, 1):
        bare = raw.strip()
        if not held and bare != b"{":
            yield number, raw
            continue
        if not held:
            begun, indent = number, raw.find(b"{")
        held.append(raw)
        ended = bare.rstrip(b",") == b"}" and raw.find(b"}") == indent
        if ended or len(held) >= SET_OUT:
            yield begun, b"".join(held)
            held = []
    if held:
        yield begun, b"".join(held)


def read_inspector_lines(lines: Iterable[bytes]) -> Inspection:
    """The calls in lines, which are not held; other lines are left out."""
    found, odd = Inspection(), 0
    about: dict[str, Any] = {}
    dropped: dict[tuple[Any, Any], int] = {}
    for number, raw in _objects(lines):
        start = raw.find(b"{")
        if start < 0:
            continue
        try:
            line = _DECODE(raw[start:].rstrip(b", \r\n\t"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            odd += 1
            if odd <= SHOWN:
                found.notes.append(Note(number, message("a line that cannot be read, left out: "
                                                        "{why}", why=str(error))))  # fmt: skip
            continue
        about = _about(line) or about
        if line.dump_stats:
            key = about.get("id"), about.get("rank")
            dropped[key] = max(dropped.get(key, 0), _count(line.dump_stats, "coll_dropped_total"))
        if len(found.calls) < KEPT and (call := _call(line, about, number)):
            found.calls.append(call)
    found.dropped = sum(dropped.values())
    if odd > SHOWN:
        what = message("{n:more line|more lines} that cannot be read", n=odd - SHOWN)
        found.notes.append(Note(0, what))
    return found


def _about(line: _Line) -> dict[str, Any]:
    """The communicator of a line, where it tells."""
    if line.header is not None:
        return {**(line.metadata or {}), **line.header}
    if line.rank is not None:
        return {"id": line.id, "rank": line.rank, "n_ranks": line.n_ranks, "nnodes": line.nnodes,
                "hostname": line.hostname}  # fmt: skip
    return {}


def _call(line: _Line, about: Mapping[str, Any], number: int) -> Inspected | None:
    kind, perf = ("coll", line.coll_perf) if line.coll_perf else ("p2p", line.p2p_perf)
    if not perf or not isinstance(perf.get(kind), str):
        return None
    return Inspected(
        str(about.get("id", ""))[:80], _count(about, "rank", -1), _count(about, "n_ranks"),
        _count(about, "nnodes"), str(about.get("hostname") or "")[:200],
        collective(perf[kind][:80]), _count(perf, f"{kind}_sn", -1),
        _count(perf, f"{kind}_msg_size_bytes"), _rate(perf, f"{kind}_exec_time_us"),
        _rate(perf, f"{kind}_busbw_gbs"), _rate(perf, f"{kind}_algobw_gbs"),
        str(perf.get(f"{kind}_timing_source", ""))[:40], _count(perf, "p2p_peer", -1),
        str(perf.get("coll_algo", ""))[:40], str(perf.get("coll_proto", ""))[:40], number,
    )  # fmt: skip


def _count(value: Mapping[str, Any], name: str, other: int = 0) -> int:
    found = value.get(name)
    whole = isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**62
    return found if whole else other  # type: ignore[return-value]


def _rate(value: Mapping[str, Any], name: str) -> float:
    found = value.get(name)
    sound = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 1e300
    return float(found) if sound else 0.0  # type: ignore[arg-type]
