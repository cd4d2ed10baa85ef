"""What figures were measured on, and how this process runs there."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ..units import parse_size


def machine() -> dict[str, Any]:
    """The machine: processor, cores, memory in bytes, kernel, and versions."""
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _cpu() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def cache_bytes() -> int:
    """Bytes of the last cache that a core has to itself; 0 where the kernel does not say."""
    own = 0
    for index in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        with suppress(OSError, ValueError):
            if (index / "shared_cpu_list").read_text().strip() == "0":
                own = max(own, parse_size((index / "size").read_text().strip()))
    return own


def priority() -> int | None:
    """The scheduling priority of this session, where the kernel has such: -20 (first) to 19."""
    with suppress(OSError):
        found = re.search(r"nice (-?\d+)", Path("/proc/self/autogroup").read_text())
        return int(found[1]) if found else None
    return None


def available_bytes() -> int | None:
    """Memory that can still be had, if the kernel says."""
    with suppress(OSError):
        found = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
        return int(found[1]) * 1024 if found else None
    return None
