"""Process groups that go on without ranks that have gone."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import numpy as np
import torch.distributed as dist

from ..communicator import Communicator
from ..errors import ExchangeError, RoundelayError
from ..run.environment import parse_address
from . import NAME


def shrink(timeout: float = 30.0) -> Any:
    """The default process group of the ranks that live, in place of that of all.

    All that live must call it, after an error. It ends all process groups; make sub-groups, meshes,
    and wrappers such as DDP anew.

    Args:
        timeout: seconds that the others may take to come.

    Returns:
        the new default group. `dist.get_rank()` and `dist.get_world_size()` are new.

    Raises:
        RoundelayError: as `Communicator.shrink`, or the default group is not of this backend.
    """
    from .group import ProcessGroup

    whole = dist.group.WORLD
    if not isinstance(whole, ProcessGroup):
        raise RoundelayError(
            f"the default process group is {type(whole).__name__}; expected one of the backend "
            f'{NAME}: init_process_group("{NAME}")'
        )
    deadline = time.monotonic() + 2 * timeout
    comm, store = whole.comm, None
    while store is None:
        comm = comm.shrink(timeout)
        whole.comm = comm  # from which the next call goes on, should this one fail
        try:
            store = _store(comm, timedelta(seconds=timeout))
        except (ExchangeError, dist.DistError):  # one that had come has gone since
            if time.monotonic() > deadline:
                raise
    whole.release()
    dist.destroy_process_group()
    dist.init_process_group(
        NAME, store=store, rank=comm.rank, world_size=comm.ranks, timeout=whole.timeout,
        pg_options=comm,
    )  # fmt: skip
    return dist.group.WORLD


def _store(comm: Communicator, wait: timedelta) -> dist.Store:
    """A store that all ranks have: the old one may have been that of a rank that has gone."""
    host, _ = parse_address(comm.invitation.partition("/")[0])
    store = dist.TCPStore(host, 0, None, True, wait, False) if comm.rank == 0 else None
    port = int(comm.broadcast(np.array([store.port if store else 0]))[0])
    return store or dist.TCPStore(host, port, None, False, wait, False)
