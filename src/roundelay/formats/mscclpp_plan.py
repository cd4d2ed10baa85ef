"""MSCCL++'s JSON execution plans (python/mscclpp/language; src/core/executor of MSCCL++ 0.9).

Ids of channels and remote buffers inside an operation count in its thread block's own lists, which
point into the lists of its GPU.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ..errors import RoundelayError
from .msccl_xml import COLLECTIVES

OPERATIONS: Final = 64
"""Of a thread block, at most (MAX_OPERATION in execution_common.hpp)."""
CHANNELS: Final = 16
"""Of a thread block and type, at most; and remote buffers (MAX_CHANNEL)."""
CHANNELS_AT_ONCE: Final = 8
"""Of one operation (MAX_CHANNEL_PER_OPERATION)."""
SEMAPHORES: Final = 16
BYTES: Final = 2**28

_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
_Large = Annotated[int, msgspec.Meta(ge=0)]


class Buffer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Chunks from `index` on, `size` of them: of `type` here, of a remote buffer or of a switch."""

    type: str | None = None
    buffer_id: _Count | None = None
    switch_channel_id: _Count | None = None
    index: _Count
    size: _Count


class Operation(msgspec.Struct, omit_defaults=True):
    """One operation of a thread block; see MSCCL++'s documentation for the names."""

    name: str
    channel_ids: list[_Count] = []
    channel_type: str = ""
    src_buff: list[Buffer] = []
    dst_buff: list[Buffer] = []
    reduce_op: str = ""
    barrier_id: _Count | None = None
    num_threadblocks: _Count | None = None
    semaphore_ids: list[_Count] = []
    tbg_info: dict[str, _Count] | None = None
    iter_context: dict[str, _Count] | None = None
    ops: list[Operation] = []


class Channels(msgspec.Struct, omit_defaults=True):
    """Channels of a GPU to peers or through a switch; of a thread block, ids among those."""

    channel_type: str
    connected_to: list[_Count] = []
    channel_ids: list[_Count] = []
    buffer_type: str = ""
    buff: str = ""
    rank_groups: list[RankGroup] = []


class RankGroup(msgspec.Struct):
    """Ranks behind a switch, and how many chunks each."""

    size: _Count
    ranks: list[_Count]


class Remote(msgspec.Struct):
    """A peer's buffer that a GPU reaches."""

    rank: _Count
    type: str
    access_channel_types: list[str] = []


class RemoteRefs(msgspec.Struct):
    """Remote buffers that a thread block reaches over channels of a type."""

    access_channel_type: str
    remote_buffer_ids: list[_Count]


class Semaphore(msgspec.Struct):
    """What thread blocks of a GPU wait for each other by."""

    init_value: _Count = 0


class Block(msgspec.Struct):
    """A thread block: its operations, one after another."""

    id: _Count
    ops: list[Operation]
    channels: list[Channels] = []
    remote_buffer_refs: list[RemoteRefs] = []


class Gpu(msgspec.Struct):
    """One rank."""

    id: _Count
    input_chunks: _Count
    output_chunks: _Count
    scratch_chunks: _Count
    threadblocks: list[Block]
    channels: list[Channels] = []
    remote_buffers: list[Remote] = []
    semaphores: list[Semaphore] = []


class ExecutionPlan(msgspec.Struct):
    """A whole file. The executor insists on what has no default."""

    name: str
    collective: str
    protocol: str
    inplace: bool
    gpus: list[Gpu]
    reuse_resources: bool = False
    num_threads_per_block: _Count = 1024
    use_double_scratch_buffer: bool = False
    buffer_alignment: _Count = 16
    min_message_size: _Large = 0
    max_message_size: _Large = 2**64 - 1

    @property
    def ours(self) -> str:
        """Our name of the collective, or the file's where there is none."""
        return {there: name for name, there in COLLECTIVES.items()}.get(
            self.collective, self.collective
        )


def write_mscclpp(plan: ExecutionPlan) -> bytes:
    """The file.

    Raises:
        RoundelayError: it goes beyond what MSCCL++'s executor holds; the message names what.
    """
    if wrong := broken_limits(plan):
        raise RoundelayError(f"MSCCL++'s executor would not hold it: {'; '.join(wrong[:4])}")
    return msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n"


def broken_limits(plan: ExecutionPlan) -> list[str]:
    """What MSCCL++'s executor has no room for, in words; none if it takes the plan."""
    wrong: list[str] = []
    for gpu in plan.gpus:
        if len(gpu.semaphores) > SEMAPHORES:
            wrong.append(
                f"rank {gpu.id} has {len(gpu.semaphores)} semaphores; at most {SEMAPHORES}"
            )
        for block in gpu.threadblocks:
            where = f"rank {gpu.id}, thread block {block.id}"
            if len(block.ops) > OPERATIONS:
                wrong.append(f"{where} has {len(block.ops)} operations; at most {OPERATIONS}")
            for channels in block.channels:
                if (count := len(channels.channel_ids)) > CHANNELS:
                    wrong.append(f"{where} has {count} channels; at most {CHANNELS}")
            for refs in block.remote_buffer_refs:
                if (count := len(refs.remote_buffer_ids)) > CHANNELS:
                    wrong.append(f"{where} reaches {count} remote buffers; at most {CHANNELS}")
            for op in block.ops:
                if len(op.channel_ids) > CHANNELS_AT_ONCE:
                    wrong.append(f"{where} has an operation on {len(op.channel_ids)} channels; at "
                                 f"most {CHANNELS_AT_ONCE}")  # fmt: skip
    return wrong


def absent(data: bytes) -> list[str]:
    """Keys with a default that a file leaves out, of the plan itself."""
    known = {field.encode_name for field in msgspec.structs.fields(ExecutionPlan)
             if not field.required}  # fmt: skip
    found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    return sorted(known - set(found))


def _renamed(plan: Any) -> Any:
    """With a name, and the kind of a GPU's channels by its later name; some files say `type`."""
    if isinstance(plan, dict) and plan.get("name") is None:
        plan["name"] = ""
    gpus = plan.get("gpus") if isinstance(plan, dict) else None
    for gpu in gpus if isinstance(gpus, list) else ():
        channels = gpu.get("channels") if isinstance(gpu, dict) else None
        for one in channels if isinstance(channels, list) else ():
            if isinstance(one, dict) and "type" in one:
                one.setdefault("channel_type", one["type"])
    return plan


def read_mscclpp(data: bytes) -> ExecutionPlan:
    """The plan of a file; keys that are not known are left out.

    Raises:
        RoundelayError: it is no such plan; the message says where.
    """
    if len(data) > BYTES:
        raise RoundelayError(f"{len(data):,} bytes of a plan; expected at most {BYTES:,}")
    try:
        plan = msgspec.convert(_renamed(msgspec.json.decode(data)), ExecutionPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"no execution plan of MSCCL++: {error}") from None
    ids = [gpu.id for gpu in plan.gpus]
    if ids != list(range(len(ids))) or not ids:
        raise RoundelayError(f"ids of gpus {ids[:8]}; expected 0, 1, ... in order")
    for gpu in plan.gpus:
        if [block.id for block in gpu.threadblocks] != list(range(len(gpu.threadblocks))):
            raise RoundelayError(f"gpu {gpu.id}: expected thread blocks 0, 1, ... in order")
    return plan
