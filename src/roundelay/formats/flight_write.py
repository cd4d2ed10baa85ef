"""Dumps for PyTorch's flight recorder analyser, without PyTorch (schema 2.10)."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .flight import Call, Dump

VERSION: Final = "2.10"


def write_flight(dump: Dump, *, as_json: bool = False) -> bytes:
    """A dump, as a pickle of protocol 2 or as JSON; the file's name must end in its rank.

    Times were not read, so there are none: they are 0 in JSON and None in the pickle, as PyTorch
    writes them where they are not known.
    """
    unknown = 0 if as_json else None
    config = {
        name: {"name": name, "desc": dump.names.get(name, ""), "ranks": str(list(ranks))}
        for name, ranks in dump.groups.items()
    }
    used = (*dump.groups, *(call.group for call in dump.calls), *dump.enqueued, *dump.completed)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(used))}
    status = {
        str(numbers[name]): {
            "last_enqueued_collective": dump.enqueued.get(name, -1),
            "last_started_collective": dump.enqueued.get(name, -1),
            "last_completed_collective": dump.completed.get(name, -1),
        }
        for name in {*dump.enqueued, *dump.completed}
    }
    value: dict[str, Any] = {
        "version": dump.version or VERSION,
        "pg_config": config,
        "pg_status": dict(sorted(status.items())),
        "entries": [_entry(call, numbers[call.group], dump.names, unknown) for call in dump.calls],
    }
    if as_json:
        return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
    return pickle.dumps(value, protocol=2)


def _entry(
    call: Call, number: int, names: Mapping[str, str], unknown: int | None
) -> dict[str, Any]:
    file, _, line = call.where.rpartition(":")
    return {
        "record_id": call.record,
        "pg_id": number,
        "process_group": [call.group, names.get(call.group, "")],
        "collective_seq_id": 0 if call.between else call.sequence,
        "p2p_seq_id": call.sequence if call.between else 0,
        "op_id": call.record,
        "profiling_name": f"nccl:{call.operation}",
        "time_created_ns": 0,
        "input_sizes": [list(shape) for shape in call.inputs],
        "input_dtypes": [call.dtype] * len(call.inputs),
        "output_sizes": [list(shape) for shape in call.outputs],
        "output_dtypes": [call.dtype] * len(call.outputs),
        "state": call.state,
        "time_discovered_started_ns": unknown,
        "time_discovered_completed_ns": unknown,
        "retired": call.retired,
        "timeout_ms": 0,
        "is_p2p": call.between,
        "frames": [{"name": "", "filename": file, "line": int(line)}]
        if file and line.isdecimal() else [],
    }  # fmt: skip
