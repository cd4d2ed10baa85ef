"""The machine: kernel, clock, containers and their limits, Python."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from ..i18n import message
from .check import Check
from .host import Host, whole

CLOCK: Final = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
SLOW_CLOCKS: Final = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit")
UNLIMITED: Final = 1 << 60
"""Version 1 of control groups writes a number above this for no limit."""
CONTAINERS: Final = ("docker", "containerd", "kubepods", "libpod", "lxc")

_Check = partial(Check, "machine")


def probe(host: Host) -> Iterator[Check]:
    """Kernel, clock, container, control group, Python."""
    yield _kernel(host)
    yield _clock(host)
    yield _container(host)
    yield _processors(host)
    yield _memory(host)
    yield _Check(message("Python"), "present", message("Runs this; Roundelay needs 3.11 or later."),
                 platform.python_version())  # fmt: skip


def _kernel(host: Host) -> Check:
    name, release = message("Linux kernel"), host.text("/proc/sys/kernel/osrelease")
    found = re.match(r"([0-9]{1,3})\.([0-9]{1,3})", release)
    if not found:
        return _Check(name, "absent", message("No /proc: what follows is incomplete."))
    if (int(found[1]), int(found[2])) >= (5, 3):
        text = message("Tells a rank at once when another of its machine has ended.")
    else:
        text = message("Older than 5.3: a rank asks now and then whether others have ended.")
    return _Check(name, "present", text, release)


def _clock(host: Host) -> Check:
    name, source = message("clock source"), host.text(CLOCK)
    if not source:
        return _Check(name, "absent", message("The kernel does not say which clock it reads."))
    if source in SLOW_CLOCKS:
        text = message(
            "Slow: reading the time takes about a microsecond, which small calls show. The kernel "
            "found the processor's own clock unstable; see dmesg."
        )
        return _Check(name, "wrong", text, source)
    return _Check(name, "present", message("Reading the time is cheap."), source)


def _container(host: Host) -> Check:
    name = message("container")
    kind = host.environ.get("container", "")
    if host.exists("/.dockerenv"):
        kind = "docker"
    elif host.exists("/run/.containerenv"):
        kind = "podman"
    elif "KUBERNETES_SERVICE_HOST" in host.environ:
        kind = "kubernetes"
    kind = kind or next((c for c in CONTAINERS if c in host.text("/proc/1/cgroup")), "")
    if kind:
        text = message("Ranks share memory only within this container; those of another container "
                       "count as another machine.")  # fmt: skip
        return _Check(name, "present", text, kind)
    return _Check(name, "absent", message("All ranks of this machine share memory."))


def _group(host: Host, old: str) -> str:
    """The folder of this process's control group; `old` is the controller's in version 1."""
    lines = host.text("/proc/self/cgroup").splitlines()
    fields = [line.split(":", 2) for line in lines if line.count(":") >= 2]
    own = next((path for _, names, path in fields if old in names.split(",")), None)
    if own is not None:
        base = f"/sys/fs/cgroup/{old}"
    else:
        base, own = "/sys/fs/cgroup", next((p for _, names, p in fields if not names), "/")
    return f"{base}/{own}" if own != "/" and host.exists(f"{base}/{own}") else base


def _processors(host: Host) -> Check:
    name, folder = message("limit of processors"), _group(host, "cpu")
    quota, _, period = host.text(f"{folder}/cpu.max").partition(" ")
    if not quota:
        quota = host.text(f"{folder}/cpu.cfs_quota_us")
        period = host.text(f"{folder}/cpu.cfs_period_us")
    used, of = whole(quota), whole(period)
    if not (used and used > 0 and of and of > 0):
        return _Check(name, "absent", message("No control group limits processor time."))
    cores = used / of
    text = message("More ranks than this are stopped in every period, and others wait for them.")
    return _Check(name, "present", text, round(cores, 2), "cores")


def _memory(host: Host) -> Check:
    name, folder = message("limit of memory"), _group(host, "memory")
    limit = host.number(f"{folder}/memory.max")
    if limit is None:
        limit = host.number(f"{folder}/memory.limit_in_bytes")
    if limit is None or not 0 < limit < UNLIMITED:
        return _Check(name, "absent", message("No control group limits memory."))
    text = message("Shared memory counts in it; the kernel ends processes that go beyond.")
    return _Check(name, "present", text, limit, "B")
