"""Events of PyTorch's profiler for a group's calls, with the fields that its tools look for.

The names of fields, and of collectives in them, are those of torch's NCCL backend:
torch/csrc/distributed/c10d/ParamCommsUtils.hpp, torch/csrc/profiler/util.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

import torch

from . import NAME

NAMES: Final = {
    "allreduce": "all_reduce", "all_gather_single": "_allgather_base", "allgather": "all_gather",
    "reduce_scatter_single": "_reduce_scatter_base", "alltoall": "all_to_all",
    "all_to_all_single": "all_to_all",
}  # fmt: skip
"""Of methods that are called otherwise than the collective."""


def event(group: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    """A context whose time is one event, `roundelay:all_reduce` and the like.

    The fields go into the trace where the profiler was told `record_shapes=True`.

    Args:
        group: the process group.
        method: of it.
        arguments: of the method: the output and the input, or what is both; then numbers.
    """
    outputs, *rest = [list(_tensors(argument)) for argument in arguments[:2]] or [[]]
    inputs = rest[0] if rest and rest[0] else outputs
    name = NAMES.get(method, method)
    fields = _of_group(group) | {
        "Collective name": "allreduce" if name == "all_reduce" else name,
        "dtype": type_name(inputs[0].dtype) if inputs else "Byte",  # as a barrier
        "In msg nelems": sum(x.numel() for x in inputs),
        "Out msg nelems": sum(x.numel() for x in outputs),
    }
    if method == "all_to_all_single":
        fields |= {"Out split size": f"{arguments[2]}", "In split size": f"{arguments[3]}"}
    if method in ("send", "recv"):
        fields["Dst Rank" if method == "send" else "Src Rank"] = arguments[1]
    return torch._C._profiler._RecordFunctionFast(f"{NAME}:{name}", inputs, fields)


def _of_group(group: Any) -> dict[str, Any]:
    ranks = group.ranks_in_world
    strides = {b - a for a, b in pairwise(ranks)}
    return {
        "Process Group Name": group.group_name,
        "Process Group Description": group.group_desc,
        "Process Group Ranks": f"{ranks}",
        "Group size": len(ranks),
        "Rank": group.comm.rank,
        "Global rank start": ranks[0],
        "Global rank stride": strides.pop() if len(strides) == 1 else 0,
    }


def type_name(dtype: torch.dtype) -> str:
    """As torch's C++ writes it, such as Float and BFloat16."""
    whole: str = torch.empty(0, dtype=dtype).type()  # torch.FloatTensor
    return whole.rpartition(".")[2].removesuffix("Tensor")


def _tensors(argument: Any) -> Iterator[torch.Tensor]:
    if isinstance(argument, torch.Tensor):
        yield argument
    elif isinstance(argument, Iterable):
        for each in argument:
            yield from _tensors(each)
