"""Messages of a process group's rank: channels to and from the others, as they are needed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np
import torch

from ..communicator import Communicator
from ..errors import RoundelayError
from ..run.handles import Handle
from .channels import Channel
from .messages import Incoming, Outgoing, Receive
from .tensors import memory
from .work import Finished, Pending, Receiving


class Post:
    """All messages of a rank."""

    def __init__(self, comm: Communicator, store: Any, name: str, timeout: float) -> None:
        """Of a communicator.

        Args:
            comm: the group's.
            store: of the group alone.
            name: of the group.
            timeout: seconds that a wait may take.
        """
        self._comm, self._store, self._name, self._timeout = comm, store, name, timeout
        self._lock, self._pid = Lock(), os.getpid()
        self._outgoing: dict[int, Outgoing] = {}
        self._incoming: dict[int, Incoming] = {}

    def send(self, tensor: torch.Tensor, target: int, tag: int) -> Finished:
        """Send a tensor; ended when it may be changed again."""
        self._check(target)
        data = np.ascontiguousarray(memory(tensor)[0]).reshape(-1).view(np.uint8)
        if target == self._comm.rank:
            self._from(target).deliver(tag, data.copy())
            return Finished([tensor])
        if target not in self._outgoing:
            channel = self._channel(self._comm.rank, target)
            self._outgoing[target] = Outgoing(channel)
        line = self._outgoing[target]
        handle = Handle(line.send(data, tag), _nothing, lambda: [target])
        return Pending(handle, [tensor], self._timeout, partial(line.help, self._timeout))

    def receive(self, tensor: torch.Tensor, sources: Sequence[int], tag: int) -> Finished:
        """Receive a tensor from the first of some ranks that sends one."""
        receive = Receive(memory(tensor)[0], tag)
        errors = []
        for source in sources:
            self._check(source)
            errors.append(self._from(source).post(receive))
        if None not in errors:
            receive.ended.set_exception(errors[0] if errors else RoundelayError(
                "a message from any rank, and there is no other; expected a group of 2 or more"
            ))  # fmt: skip
        help = _nothing
        if len(sources) == 1:
            help = partial(self._from(sources[0]).help, receive, self._timeout)
        handle = Handle(receive.ended, _nothing, lambda: sources)
        return Receiving(handle, [tensor], self._timeout, help)

    def patience(self, seconds: float) -> None:
        """How long waits for messages may take from now on."""
        self._timeout = seconds

    def _from(self, source: int) -> Incoming:
        if source not in self._incoming:
            mine = source == self._comm.rank
            channel = None if mine else self._channel(source, self._comm.rank)
            self._incoming[source] = Incoming(source, channel, self._lock)
        return self._incoming[source]

    def _channel(self, source: int, target: int) -> Channel:
        return Channel(self._comm, self._store, self._name, (source, target), self._timeout)

    def _check(self, rank: int) -> None:
        if self._pid != os.getpid():  # the threads that serve the channels have stayed behind
            raise RoundelayError(
                f"this process group belongs to process {self._pid}, from which this one was "
                "forked; start processes that exchange with torchrun or spawn"
            )
        if not 0 <= rank < self._comm.ranks:
            raise RoundelayError(
                f"a message with rank {rank}; expected a rank of the group, 0 to "
                f"{self._comm.ranks - 1}"
            )

    def close(self) -> None:
        """End what is under way."""
        lines: list[Outgoing | Incoming] = [*self._outgoing.values(), *self._incoming.values()]
        for line in lines:
            line.close()


def _nothing() -> None:
    """What ends with the process needs no interrupting, and from many ranks nobody can help."""
