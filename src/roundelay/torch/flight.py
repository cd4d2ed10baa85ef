"""The last calls of a group as torch's flight recorder writes them, for its analyser.

The analyser is ``python -m torch.distributed.flight_recorder.fr_trace FOLDER``. It knows backends
by name, so that calls are written as Gloo's, which are on the CPU as well.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from ..errors import ExchangeError, RoundelayError
from ..recorder import TEAM, LastCall
from .profiling import type_name

VARIABLES: Final = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Where torch's own backends look for the prefix of their files, in this order."""
ASKED: Final = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), "")
"""The prefix of files that are written when a call fails, or nothing."""


def dump(prefix: str | os.PathLike[str] = "", group: Any = None) -> Path:
    """Write the last calls of this rank, at most 16, into the file PREFIX + rank.

    They are there at any time, also after an error, and from another thread while a call hangs.
    Messages between two ranks are not among them.

    Args:
        prefix: of the files of all ranks, such as "/tmp/calls/rank"; without it, as torch's own
            variables say, TORCH_FR_DUMP_TEMP_FILE or TORCH_NCCL_DEBUG_INFO_TEMP_FILE.
        group: of this backend; without it, the world.

    Returns:
        the file.

    Raises:
        RoundelayError: there is no prefix, no such group, or the file cannot be written.
    """
    start = os.fspath(prefix) or ASKED
    if not start:
        raise RoundelayError(f"no prefix of the files; give one, or set {' or '.join(VARIABLES)}")
    group = group or dist.group.WORLD
    if not hasattr(group, "ranks_in_world"):
        raise RoundelayError(f"{group!r}; expected a process group of the backend roundelay")
    file = Path(f"{start}{dist.get_rank()}")
    try:
        file.write_bytes(pickle.dumps(_trace(group), protocol=2))
    except OSError as error:
        raise RoundelayError(
            f"cannot write the last calls to {file}: {error.strerror}; expected a prefix of files "
            "in a folder that can be written"
        ) from None
    return file


_written: set[str] = set()


def dumping(group: Any, do: Callable[[], Any]) -> Any:
    """Do it; where it is the first exchange of the process that fails, write the last calls."""
    try:
        return do()
    except ExchangeError:
        if ASKED not in _written:
            _written.add(ASKED)
            dump(group=group)
        raise


def _trace(group: Any) -> dict[str, Any]:
    """What torch's analyser reads, in the version of this torch's own dumps."""
    name, calls = group.group_name, [c for c in group.comm.last_calls() if c.number < TEAM]
    ended = [call.number for call in calls if call.seconds is not None]
    last = max((call.number for call in calls), default=-1)
    version = pickle.loads(c10d._dump_fr_trace(False, False))["version"]
    return {
        "version": version,
        "pg_config": {
            name: {"name": name, "desc": group.group_desc, "ranks": f"{group.ranks_in_world}"}
        },
        "pg_status": {
            name: {
                "last_enqueued_collective": last,
                "last_started_collective": last,
                "last_completed_collective": max(ended, default=-1),
            }
        },
        "entries": [_entry(group, call) for call in calls],
    }


def _entry(group: Any, call: LastCall) -> dict[str, Any]:
    name, inputs, outputs = _shape(call, len(group.ranks_in_world))
    begun = round(call.begun * 1e9)
    ended = None if call.seconds is None else begun + round(call.seconds * 1e9)
    dtype = type_name(getattr(torch, call.dtype))
    return {
        "record_id": call.number,
        "pg_id": 0,
        "process_group": (group.group_name, group.group_desc),
        "collective_seq_id": call.number,
        "p2p_seq_id": 0,
        "op_id": call.number,
        "profiling_name": f"gloo:{name}",
        "time_created_ns": begun,
        "input_sizes": [[inputs]],
        "input_dtypes": [dtype],
        "output_sizes": [[outputs]],
        "output_dtypes": [dtype],
        "state": "started" if ended is None else "completed",
        "time_discovered_started_ns": begun,
        "time_discovered_completed_ns": ended,
        "retired": ended is not None,
        "timeout_ms": round(group.timeout.total_seconds() * 1e3),
        "is_p2p": False,
        "frames": [],
    }


def _shape(call: LastCall, ranks: int) -> tuple[str, int, int]:
    """The analyser's name of a call, and elements of its input and output on a rank."""
    whole = call.elements or 0
    each, rest = divmod(whole, ranks)
    if call.collective in ("all_gather", "reduce_scatter") and rest:
        return f"{call.collective}_v", whole, whole  # of uneven pieces
    pairs = {
        "all_gather": (each, whole), "gather": (each, whole), "reduce_scatter": (whole, each),
        "scatter": (whole, each), "all_to_all": (each, each), "barrier": (0, 0),
    }  # fmt: skip
    return call.collective, *pairs.get(call.collective, (whole, whole))
