"""Memory, what ranks share of it, and limits of this process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from ..i18n import message
from ..units import format_size, parse_size
from .check import Check
from .host import Host, whole

LITTLE_SHM: Final = 1 << 30
"""Bytes of /dev/shm below which NCCL and data loaders run out: containers often have 64 MB."""
FULL: Final = 64 << 20
"""Bytes free in /dev/shm below which it counts as full."""
FEW_FILES: Final = 256
"""Open files that a job of some size needs."""
PER_PEER: Final = 3
"""Connections of a rank with one of another machine: two for data, one for watching."""
SYS_PTRACE, IPC_LOCK = 19, 14
"""Bits of a process's capabilities, from linux/capability.h."""

_Check = partial(Check, "memory")


def probe(host: Host) -> Iterator[Check]:
    """Memory, shared memory, limits."""
    yield _memory(host)
    yield _memfd()
    yield _shm(host)
    yield _attach(host)
    yield _files(host)
    yield _locked(host)


def _kib(host: Host, name: str) -> int | None:
    kib = whole(host.field("/proc/meminfo", name).removesuffix(" kB"))
    return None if kib is None else kib << 10


def _memory(host: Host) -> Check:
    name, total, free = message("memory"), _kib(host, "MemTotal"), _kib(host, "MemAvailable")
    if total is None:
        return _Check(name, "absent", message("The kernel does not tell how much there is."))
    if free is None:
        return _Check(name, "present", message("How much of it is free is not told."), total, "B")
    text = message("Of this, {free} can still be had.", free=format_size(free))
    return _Check(name, "present", text, total, "B")


def _memfd() -> Check:
    name = message("shared memory (memfd)")
    try:
        os.close(os.memfd_create("roundelay-doctor", os.MFD_CLOEXEC))
    except (OSError, AttributeError) as error:
        text = message("Ranks of a machine cannot exchange: memfd_create fails ({why}). A sandbox "
                       "forbids it; allow it there.", why=str(error))  # fmt: skip
        return _Check(name, "wrong", text)
    text = message("Ranks of this machine exchange through it; it has no size limit of its own.")
    return _Check(name, "present", text)


def _shm(host: Host) -> Check:
    name, size = message("/dev/shm"), _shm_size(host)
    if size is None:
        text = message("Roundelay does not use it; NCCL and torch's data loaders do.")
        return _Check(name, "absent", text)
    if (free := _shm_free(host)) is not None and free < min(FULL, size // 2):
        text = message("Full: {free} are left. Remove what ended programs left there: ls /dev/shm",
                       free=format_size(free))  # fmt: skip
        return _Check(name, "wrong", text, size, "B")
    if size < LITTLE_SHM:
        text = message("Small. Roundelay does not use it, but NCCL and torch's data loaders run "
                       "out; give a container more with --shm-size.")  # fmt: skip
        needed = bool(host.find("/proc/driver/nvidia/gpus"))
        return _Check(name, "wrong" if needed else "present", text, size, "B")
    text = message("Enough for NCCL and torch's data loaders; Roundelay itself uses memfd.")
    return _Check(name, "present", text, size, "B")


def _shm_size(host: Host) -> int | None:
    """As mounted; tmpfs takes half of the memory where nothing is said."""
    found = re.search(r"^\S+ /dev/shm (\S+) (\S+)", host.text("/proc/self/mounts"), re.M)
    if not found:
        return None
    size = re.search(r"(?:^|,)size=([0-9]{1,15}[kmg]?)\b", found[2])
    if size:
        return parse_size(size[1].upper() + ("iB" if size[1][-1].isalpha() else ""))
    total = _kib(host, "MemTotal")
    return total and total // 2


def _shm_free(host: Host) -> int | None:
    try:
        found = os.statvfs(host.at("/dev/shm"))
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _capable(host: Host, bit: int) -> bool:
    held = re.fullmatch("[0-9a-f]{1,16}", host.field("/proc/self/status", "CapEff"))
    return bool(held and int(held[0], 16) >> bit & 1)


def _attach(host: Host) -> Check:
    name, scope = message("reading other ranks' memory"), "/proc/sys/kernel/yama/ptrace_scope"
    held = host.number(scope) or 0
    if held and not (_capable(host, SYS_PTRACE) and held < 3):
        text = message("Forbidden by kernel.yama.ptrace_scope = {held}: large messages are copied "
                       "twice in place of once. An administrator can set it to 0.",
                       held=held)  # fmt: skip
        return _Check(name, "absent", text)
    if host.environ.get("ROUNDELAY_ATTACH", "1") == "0":
        text = message("Switched off by ROUNDELAY_ATTACH=0: large messages are copied twice.")
        return _Check(name, "absent", text)
    text = message("The kernel's settings allow it: large messages are copied once.")
    return _Check(name, "present", text)


def _limit(host: Host, name: str) -> str:
    return (host.field("/proc/self/limits", name).split() or [""])[0]


def _files(host: Host) -> Check:
    name, limit = message("open files (ulimit -n)"), _limit(host, "Max open files")
    files = whole(limit)
    if files is None:
        text = message("No limit is told.")
        return _Check(name, "present" if limit else "absent", text, limit or None)
    ranks = max(0, files - 64) // PER_PEER
    if files < FEW_FILES:
        text = message("Too few: a rank has {k} connections with each rank of another machine. "
                       "Raise it: ulimit -n 65536", k=PER_PEER)  # fmt: skip
        return _Check(name, "wrong", text, files)
    text = message("Enough for about {ranks} ranks on other machines, {k} connections each.",
                   ranks=f"{ranks:,}", k=PER_PEER)  # fmt: skip
    return _Check(name, "present", text, files)


def _locked(host: Host) -> Check:
    name, limit = message("locked memory (ulimit -l)"), _limit(host, "Max locked memory")
    if not limit:
        return _Check(name, "absent", message("No limit is told."))
    size = whole(limit)
    value, unit = (limit, "") if size is None else (size, "B")
    if limit == "unlimited" or _capable(host, IPC_LOCK):
        text = message("RDMA may lock the buffers it needs.")
    elif host.find("/sys/class/infiniband"):
        text = message("RDMA locks its buffers and fails beyond this. Raise it: ulimit -l "
                       "unlimited, or --ulimit memlock=-1 for a container.")  # fmt: skip
        return _Check(name, "wrong", text, value, unit)
    else:
        text = message("Only RDMA locks memory, and there is none here.")
    return _Check(name, "present", text, value, unit)
