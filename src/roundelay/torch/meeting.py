"""How the ranks of a process group meet: by torch's store, which they all have."""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import torch.distributed as dist

from ..communicator import Communicator, init
from ..errors import PeerLost, RoundelayError, TooLate
from ..run.environment import Job, parse_address, secret_of
from ..run.interfaces import asked_address
from ..run.members import ranks_text

FIRST_PAUSE: Final = 0.0005
"""Seconds between the first looks into the store."""
LAST_PAUSE: Final = 0.02
"""Seconds between looks into the store after a while; each costs its server a few microseconds."""


class Board:
    """An all-gather of small bytes through a store, among ranks that all have it.

    It looks again and again instead of waiting in the store, whose connection other threads of
    this process need as well.
    """

    def __init__(
        self, store: Any, rank: int, ranks: int, timeout: float,
        stopped: Callable[[], bool] = lambda: False, names: Sequence[int] | None = None,
        gone: Callable[[], Sequence[int]] = tuple,
    ) -> None:  # fmt: skip
        """Among `ranks` ranks.

        Args:
            store: of these ranks alone, such as a PrefixStore.
            rank: this one.
            ranks: how many.
            timeout: seconds to wait for the others.
            stopped: asked again and again while it waits, whether to give up.
            names: of the ranks, for messages; without it, 0 and so on.
            gone: asked again and again, which of `names` have gone.
        """
        self._store, self._rank, self._ranks = store, rank, ranks
        self._names = names or range(ranks)
        self._timeout, self._stopped, self._gone, self._turn = timeout, stopped, gone, 0
        # A store may outlive a group, and a later group of the same name must not read old keys.
        self._round = store.add(f"rounds of {rank}", 1)

    def __call__(self, data: bytes) -> list[bytes]:
        """What every rank brings.

        Raises:
            TooLate: others have not come; it says which.
        """
        self._turn += 1
        keys = [f"{self._round}/{self._turn}/{r}" for r in range(self._ranks)]
        self._store.set(keys[self._rank], b"=" + data)
        self._wait(keys)
        found = [bytes(self._store.get(key))[1:] for key in keys]
        if self._turn > 1:  # all have read what was there before
            self._store.delete_key(f"{self._round}/{self._turn - 1}/{self._rank}")
        return found

    def one(self, make: Callable[[], bytes]) -> bytes:
        """What rank 0 makes."""
        return self(make() if self._rank == 0 else b"")[0]

    def _wait(self, keys: list[str]) -> None:
        deadline, pause = time.monotonic() + self._timeout, FIRST_PAUSE
        while not self._check(keys):
            if self._stopped():
                raise RoundelayError("the process group was destroyed while ranks were to meet")
            gone = self._gone()
            for name, key in zip(self._names, keys, strict=True):
                if name in gone and not self._check([key]):
                    raise PeerLost(
                        f"rank {name} has gone, and was to meet the others; expected all "
                        f"{self._ranks}. Its own output may say why", name
                    )  # fmt: skip
            if time.monotonic() > deadline:
                late = [r for r, key in zip(self._names, keys, strict=True)
                        if not self._check([key])]  # fmt: skip
                raise TooLate(
                    f"{ranks_text(late)} of the group {'have' if len(late) > 1 else 'has'} not "
                    f"come within {self._timeout:g} s; expected all {self._ranks} to make it. Do "
                    "all of them call new_group, or send and recv, in turn?",
                    late[0] if late else -1,
                )
            time.sleep(pause)
            pause = min(1.5 * pause, LAST_PAUSE)

    def _check(self, keys: list[str]) -> bool:
        try:
            return bool(self._store.check(keys))
        except RuntimeError as error:
            raise PeerLost(
                "torch's store has gone while ranks were to meet; the process that holds it, "
                f"mostly rank 0, has ended. Its own output may say why ({error})"
            ) from None


def world(store: Any, rank: int, ranks: int, timeout: float) -> Communicator:
    """The communicator of ranks that have nothing but a store."""
    board = Board(store, rank, ranks, timeout)
    told = json.loads(board.one(lambda: json.dumps(_place(store)).encode()))
    secret = secret_of(os.environ, "torch.distributed", told["secret"])
    job = Job(rank, ranks, None, told["host"], told["port"], secret, "torch.distributed")
    return init(timeout, job=job)


def _place(store: Any) -> dict[str, Any]:
    """Where rank 0, this one, is to be found, and a secret that only this job has."""
    secret = secrets.token_hex(16)
    if address := os.environ.get("ROUNDELAY_ADDRESS"):
        host, port = parse_address(address)
        return {"host": host, "port": port, "secret": secret}
    host = asked_address(os.environ) or _host(store)
    with socket.create_server(("", 0)) as free:
        return {"host": host, "port": free.getsockname()[1], "secret": secret}


def _host(store: Any) -> str:
    """This machine as the others know it: torch's store is at rank 0, or the launcher says."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    if isinstance(store, dist.TCPStore):
        return str(store.host)
    if host := os.environ.get("MASTER_ADDR"):
        return host
    with suppress(OSError):
        socket.getaddrinfo(socket.gethostname(), None)
        return socket.gethostname()
    return "127.0.0.1"
