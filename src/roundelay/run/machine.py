"""What this process can learn of its machine, and how Slurm writes the names of several."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..errors import RoundelayError

STARTERS: Final = (
    "hydra_pmi_proxy", "pmi_proxy", "mpiexec", "mpiexec.hydra", "mpiexec.gforker", "mpirun",
    "prterun", "prted", "orterun", "orted",
)  # fmt: skip
"""Processes whose descendants on a machine are the ranks of one MPI job."""

_HOSTS: Final = 1_000_000


def node_identity(environ: Mapping[str, str] = os.environ) -> str:
    """A text that is equal exactly for processes that can share memory.

    It holds the boot of the machine, the host name and the namespace of process ids, so that
    containers count as machines of their own. ROUNDELAY_NODE replaces it.
    """
    if environ.get("ROUNDELAY_NODE"):
        return environ["ROUNDELAY_NODE"]
    space = ""
    with suppress(OSError):  # where /proc is not to be seen, the host name must do
        space = str(Path("/proc/self/ns/pid").readlink())
    return f"{boot_identity()}/{socket.gethostname()}/{space}"


def boot_identity() -> str:
    """A text that is equal on all containers of a machine until it is started anew."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return socket.gethostname()


def starter() -> str:
    """The process that started this one and the other local ranks of its MPI job.

    It is told from later ones with the same id by when it was started. Where no ancestor has a
    name that is known, it is the parent.
    """
    parent = os.getppid()
    pid, seen = parent, 0
    while pid > 1 and seen < 64:
        name, above = _process(pid)
        if name in STARTERS:
            return _with_start(pid)
        pid, seen = above, seen + 1
    return _with_start(parent)


def _process(pid: int) -> tuple[str, int]:
    """The name of a process, and the id of its parent; no more than that where it has ended."""
    name, fields = _stat(pid)
    return name, int(fields[1]) if fields else 0


def _with_start(pid: int) -> str:
    fields = _stat(pid)[1]
    return f"{pid}@{fields[19] if fields else 0}"


def _stat(pid: int) -> tuple[str, list[str]]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return "", []
    name, _, rest = text.partition("(")[2].rpartition(")")
    return name, rest.split()


def expand_hosts(text: str) -> list[str]:
    """The names in a Slurm host list, such as ``node[01-03,7]-ib,gpu5``.

    Raises:
        RoundelayError: it is not such a list.
    """
    found: list[str] = []
    for part in _split(text):
        found += _expand(part, text)
        if len(found) > _HOSTS:
            raise RoundelayError(f"host list {text!r} names more than {_HOSTS:,} hosts")
    if not found:
        raise _bad_list(text)
    return found


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside brackets."""
    parts = re.findall(r"(?:\[[^][]*\]|[^][,])+", text)
    if ",".join(parts) != text:
        raise _bad_list(text)
    return parts


def _expand(part: str, text: str) -> list[str]:
    names = [""]
    for literal, inner in re.findall(r"([^][]+)|\[([^][]*)\]", part):
        ends = [literal] if literal else _numbers(inner, text)
        if len(names) * len(ends) > _HOSTS:
            raise RoundelayError(f"host list {text!r} names more than {_HOSTS:,} hosts")
        names = [name + end for name in names for end in ends]
    return names


def _numbers(inner: str, text: str) -> list[str]:
    found: list[str] = []
    for item in inner.split(","):
        match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", item)
        if not match:
            raise _bad_list(text)
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first) or int(last) - int(first) >= _HOSTS:
            raise _bad_list(text)
        found += [f"{k:0{len(first)}}" for k in range(int(first), int(last) + 1)]
    return found


def _bad_list(text: str) -> RoundelayError:
    return RoundelayError(
        f"{text!r} is no list of hosts; expected one such as 'node[01-03,7],gpu5'. "
        "Set ROUNDELAY_ADDRESS=host:port to the machine of rank 0"
    )


def available_bytes() -> int | None:
    """Memory that can still be had, if the kernel says.

    The kernel itself would rather end a process than refuse it memory.
    """
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return None
