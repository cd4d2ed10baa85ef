"""Names that traces use: of kernels that communicate, of collectives, and of element types."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_COMMUNICATES: Final = re.compile(
    r"nccl(?:Kernel|DevKernel|Symk|x)|rccl|msccl|nvshmem|deep_ep::|cross_device_reduce|multimem_|"
    r"(?:one|two)_?shot_?all_?reduce|(?:inter|intra)node(?:_ll)?::(?:dispatch|combine|notify)|"
    r"oneccl|hccl",
    re.IGNORECASE,
)
_MEMORY: Final = re.compile(r"^(?:memcpy|memset|dma)", re.IGNORECASE)
_HOST: Final = re.compile(r"(?:nccl|gloo|mpi|ucc|xccl|hccl|roundelay):(\w+)")
_PLAIN: Final = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all", "broadcast": "broadcast",
    "reduce": "reduce", "gather": "gather", "scatter": "scatter", "barrier": "barrier",
    "send": "send", "recv": "recv", "sendrecv": "send_recv", "alltoallbase": "all_to_all",
    "allgatherbase": "all_gather", "reducescatterbase": "reduce_scatter",
    "allgatherintotensor": "all_gather", "reducescattertensor": "reduce_scatter",
    "alltoallsingle": "all_to_all", "allgathersingle": "all_gather",
    "reducescattersingle": "reduce_scatter", "allgatherv": "all_gather",
    "reducescatterv": "reduce_scatter", "dispatch": "dispatch", "combine": "combine",
}  # fmt: skip
_SIZES: Final = {
    "float": 4, "double": 8, "half": 2, "bfloat16": 2, "byte": 1, "char": 1, "bool": 1, "short": 2,
    "int": 4, "long": 8, "float8_e4m3fn": 1, "float8_e5m2": 1, "complexfloat": 8,
    "complexdouble": 16, "uint16": 2, "uint32": 4, "uint64": 8, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "long int": 8, "unsigned char": 1, "signed char": 1, "short int": 2,
    "c10::half": 2, "c10::bfloat16": 2, "float16": 2, "float32": 4, "float64": 8, "int8": 1,
    "uint8": 1, "int16": 2, "int32": 4, "int64": 8,
}  # fmt: skip
IN_KERNEL: Final = re.compile(
    r"nccl(?:Dev)?Kernel_([A-Za-z]+)|ncclSymkDevKernel_([A-Za-z]+)|"
    r"(?:inter|intra)node(?:_ll)?::(dispatch|combine)\b"
)
"""A collective in the name of a kernel."""


def communicates(name: str) -> bool:
    """Whether a kernel of this name exchanges data between ranks."""
    return _COMMUNICATES.search(name) is not None


def copies(name: str) -> bool:
    """Whether it moves or sets memory."""
    return _MEMORY.match(name) is not None


@cache
def collective(name: str) -> str:
    """A collective as this package names it; others as they are."""
    plain = name.lower().replace("_coalesced", "").replace("_", "")
    return _PLAIN.get(plain, name)


def on_host(name: str) -> str:
    """The collective of an event of the host, such as `gloo:all_reduce`, or nothing."""
    found = _HOST.match(name)
    return collective(found[1]) if found else ""


def type_size(name: str) -> int:
    """Bytes of an element; 0 where the type is not known."""
    return _SIZES.get(name.lower(), 0)
