"""The table of a job's ranks, how it goes over the wire, and words for messages."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .door import listen
from .environment import Job
from .interfaces import is_loopback
from .loop import Loop
from .wire import Channel, ClosedError, DroppedError

PORTS: Final = 16
"""How many ports after the job's rank 0 may listen on."""
GRACE: Final = 2.0
"""Seconds that the others wait beyond their time, for rank 0 to say who is missing."""
SENDING: Final = 10.0
"""Seconds that a table may take to be sent."""
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

    @property
    def identity(self) -> tuple[str, int, int]:
        """What stays when ranks are counted anew."""
        return self.node, self.pid, self.port


class Table(NamedTuple):
    """What rank 0 tells all when they have come.

    Attributes:
        nonce: 16 random bytes.
        members: all ranks.
        generation: how often the ranks have been counted anew.
        name: what the job is called.
    """

    nonce: bytes
    members: tuple[Member, ...]
    generation: int = 0
    name: str = ""


@dataclass
class Star:
    """What start-up leaves: the table, a listening socket, and links of rank 0 with the others.

    At rank 0 `links` holds all other ranks, elsewhere rank 0 alone. A job of one rank has neither
    links nor a socket.
    """

    table: Table
    door: socket.socket | None
    links: dict[int, Channel] = field(default_factory=dict)


@dataclass(frozen=True)
class Arrival:
    """What a rank says of itself: how many ranks it counts, and the seconds it will wait."""

    member: Member
    ranks: int
    wait: float
    generation: int = 0


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
        return Arrival(member, int(value["ranks"]), wait, int(value["generation"]))
    except _UNREADABLE as error:
        raise DroppedError(f"what it says of itself cannot be read: {error}") from error


def encode_table(table: Table) -> bytes:
    """What rank 0 sends everyone when all have come."""
    value = table._asdict() | {
        "nonce": table.nonce.hex(),
        "members": [asdict(m) for m in table.members],
    }
    return _TABLE + json.dumps(value).encode()


def encode_failure(reason: str) -> bytes:
    """What rank 0 sends everyone who is there when it gives up."""
    return _FAILED + reason.encode()


def decode_table(frame: bytes, ranks: int | None = None) -> Table:
    """The table that rank 0 sent, of so many ranks if that is known.

    Raises:
        RoundelayError: rank 0 gave up; the message is its.
        DroppedError: it sent something else.
    """
    if frame[:1] == _FAILED:
        raise RoundelayError(frame[1:].decode("utf-8", "replace"))
    try:
        value = json.loads(frame[1:])
        members = tuple(_member(m) for m in value["members"])
        table = Table(
            bytes.fromhex(value["nonce"]), members, int(value["generation"]), str(value["name"])
        )
    except _UNREADABLE as error:
        raise DroppedError(f"its table cannot be read: {error}") from error
    expected = list(range(len(members) if ranks is None else ranks))
    if frame[:1] != _TABLE or [m.rank for m in members] != expected:
        raise DroppedError("it sent no table of all ranks")
    return table


def _member(value: dict[str, object]) -> Member:
    numbers = [value[name] for name in ("rank", "pid", "port")]
    texts = [value[name] for name in ("node", "host")]
    rank, pid, port = (int(n) for n in numbers if isinstance(n, int))
    node, host = (t for t in texts if isinstance(t, str))
    if not 0 <= port <= 65535:
        raise ValueError(f"port {port}")
    return Member(rank, node, pid, host, port)


def seen_from(outside: str | None, member: Member) -> Member:
    """Who came over loopback is on this machine, which others know by another address."""
    if outside is None or not is_loopback(member.host):
        return member
    return replace(member, host=outside)


def send_all(loop: Loop, frame: bytes, channels: Iterable[Channel]) -> None:
    """Sends all of them a frame; who has gone in the meantime is found out later."""

    async def send(channel: Channel) -> None:
        with suppress(ClosedError):
            await channel.send(frame)

    tasks = [loop.start(send(channel)) for channel in channels]
    loop.run(lambda: all(task.ended for task in tasks), time.monotonic() + SENDING)
    for task in tasks:
        loop.stop(task)


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
    # A name may mean 127.0.1.1 on its own machine only.
    return open_listener(address, asked or not is_loopback(address) or is_loopback(job.host))


def open_listener(address: str, here: bool) -> socket.socket:
    """A listening socket at an address, or at all where others know this machine by another.

    Raises:
        RoundelayError: it is not an address of this machine.
    """
    host = address if here else "::" if ":" in address else "0.0.0.0"
    try:
        return listen(host)
    except OSError as error:
        raise RoundelayError(
            f"cannot listen on {host}: {error.strerror}; expected an address of this machine. "
            "Set ROUNDELAY_INTERFACE to one, or to the name of an interface"
        ) from error
