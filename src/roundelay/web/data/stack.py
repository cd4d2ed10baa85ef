"""What the stack shows: the layers from a program down to the links, and what this machine has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ...doctor import examine
from ...doctor.check import Check
from ...i18n import LANGUAGES, Message, message, translator


class Layer(NamedTuple):
    """A layer of the stack.

    Attributes:
        name: short, without spaces.
        title: in words.
        does: what it does.
        asks: what it asks of the layer below.
        parts: beginnings of the names of `doctor`'s checks that belong to it.
        beside: whether it stands beside the others.
    """

    name: str
    title: Message
    does: Message
    asks: Message
    parts: tuple[str, ...]
    beside: bool = False


LAYERS: Final = (
    Layer(
        "application", message("Your program"),
        message("Trains a model: every card works on its own data and has its own gradients."),
        message("Give every card the sum of all cards' gradients."),
        ("Python",),
    ),
    Layer(
        "framework", message("Framework"),
        message("Puts gradients into buckets and asks for their sum while it still computes."),
        message("all_reduce of this buffer, among these ranks."),
        ("torch", "extra torch"),
    ),
    Layer(
        "library", message("Collective library"),
        message("Chooses an algorithm, and cuts the data into pieces that pass from rank to rank."),
        message("Send these bytes to that rank; add what comes."),
        ("version", "native core", "reductions", "NCCL", "RCCL", "MPI"),
    ),
    Layer(
        "kernel", message("Kernels and drivers"),
        message("Move bytes and add them: on cores, on GPUs, through shared memory or a socket."),
        message("Carry these bytes over that link."),
        ("Linux kernel", "clock source", "shared memory", "/dev/shm", "reading other", "open files",
         "locked memory", "CUDA", "ROCm", "GPUDirect", "RDMA for programs"),
    ),
    Layer(
        "links", message("Cards, links and switches"),
        message("Carry the bytes: inside a machine over memory, PCIe or NVLink, between machines "
                "over network cards and switches."),
        message("The speed of light, and what was paid for."),
        ("model", "cores", "instruction sets", "memory", "NVIDIA GPUs", "AMD GPUs", "network card",
         "RDMA device"),
    ),
    Layer(
        "scheduler", message("Scheduler"),
        message("Starts the ranks, tells each its number and where the others are, and limits what "
                "they may use."),
        message("Processors, memory and cards for this job."),
        ("Slurm", "Kubernetes", "kubectl", "container", "limit of"), beside=True,
    ),
)  # fmt: skip
"""From the program down; the scheduler stands beside them."""


def stack(checks: Sequence[Check] | None = None) -> dict[str, Any]:
    """The layers, each with what `roundelay doctor` finds of it here.

    Args:
        checks: what was found; without it, this machine is looked at.

    Returns:
        ``layers``: each with name, title, does, asks, beside, and its checks in doctor's order:
        name, state, value (as people read it, "" where there is none) and meaning. ``rest``: what
        belongs to no layer.
    """
    found = examine() if checks is None else checks
    owners = [next((k for k, layer in enumerate(LAYERS) if _owns(layer, c)), -1) for c in found]
    layers = [
        {
            "name": layer.name,
            "title": _said(layer.title),
            "does": _said(layer.does),
            "asks": _said(layer.asks),
            "beside": layer.beside,
            "checks": [_shown(c) for c, owner in zip(found, owners, strict=True) if owner == k],
        }
        for k, layer in enumerate(LAYERS)
    ]
    rest = [_shown(c) for c, owner in zip(found, owners, strict=True) if owner < 0]
    return {"layers": layers, "rest": rest}


def _owns(layer: Layer, check: Check) -> bool:
    return any(
        str(check.name) == part or (" " in str(check.name) and str(check.name).startswith(part))
        for part in layer.parts
    )


def _shown(check: Check) -> dict[str, Any]:
    return {
        "area": check.area,
        "name": _said(check.name),
        "state": check.state,
        "value": check.shown,
        "meaning": _said(check.meaning),
    }


def _said(what: Message) -> dict[str, str]:
    return {lang: what.tell(translator(lang)) for lang in LANGUAGES}
