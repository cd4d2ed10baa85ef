"""What a trace of PyTorch's profiler says of one rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..note import Note

Times = npt.NDArray[np.int64]


class Kind(IntEnum):
    """What a device works on, in the words of Holistic Trace Analysis."""

    COMPUTATION, COMMUNICATION, MEMORY = range(3)


class Step(NamedTuple):
    """An iteration as the profiler saw it on the host: number, and ns."""

    number: int
    begin: int
    end: int


class Call(NamedTuple):
    """A collective, or a message between two ranks, as it ran.

    Attributes:
        name: such as "all_reduce".
        group: name of its process group; "" where the file does not say.
        ranks: of the group, as numbers of the job; empty where not known.
        seq: its number in the group; -1 where not known.
        bytes: of the whole vector: all ranks' pieces of an all-gather or reduce-scatter; -1 where
            not known.
        size: ranks of the group; 0 where not known.
        begin, end: ns.
        stream: of the device, or thread of the host.
        peer: the other rank of a send or recv, else -1.
    """

    name: str
    group: str
    ranks: tuple[int, ...]
    seq: int
    bytes: int
    size: int
    begin: int
    end: int
    stream: str
    peer: int = -1


@dataclass(frozen=True, eq=False)
class Trace:
    """One file. Times are ns since the epoch, or of the host's clock in older files.

    Attributes:
        file: its name.
        rank, world: of the job; None where the file does not say.
        backend: of torch.distributed, such as "nccl"; "" where it does not say.
        host: its name, or "".
        groups: process groups: the ranks of each by name, as far as the file says.
        begin, end, kind: [event], what the devices did: kernels and copies, by begin.
        stream: [event], number of the stream.
        name: [event], index into `names`.
        launched: [event], when the host began to launch it; -1 where not known.
        names: of kernels and copies.
        host_begin, host_end: [operation], operators on the CPU; none where devices work.
        calls: by begin; of the devices, or of the host where no device communicates.
        steps: by begin.
        events: in the file.
        bytes: of the file, unpacked.
        waits, unmatched: for events of CUDA, and those of which no record was found.
        notes: what was odd.
    """

    file: str
    rank: int | None
    world: int | None
    backend: str
    host: str
    groups: Mapping[str, tuple[int, ...]]
    begin: Times
    end: Times
    kind: Times
    stream: Times
    name: Times
    launched: Times
    names: tuple[str, ...]
    host_begin: Times
    host_end: Times
    calls: tuple[Call, ...]
    steps: tuple[Step, ...]
    events: int
    bytes: int
    waits: int = 0
    unmatched: int = 0
    notes: tuple[Note, ...] = ()
    other: Mapping[str, Any] = field(default_factory=dict)
    """What else the file says of itself, by key, as it stands there."""

    @property
    def on_device(self) -> bool:
        """Whether any device worked."""
        return len(self.begin) > 0

    def __repr__(self) -> str:
        who = "an unknown rank" if self.rank is None else f"rank {self.rank}"
        return (
            f"<Trace of {who}: {self.events:,} events, {len(self.begin):,} on devices, "
            f"{len(self.calls):,} calls, {len(self.steps):,} steps>"
        )
