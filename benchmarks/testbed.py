"""Hosts with slow links on one machine: network namespaces around a bridge.

    with Testbed(2, rate="1gbit") as bed:
        subprocess.run([*bed.inside(0), "ip", "addr"])

Every host is a namespace with one interface, eth0, on a private network that leads nowhere else;
the bridge between them has a namespace of its own. A token bucket at both ends of each link holds
it to its rate. With `leaves`, hosts hang on several bridges, which one above them joins by links
whose bytes can be counted. It needs root, and the commands `ip` and `tc` of iproute2.

Leaving the context removes all of it. A run that was killed leaves its namespaces behind; their
names say which process made them, and the next run removes those whose process has ended.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

BURST = "128kb"
"""What a bucket holds: less than a packet as the kernel hands it on (64 KiB) costs goodput."""
LATENCY = "50ms"
"""How long a packet may wait for a bucket before it is dropped."""
_NAME = re.compile(r"rdl-(\d+)-(\d+)-\w+")


class Missing(Exception):
    """This machine cannot have such hosts; the message says why."""


def run(*words: str) -> str:
    """What a command prints."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise Missing(f"`{' '.join(words)}` failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


class Testbed:
    """Hosts 0 to n - 1, each with an IPv4 and an IPv6 address at eth0."""

    __test__ = False  # pytest: no tests in here

    def __init__(
        self,
        hosts: int,
        rate: str | None = "1gbit",
        leaves: Sequence[int] = (),
        above: str | None = None,
    ) -> None:
        """`rate` of each link and direction, in the words of `tc`; None for no limit.

        `leaves` is the bridge of each host, -1 for the one that joins them; `above` is the rate of
        the links to it.
        """
        self.hosts, self.rate, self.leaves, self.above = hosts, rate, leaves, above
        made_by = f"rdl-{os.getpid()}-{_begun(os.getpid())}"
        number = sum(name.startswith(made_by) for name in _namespaces())
        self._names = [f"{made_by}-{number}x{i}" for i in range(hosts)]
        self._switch = f"{made_by}-{number}sw"

    def inside(self, host: int) -> list[str]:
        """What to put before a command for it to run on a host."""
        return ["ip", "netns", "exec", self._names[host]]

    def address(self, host: int, version: int = 4) -> str:
        """Of a host."""
        return f"10.77.0.{host + 1}" if version == 4 else f"fd00:77::{host + 1}"

    def cut(self, host: int) -> None:
        """Pull the plug of a host: nothing goes in or out any more, and nobody is told."""
        run("ip", "-n", self._switch, "link", "set", f"port{host}", "down")

    def mend(self, host: int) -> None:
        """Put the plug of a host in again."""
        run("ip", "-n", self._switch, "link", "set", f"port{host}", "up")

    def __enter__(self) -> Self:
        try:
            _remove_leftovers()
            self._make_switch()
            for host in range(self.hosts):
                self._make_host(host)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _make_switch(self) -> None:
        run("ip", "netns", "add", self._switch)
        run("ip", "-n", self._switch, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self._switch, "link", "set", "bridge", "up")

        for leaf in sorted({*self.leaves} - {-1}):
            self._make_leaf(leaf)

    def _make_leaf(self, leaf: int) -> None:
        name = self._switch
        run("ip", "-n", name, "link", "add", f"leaf{leaf}", "type", "bridge")
        run("ip", "-n", name, "link", "set", f"leaf{leaf}", "up")
        run("ip", "-n", name, "link", "add", f"up{leaf}", "type", "veth",
            "peer", "name", f"down{leaf}")  # fmt: skip
        for device, bridge in ((f"up{leaf}", f"leaf{leaf}"), (f"down{leaf}", "bridge")):
            run("ip", "-n", name, "link", "set", device, "master", bridge, "up")
            if self.above is not None:
                run("tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf",
                    "rate", self.above, "burst", BURST, "latency", LATENCY)  # fmt: skip

    def crossed(self, leaf: int) -> int:
        """Bytes that have left a leaf upwards."""
        said = json.loads(run("ip", "-j", "-s", "-n", self._switch, "link", "show", f"up{leaf}"))
        return int(said[0]["stats64"]["tx"]["bytes"])

    def _make_host(self, host: int) -> None:
        name, port = self._names[host], f"port{host}"
        leaf = self.leaves[host] if self.leaves else -1
        bridge = "bridge" if leaf < 0 else f"leaf{leaf}"
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", port, "netns", self._switch, "type", "veth",
            "peer", "name", "eth0", "netns", name)  # fmt: skip
        run("ip", "-n", self._switch, "link", "set", port, "master", bridge, "up")
        v4, v6 = self.address(host), self.address(host, 6)
        run("ip", "-n", name, "addr", "add", f"{v4}/24", "dev", "eth0")
        run("ip", "-n", name, "addr", "add", f"{v6}/64", "dev", "eth0",
            "nodad", "noprefixroute")  # fmt: skip
        run("ip", "-n", name, "link", "set", "eth0", "up")
        # By route, as the kernel keeps the setting of congestion control to its first namespace.
        run("ip", "-n", name, "route", "replace", "10.77.0.0/24", "dev", "eth0", "src", v4,
            "congctl", "cubic")  # fmt: skip
        run("ip", "-n", name, "route", "replace", "fd00:77::/64", "dev", "eth0",
            "congctl", "cubic")  # fmt: skip
        if self.rate is not None:
            for where, device in ((name, "eth0"), (self._switch, port)):
                run("tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf",
                    "rate", self.rate, "burst", BURST, "latency", LATENCY)  # fmt: skip

    def _remove(self) -> None:
        _delete({self._switch, *self._names} & _namespaces())


def why_not() -> str | None:
    """What keeps this machine from having such hosts; None if nothing does."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for command in ("ip", "tc"):
        if shutil.which(command) is None:
            return f"there is no command `{command}`; it comes with iproute2"
    try:
        with Testbed(1):
            return None
    except Missing as missing:
        return str(missing)


def _begun(pid: int) -> str:
    """When a process was started, so that a later one with its number is told from it."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        return text.rpartition(")")[2].split()[19]
    return ""


def _namespaces() -> set[str]:
    with suppress(OSError):
        return {p.name for p in Path("/run/netns").iterdir() if _NAME.fullmatch(p.name)}
    return set()


def _remove_leftovers() -> None:
    found = {name: _NAME.fullmatch(name) for name in _namespaces()}
    _delete({name for name, m in found.items() if m and _begun(int(m[1])) != m[2]})


def _delete(names: set[str]) -> None:
    """Delete namespaces; with the last process in them their links end, too."""
    for name in names:
        with suppress(Missing):  # somebody else was faster
            run("ip", "netns", "del", name)
