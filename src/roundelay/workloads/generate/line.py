"""The line between the front and rank 0 of an instance, at the end of rank 0.

It is a Unix socket with a name that stands in no folder, so nothing is left of it.
"""

from __future__ import annotations

import select
import socket
from typing import Final

import msgspec

from .messages import Down, Up

TOO_LONG: Final = 30.0
"""Seconds that the front may take nothing before the instance gives it up."""


class Line:
    """Messages down and up.

    Attributes:
        open: whether the front is still there.
    """

    def __init__(self, name: str) -> None:
        """Call the front that listens under a name."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TOO_LONG)
        self._socket.connect("\0" + name)
        self._read = msgspec.json.Decoder(Down)
        self._write = msgspec.json.Encoder()
        self._rest = b""
        self.open = True

    def send(self, messages: list[Up]) -> None:
        """Say something; nothing where nobody is there any more."""
        try:
            self._socket.sendall(b"".join(self._write.encode(m) + b"\n" for m in messages))
        except OSError:
            self.open = False

    def receive(self, seconds: float) -> list[Down]:
        """What has come, waiting at most so long for something."""
        found: list[Down] = []
        while self.open and select.select([self._socket], [], [], seconds)[0]:
            seconds = 0.0
            try:
                data = self._socket.recv(1 << 16)
            except OSError:
                data = b""
            self.open = bool(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            found += map(self._read.decode, lines)
        return found

    def close(self) -> None:
        """Say no more."""
        self._socket.close()
