"""What goes over a connection: frames, and the handshake that comes before all else.

A frame is its length in four bytes, then that many bytes. A handshake is three frames, after which
both ends know that the other has the job's secret and means the same connection:

1. acceptor: magic, version, a tag of the key, a random number;
2. connector: magic, version, a random number, who it is, whom and what it wants, and an HMAC;
3. acceptor: an HMAC.

The acceptor speaks first, so that nothing is ever sent to a service that is not Roundelay. With the
version each says whether it encrypts; where both do, all frames after the handshake are sealed.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
from dataclasses import dataclass
from typing import Final

from ..errors import RoundelayError
from .loop import READ, WRITE, ready
from .sealed import Seal, encrypts

MAGIC: Final = b"rounde\r\n"
VERSION: Final = 1
SEALED: Final = 0x8000
"""Added to the version by who encrypts."""
STRANGER_LIMIT: Final = 4096
"""Bytes of a frame before the other end has shown that it belongs to the job."""
MEMBER_LIMIT: Final = 64 * 2**20
"""Bytes of a frame after that."""

_LENGTH: Final = struct.Struct(">I")
_GREETING: Final = struct.Struct(">8sH8s32s")
_HELLO: Final = struct.Struct(">8sH32sIIII")
_MAC: Final = 32
_PART: Final = 2**18


class DroppedError(Exception):
    """A connection that is of no use, and why; it never reaches a caller of the library."""


class ClosedError(DroppedError):
    """The other end closed the connection, or it broke."""


class OtherJobError(DroppedError):
    """At the other end is Roundelay, with another key or in another version."""


@dataclass(frozen=True)
class Hello:
    """What a connection is for: from which rank, to which, purpose, which one of how many.

    `sealed`: whether the rank that calls encrypts.
    """

    source: int
    target: int
    purpose: str
    index: int = 0
    count: int = 1
    sealed: bool = False


class Channel:
    """A connection that carries frames and never blocks."""

    def __init__(self, sock: socket.socket, limit: int = STRANGER_LIMIT) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.limit = limit
        self.seal: Seal | None = None
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def post(self, frame: bytes) -> None:
        """Sends a frame as far as it goes now; the rest goes with what is sent later.

        Raises:
            ClosedError: the connection is broken.
        """
        if self.seal:
            frame = self.seal.close(frame)
        self._outgoing += _LENGTH.pack(len(frame)) + frame
        self._flush()

    async def send(self, frame: bytes) -> None:
        """Sends a frame, and waits until all of it is on its way.

        Raises:
            ClosedError: the connection is broken.
        """
        self.post(frame)
        while self._outgoing:
            await ready(self.sock, WRITE)
            self._flush()

    async def receive(self) -> bytes:
        """The next frame; not a byte after it is taken from the socket.

        Raises:
            ClosedError: the connection is closed or broken.
            DroppedError: the frame is longer than the limit, or does not open.
        """
        while lacking := self._lacking():
            try:
                part = self.sock.recv(min(lacking, _PART))
            except BlockingIOError:
                await ready(self.sock, READ | WRITE if self._outgoing else READ)
                self._flush()
                continue
            except OSError as error:
                raise ClosedError(_reason(error)) from error
            if not part:
                raise ClosedError("closed by the other end")
            self._incoming += part
        frame = bytes(self._incoming[_LENGTH.size :])
        self._incoming.clear()
        return frame if self.seal is None else _opened(self.seal, frame)

    def _lacking(self) -> int:
        if len(self._incoming) < _LENGTH.size:
            return _LENGTH.size - len(self._incoming)
        (length,) = _LENGTH.unpack_from(self._incoming)
        if length > self.limit:
            start = bytes(self._incoming)
            raise DroppedError(f"not a frame of at most {self.limit} bytes; begins with {start!r}")
        return int(_LENGTH.size + length - len(self._incoming))

    def _flush(self) -> None:
        try:
            while self._outgoing:
                sent = self.sock.send(bytes(self._outgoing[:_PART]), socket.MSG_NOSIGNAL)
                del self._outgoing[:sent]
        except BlockingIOError:
            return
        except OSError as error:
            raise ClosedError(_reason(error)) from error


def _opened(seal: Seal, sealed: bytes) -> bytes:
    frame = seal.open(sealed)
    if frame is None:
        raise DroppedError("what it sent was changed on the way, or came twice")
    return frame


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def derive(key: bytes, purpose: bytes) -> bytes:
    """A key, 32 bytes, for one purpose, made from another key."""
    return hmac.digest(key, b"derive:" + purpose, "sha256")


def _tag(key: bytes) -> bytes:
    return derive(key, b"tag")[:8]


def _seal(key: bytes, talk: bytes, connector: bool) -> Seal:
    """The keys of a connection: from what both know, and both random numbers."""
    own, other = (derive(key, b"frames:" + role + b":" + talk) for role in (b"connect", b"accept"))
    return Seal(own, other) if connector else Seal(other, own)


def _version() -> int:
    return VERSION | (SEALED if encrypts() else 0)


def _sign(key: bytes, role: bytes, talk: bytes) -> bytes:
    return hmac.digest(key, role + b":" + talk, "sha256")


async def accept_handshake(channel: Channel, key: bytes) -> Hello:
    """The acceptor's side of a handshake: what the other end wants.

    Frames are sealed from then on where both ends encrypt.

    Raises:
        DroppedError: the other end is a stranger.
    """
    greeting = _GREETING.pack(MAGIC, _version(), _tag(key), secrets.token_bytes(32))
    await channel.send(greeting)
    frame = await channel.receive()
    said, mac = frame[:-_MAC], frame[-_MAC:]
    if len(said) < _HELLO.size:
        raise DroppedError(f"not a hello of Roundelay; begins with {frame[:16]!r}")
    magic, version, _, source, target, index, count = _HELLO.unpack_from(said)
    if magic != MAGIC:
        raise DroppedError(f"not a hello of Roundelay; begins with {frame[:16]!r}")
    sealed, version = version & SEALED, version & ~SEALED
    if version != VERSION:
        raise OtherJobError(f"it speaks version {version} of the protocol; expected {VERSION}")
    if not hmac.compare_digest(mac, _sign(key, b"connector", greeting + said)):
        raise DroppedError("it has another secret")
    await channel.send(_sign(key, b"acceptor", greeting + frame))
    try:
        purpose = said[_HELLO.size :].decode()
    except UnicodeDecodeError as error:
        raise DroppedError("its purpose is not text") from error
    if sealed and encrypts():
        channel.seal = _seal(key, greeting + frame, connector=False)
    return Hello(source, target, purpose, index, count, bool(sealed))


async def connect_handshake(channel: Channel, key: bytes, hello: Hello) -> None:
    """The connector's side of a handshake.

    Raises:
        OtherJobError: another job answers, or another version.
        DroppedError: a stranger answers.
        RoundelayError: one of the two encrypts, and the other does not.
    """
    greeting = await channel.receive()
    if len(greeting) != _GREETING.size or greeting[: len(MAGIC)] != MAGIC:
        raise DroppedError("another program answers")
    _, version, tag, _ = _GREETING.unpack(greeting)
    sealed, version = version & SEALED, version & ~SEALED
    if version != VERSION:
        raise OtherJobError(f"version {version} of the protocol answers; expected {VERSION}")
    if tag != _tag(key):
        raise OtherJobError("another job answers")
    nonce = secrets.token_bytes(32)
    numbers = (hello.source, hello.target, hello.index, hello.count)
    said = _HELLO.pack(MAGIC, _version(), nonce, *numbers) + hello.purpose.encode()
    frame = said + _sign(key, b"connector", greeting + said)
    await channel.send(frame)
    answer = await channel.receive()
    if not hmac.compare_digest(answer, _sign(key, b"acceptor", greeting + frame)):
        raise DroppedError("it has another secret")
    if bool(sealed) != encrypts():
        raise RoundelayError(encrypts_differ(hello.source, hello.target, bool(sealed)))
    if sealed:
        channel.seal = _seal(key, greeting + frame, connector=True)


def encrypts_differ(rank: int, other: int, others: bool) -> str:
    """What is wrong where this rank and another do not agree on encryption."""
    return (
        f"ROUNDELAY_ENCRYPT is {int(not others)} for rank {rank} and {int(others)} for rank "
        f"{other}; expected the same for all ranks. Set it for all of them, or for none"
    )
