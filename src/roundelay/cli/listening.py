"""Where servers listen."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from errno import EACCES, EADDRINUSE
from typing import Any, Final, TypeVar

import click

from ..errors import RoundelayError
from .targets import Checked

F = TypeVar("F", bound=Callable[..., Any])
EVERY = ("0.0.0.0", "::")
"""Hosts that mean every address of this machine."""
_TRY: Final = {
    EADDRINUSE: "try another --port, or --port 0 for any that is free",
    EACCES: "try a --port of 1024 or more, or --port 0 for any that is free",
}


def _host(text: str) -> str:
    bare = text.removeprefix("[").removesuffix("]") if ":" in text else text
    if not bare.strip():
        raise RoundelayError(f"host {text!r}; expected an address or a name, such as 127.0.0.1, or "
                             "0.0.0.0 for every address of this machine")  # fmt: skip
    return bare


def listening_options(port: int) -> Callable[[F], F]:
    """The options --host and --port.

    Args:
        port: where nothing is said.
    """

    def add(function: F) -> F:
        text = f"on which port (default {port}; 0: any that is free)"
        function = click.option("--port", type=click.IntRange(0, 65535), default=port,
                                help=text)(function)  # fmt: skip
        text = "where to listen (default 127.0.0.1: this machine only)"
        return click.option("--host", type=Checked("HOST", _host), default="127.0.0.1",
                            help=text)(function)  # fmt: skip

    return add


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that listens, and its address as a URL has it.

    Raises:
        RoundelayError: it is not free, or not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        number = error.errno or 0
        tried = _TRY.get(number, "expected a --host of this machine, such as 127.0.0.1")
        why = os.strerror(number) if number > 0 else error.strerror
        raise RoundelayError(f"cannot listen at {host}, port {port}: {why}; {tried}") from None
    shown = "127.0.0.1" if host in EVERY else f"[{host}]" if ":" in host else host
    return listener, f"http://{shown}:{listener.getsockname()[1]}"
