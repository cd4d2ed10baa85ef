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
from .monitored import Monitor
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
    supports_splitting = True
    supports_coalescing = supports_time_estimate = supports_shrinking = False

    def __init__(self, options: Any, others: Any, parent: tuple[Communicator, Sequence[int]] | None
                 = None, asked: str = f"cpu:{NAME}") -> None:  # fmt: skip
        """For torch.

        Args:
            options: of the group: store, ranks, timeout.
            others: options for the backend of other devices.
            parent: a communicator to be a part of, and which of its ranks the group has.
            asked: devices and their backends, where torch has not noted them.
        """
        super().__init__(options.group_rank, options.group_size)
        self._options, self._others, self._asked = options, others, asked
        self._elsewhere: Any = None
        self._name = self._description = ""
        self.timeout = options.timeout
        seconds = self.timeout.total_seconds()
        given = isinstance(others, Communicator)  # as `shrink` gives it
        self.comm = others if given else _communicator(options, seconds, parent)
        self._post = Post(self.comm, options.store, options.group_id, seconds)
        self._monitor = Monitor(options.store, self.comm.rank, self.comm.ranks)
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
        """A barrier that says which rank has not come in time, and leaves the group usable."""
        self._monitor.meet(self.timeout if timeout is None else timeout, wait_all_ranks)

    def split_group(
        self, ranks: Sequence[int], timeout: timedelta | None = None, opts: Any = None,
        group_name: str | None = None, group_desc: str | None = None,
        device_types: Sequence[torch.device] | None = None,
    ) -> ProcessGroup | None:  # fmt: skip
        """A group of some ranks of this one; None where this rank is not among them.

        `torch.distributed.split_group` calls it, which torch keeps for machines with accelerators.

        Args:
            ranks: of this group, in ascending order.
            timeout: of its calls; without it, as here.
            opts: as `others` of the constructor.
            group_name: the same on all its ranks, and used for no other group.
            group_desc: for people.
            device_types: whose backends it has; without it, as here.
        """
        me = self.comm.rank
        if me not in ranks:
            return None
        options, whole = dist.distributed_c10d._DistributedBackendOptions(), self._options
        options.group_id = group_name or f"{self._name}:split:{'_'.join(map(str, ranks))}"
        options.store = dist.PrefixStore(f"{options.group_id}/", whole.store)
        options.group_rank, options.group_size = list(ranks).index(me), len(ranks)
        options.timeout = timeout or self.timeout
        options.global_ranks_in_group = [self.ranks_in_world[r] for r in ranks]
        kept = {device.type for device in device_types or self._device_types}
        asked = ",".join(":".join(pair) for pair in self._backends() if pair[0] in kept)
        group = ProcessGroup(options, opts or self._others, (self.comm, ranks), asked)
        group._set_group_name(options.group_id)
        group._set_group_desc(group_desc or f"{self._description}:split")
        return group

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

    @property
    def ranks_in_world(self) -> list[int]:
        """The ranks of torch's world that the group has, in its order."""
        options = self._options
        return list(options.global_ranks_in_group) or list(range(options.group_size))

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
        asked = dist.distributed_c10d._world.pg_backend_config.get(self, self._asked)
        pairs = [part.split(":") for part in asked.split(",")]
        return [(device, backend) for device, backend in pairs]

    def other(self, device: torch.device) -> Any:
        """The group of the same ranks by the backends of other devices.

        Raises:
            NoBackend: none was asked for.
        """
        others = [pair for pair in self._backends() if pair[1] != NAME]
        if device.type not in dict(others):
            raise NoBackend(
                f"a tensor on {device} in a group of the backend {NAME}, which exchanges tensors "
                f"on the CPU; expected one of these. Try tensor.cpu(), or another backend beside "
                f'it: init_process_group("cpu:{NAME},{device.type}:nccl")'
            )
        if self._elsewhere is None:
            options = self._options
            self._elsewhere, _ = dist.distributed_c10d._new_process_group_helper(
                options.group_size, options.group_rank, self.ranks_in_world,
                ",".join(map(":".join, others)), options.store, f"{self._name} elsewhere",
                self._others, self.timeout, group_desc=self._description,
            )  # fmt: skip
        return self._elsewhere

    def set_timeout(self, timeout: timedelta) -> None:
        """How long a call may wait for other ranks from now on."""
        self.timeout = timeout
        self._post.patience(timeout.total_seconds())
        if self._elsewhere is not None:
            self._elsewhere.set_timeout(timeout)
        self.comm.patience(timeout.total_seconds())

    def shutdown(self) -> None:
        """Says farewell to the other ranks. Others that still wait for this one get an error."""
        if not isinstance(self.comm, _Gone):
            self.release().close()

    def release(self) -> Communicator:
        """Ends, but for the communicator, which is given back."""
        # torch may keep this object until the process ends; what is native must go before.
        post, comm = self._post, self.comm
        self.comm = self._post = cast(Any, _Gone())
        atexit.unregister(self.shutdown)
        post.close()
        return comm

    def abort(self) -> None:
        """Ends calls under way, in this thread's background and in others, and shuts down."""
        if not isinstance(self.comm, _Gone):
            self.comm.interrupt()
        self.shutdown()


class NoBackend(RoundelayError, RuntimeError):
    """A group has no backend for a device; torch asks, and expects a RuntimeError."""


class _Gone:
    """What a process group has that was destroyed."""

    def __getattr__(self, name: str) -> Any:
        raise RoundelayError(
            "this process group was destroyed; make another with init_process_group or new_group"
        )


def _communicator(
    options: Any, seconds: float, parent: tuple[Communicator, Sequence[int]] | None
) -> Communicator:
    """The ranks' communicator: part of another, or of the world's, or one of its own."""
    rank, ranks, name = options.group_rank, options.group_size, options.group_id
    whole = dist.group.WORLD
    if parent is None:
        if not isinstance(whole, ProcessGroup):
            return world(options.store, rank, ranks, seconds)
        parent = whole.comm, options.global_ranks_in_group
    comm, members = parent

    def gone() -> list[int]:
        return [r for r, member in enumerate(members) if member in comm.gone()]

    board = Board(options.store, rank, ranks, seconds, gone=gone)
    return comm.part(members, board, name, seconds)
