"""The table of a job's ranks, how it goes over the wire, and words for messages."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final

from ..errors import RoundelayError
from .door import listen
from .environment import Job
from .interfaces import is_loopback
from .wire import Channel, DroppedError

PORTS: Final = 16
"""How many ports after the job's rank 0 may listen on."""
GRACE: Final = 2.0
"""Seconds that the others wait beyond their time, for rank 0 to say who is missing."""
JOIN: Final = "roundelay:join"
"""The purpose of connections to rank 0."""

_TABLE: Final = b"T"
_FAILED: Final = b"F"
_UNREADABLE: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Member:
    """One rank: its node (see `node_identity`), process id, and where it listens."""

    rank: int
    node: str
    pid: int
    host: str
    port: int


@dataclass
class Star:
    """What start-up leaves: the table, a listening socket, and links of rank 0 with the others.

    At rank 0 `links` holds all other ranks, elsewhere rank 0 alone. A job of one rank has neither
    links nor a socket.
    """

    members: tuple[Member, ...]
    nonce: bytes
    door: socket.socket | None
    links: dict[int, Channel] = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """What a rank says of itself: how many ranks it counts, and the seconds it will wait."""

    member: Member
    ranks: int
    wait: float


def encode_arrival(arrival: Arrival) -> bytes:
    """An arrival as bytes."""
    return json.dumps(asdict(arrival)).encode()


def decode_arrival(frame: bytes) -> Arrival:
    """An arrival from bytes.

    Raises:
        DroppedError: it is none.
    """
    try:
        value = json.loads(frame)
        member = _member(value["member"])
        wait = float(value["wait"])
        if not wait >= 0:
            raise ValueError(f"it waits {wait} s")
        return Arrival(member, int(value["ranks"]), wait)
    except _UNREADABLE as error:
        raise DroppedError(f"what it says of itself cannot be read: {error}") from error


def encode_table(star: Star) -> bytes:
    """What rank 0 sends everyone when all have come."""
    value = {"nonce": star.nonce.hex(), "members": [asdict(m) for m in star.members]}
    return _TABLE + json.dumps(value).encode()


def encode_failure(reason: str) -> bytes:
    """What rank 0 sends everyone who is there when it gives up."""
    return _FAILED + reason.encode()


def decode_table(frame: bytes, ranks: int) -> tuple[bytes, tuple[Member, ...]]:
    """The nonce and the members that rank 0 sent.

    Raises:
        RoundelayError: rank 0 gave up; the message is its.
        DroppedError: it sent something else.
    """
    if frame[:1] == _FAILED:
        raise RoundelayError(frame[1:].decode("utf-8", "replace"))
    try:
        value = json.loads(frame[1:])
        members = tuple(_member(m) for m in value["members"])
        nonce = bytes.fromhex(value["nonce"])
    except _UNREADABLE as error:
        raise DroppedError(f"its table cannot be read: {error}") from error
    if frame[:1] != _TABLE or [m.rank for m in members] != list(range(ranks)):
        raise DroppedError("it sent no table of all ranks")
    return nonce, members


def _member(value: dict[str, object]) -> Member:
    numbers = [value[name] for name in ("rank", "pid", "port")]
    texts = [value[name] for name in ("node", "host")]
    rank, pid, port = (int(n) for n in numbers if isinstance(n, int))
    node, host = (t for t in texts if isinstance(t, str))
    if not 0 <= port <= 65535:
        raise ValueError(f"port {port}")
    return Member(rank, node, pid, host, port)


def ranks_text(ranks: Iterable[int]) -> str:
    """``rank 2``, ``ranks 2, 5``, or the first ten and how many more."""
    listed = sorted(ranks)
    names = ", ".join(map(str, listed[:10]))
    more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
    return f"rank{'s' if len(listed) > 1 else ''} {names}{more}"


def address_text(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def candidates(job: Job) -> list[int]:
    """The ports that rank 0 may listen on, in order.

    A port that is another's is not among them, even when it is free: its owner may come later.
    """
    first = job.port if job.own_port else job.port + 1
    return [port for port in range(first, job.port + PORTS + 1) if port <= 65535]


def open_door(job: Job, address: str, asked: bool) -> socket.socket:
    """The socket that listens for other ranks' data: at one address, if others know that.

    Raises:
        RoundelayError: it is not an address of this machine.
    """
    host = address
    if not asked and is_loopback(address) and not is_loopback(job.host):
        host = "::" if ":" in address else "0.0.0.0"  # a name that means 127.0.1.1 only here
    try:
        return listen(host)
    except OSError as error:
        raise RoundelayError(
            f"cannot listen on {host}: {error.strerror}; expected an address of this machine. "
            "Set ROUNDELAY_INTERFACE to one, or to the name of an interface"
        ) from error
