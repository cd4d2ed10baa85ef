"""Rules about failures of NCCL that no warning explains: the way back, and the program's errors."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ...formats.nccl_log import NcclLog
from ..finding import Figures, Finding, cited, names, tell
from .causes import FOLLOWS
from .causes.places import place_of

RESULTS: Final = MappingProxyType(
    {
        1: "ncclUnhandledCudaError", 2: "ncclSystemError", 3: "ncclInternalError",
        4: "ncclInvalidArgument", 5: "ncclInvalidUsage", 6: "ncclRemoteError",
    }
)  # fmt: skip
"""Values of `ncclResult_t` that are errors (nccl.h)."""
GONE: Final = 6
"""The result of a rank whose peer is gone: the failure is the peer's."""
NUMBERS: Final = MappingProxyType(
    {
        "UnhandledCuda": 1, "System": 2, "Internal": 3, "InvalidArgument": 4, "InvalidUsage": 5,
        "Remote": 6, "unhandled cuda error": 1, "unhandled system error": 2, "internal error": 3,
        "invalid argument": 4, "invalid usage": 5, "remote process exited": 6,
    }
)  # fmt: skip
"""Numbers of results, by the names in the program's errors."""
_LIKELY: Final = MappingProxyType(
    {
        1: "As a rule CUDA says out of memory, or memory of another card or process cannot be "
           "mapped (P2P, IPC, cuMem), or driver and library do not fit one another.",
        2: "As a rule it is a socket to another host (interface, firewall, a rank that has ended), "
           "/dev/shm too small in a container, or RDMA (locked memory, a device that cannot be "
           "opened).",
        3: "As a rule another rank has ended, ranks do not see the same (versions, settings, "
           "network cards), or the machine's layout cannot be read.",
        4: "As a rule a buffer, a count or a number of ranks is wrong.",
        5: "As a rule two ranks use one card, more ranks are started than there are cards, or "
           "ranks call differently.",
        6: "Another process of the job has ended or a connection to it broke: the first error is "
           "in its log.",
    }
)  # fmt: skip
"""What most often lies behind a result."""


def _tells(text: str) -> bool:
    """Whether a warning tells more than that something has failed before."""
    return not FOLLOWS.search(text) or "Call to" in text


def gave_up(file: str, log: NcclLog) -> Finding | None:
    """A thread's way back from a failure, in a log whose warnings only follow from it."""
    thread = next((t for t in log.threads.values() if t.failed and t.failed.result != GONE), None)
    told = any(_tells(said.text) for _, said in log.warned.values())
    closed = any("Connection closed" in said.text
                 for _, said in (*log.noted.values(), *log.warned.values()))  # fmt: skip
    if told or closed or thread is None or thread.failed is None:
        return None  # a rank that was told to stop comes back by the same way
    failed = thread.failed
    place = place_of(failed.place)
    result = RESULTS.get(failed.result, "?")
    settings = names([f"{name}={value}" for name, (value, _) in log.environment.items()], 6)
    figures: Figures = {
        "place": failed.place, "result": failed.result, "name": result, "settings": settings,
        "times": sum(t.failed is not None for t in log.threads.values()),
    }  # fmt: skip
    reason = ["NCCL gives up in {place} (threads: {times}), result {result}: {name}; no warning "
              "says why."]  # fmt: skip
    if place.reason:
        reason.append(place.reason)
    if settings:
        reason.append("Set in the environment: {settings}; one of them may ask for what is not "
                      "here.")  # fmt: skip
    return tell(
        "gave_up", thread.host or file, figures, reason, place.advice,
        cited(file, failed.line), fault=True, confidence=0.6,
        area="machine",
    )  # fmt: skip


def ended_with(file: str, log: NcclLog) -> Finding | None:
    """A program's error that names NCCL's result, in a log without anything else."""
    if log.warned or log.noted or not log.results or any(t.failed for t in log.threads.values()):
        return None
    name, line = next(iter(log.results.items()))
    number = NUMBERS[name]
    figures: Figures = {"result": number, "name": RESULTS[number]}
    return tell(
        "ended_with", file, figures,
        ["A call of NCCL ended with result {result}: {name}. That is only the kind of error: what "
         "it was stands in NCCL's own log, which is not here.", _LIKELY[number]],
        "Run again with NCCL_DEBUG=INFO (NCCL_DEBUG_FILE=nccl.%h.%p, one file a process) and read "
        "the first warning of all ranks.",
        cited(file, line), fault=True, confidence=0.5,
        area="machine",
    )  # fmt: skip
