"""A process group of torch whose calls Roundelay makes."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import torch
import torch.distributed as dist

from ..communicator import Communicator
from ..errors import RoundelayError
from . import NAME
from .collectives import Collectives, here
from .meeting import Board, world
from .post import Post
from .tensors import only
from .work import Finished


class ProcessGroup(Collectives, dist.ProcessGroup):
    """The ranks of a group, as `init_process_group` and `new_group` make it.

    Groups beside a world of this backend share its session: members, secret and sockets.

    Attributes:
        comm: the communicator, for calls without torch's dispatch.
    """

    # What torch asks of a backend.
    supports_splitting = supports_coalescing = supports_time_estimate = supports_shrinking = False

    def __init__(self, options: Any, others: Any) -> None:
        """For torch.

        Args:
            options: of the group: store, ranks, timeout.
            others: options for the backend of other devices.
        """
        super().__init__(options.group_rank, options.group_size)
        self._options, self._others, self._elsewhere = options, others, None
        self._name = self._description = ""
        seconds = options.timeout.total_seconds()
        given = isinstance(others, Communicator)  # as `shrink` gives it
        self.comm = others if given else _communicator(options, seconds)
        self._post = Post(self.comm, options.store, options.group_id, seconds)
        atexit.register(self.shutdown)

    # Messages between two ranks.

    @here
    def send(self, tensors: Sequence[torch.Tensor], dst: int, tag: int) -> Finished:
        """Send a tensor to a rank of the group."""
        return self._under_way(self._post.send(only(tensors), dst, tag))

    @here
    def recv(self, tensors: Sequence[torch.Tensor], src: int, tag: int) -> Finished:
        """Receive a tensor from a rank of the group."""
        return self._under_way(self._post.receive(only(tensors), [src], tag))

    @here
    def recv_anysource(self, tensors: Sequence[torch.Tensor], tag: int) -> Finished:
        """Receive a tensor from whichever rank sends one first."""
        sources = [r for r in range(self.comm.ranks) if r != self.comm.rank]
        return self._under_way(self._post.receive(only(tensors), sources, tag))

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """A barrier that says which rank has not come in time."""
        if timeout is not None:
            self.comm.patience(timeout.total_seconds())
        try:
            self.comm.barrier()
        finally:
            self.comm.patience(self._options.timeout.total_seconds())

    # What it is, and how it ends.

    def getBackendName(self) -> str:  # noqa: N802
        """Its backend's name."""
        return NAME

    def getGroupName(self) -> str:  # noqa: N802
        """The name that torch has given it."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """For torch."""
        self._name = name

    def getGroupDesc(self) -> str:  # noqa: N802
        """What the user calls it."""
        return self._description

    def setGroupDesc(self, description: str) -> None:  # noqa: N802
        """For torch."""
        self._description = description
        self.comm.name = self._name if description in ("", "undefined") else description

    def get_group_store(self) -> Any:
        """The store of its ranks alone."""
        return self._options.store

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device(device) for device, _ in self._backends()]

    def _get_backend(self, device: torch.device) -> Any:
        return self if device.type == "cpu" else self.other(device)._get_backend(device)

    def supports_tensor_alloc(self, device: torch.device) -> bool:
        """Whether it gives memory for tensors, as NCCL does."""
        return False

    def _backends(self) -> list[tuple[str, str]]:
        """Devices and the backends that were asked for them."""
        asked = dist.distributed_c10d._world.pg_backend_config.get(self, f"cpu:{NAME}")
        pairs = [part.split(":") for part in asked.split(",")]
        return [(device, backend) for device, backend in pairs]

    def other(self, device: torch.device) -> Any:
        """The group of the same ranks by the backends of other devices.

        Raises:
            RoundelayError: none was asked for.
        """
        others = [pair for pair in self._backends() if pair[1] != NAME]
        if device.type not in dict(others):
            raise RoundelayError(
                f"a tensor on {device} in a group of the backend {NAME}, which exchanges tensors "
                f"on the CPU; expected one of these. Try tensor.cpu(), or another backend beside "
                f'it: init_process_group("cpu:{NAME},{device.type}:nccl")'
            )
        if self._elsewhere is None:
            options = self._options
            ranks = options.global_ranks_in_group or list(range(options.group_size))
            self._elsewhere, _ = dist.distributed_c10d._new_process_group_helper(
                options.group_size, options.group_rank, ranks,
                ",".join(map(":".join, others)), options.store, f"{self._name} elsewhere",
                self._others, options.timeout, group_desc=self._description,
            )  # fmt: skip
        return self._elsewhere

    def set_timeout(self, timeout: timedelta) -> None:
        """How long a call may wait for other ranks from now on."""
        self._options.timeout = timeout
        self.comm.patience(timeout.total_seconds())

    def shutdown(self) -> None:
        """Says farewell to the other ranks. Others that still wait for this one get an error."""
        if isinstance(self.comm, _Gone):
            return
        atexit.unregister(self.shutdown)
        self._post.close()
        self.comm.close()
        # torch may keep this object until the process ends; what is native must go before.
        self.comm = self._post = cast(Any, _Gone())

    def abort(self) -> None:
        """Ends a call under way in another thread, and shuts down."""
        self.comm.interrupt()
        self.shutdown()


class _Gone:
    """What a process group has that was destroyed."""

    def __getattr__(self, name: str) -> Any:
        raise RoundelayError(
            "this process group was destroyed; make another with init_process_group or new_group"
        )


def _communicator(options: Any, seconds: float) -> Communicator:
    """The ranks' communicator: part of the world's, or one of its own."""
    rank, ranks, name = options.group_rank, options.group_size, options.group_id
    whole = dist.group.WORLD
    if not isinstance(whole, ProcessGroup):
        return world(options.store, rank, ranks, seconds)
    board = Board(options.store, rank, ranks, seconds)
    return whole.comm.part(options.global_ranks_in_group, board, name, seconds)
