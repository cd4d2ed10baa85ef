"""Rules about the network interfaces that a log of NCCL says it uses."""

from __future__ import annotations

import re
from typing import Final

from ...formats.nccl_log import Line, NcclLog
from ..finding import Figures, Finding, cited, names, tell

_ODD: Final = re.compile(
    r"\b((?:ip6tnl|tunl|sit|gre|docker|virbr|br-|cni)[\w.-]*|lo|"
    r"(?:veth|cali|lxc|vnet)[\w.-]*(?=:fe80)):([\w.:%]+)<\d+>"
)
"""Tunnels, bridges, and ends of containers' networks without an address of their own."""


_PORT: Final = re.compile(r"\[\d+\](\w+:\d+)/(?:IB|RoCE)")


def _chosen(said: str, odd: re.Match[str]) -> bool:
    """Whether it is the first that is used, and no loopback."""
    return odd[1] != "lo" and said[: odd.start()].endswith(("Using ", "[0]"))


def odd_interface(file: str, log: NcclLog) -> Finding | None:
    """An interface of which other hosts know nothing is used between hosts."""
    if any(t.nodes == 1 for t in log.threads.values()):
        return None
    if log.transports and not any(name.startswith("NET") for name in log.transports):
        return None
    several = bool(log.transports) or len({t.host for t in log.threads.values() if t.host}) > 1
    found = {f"{odd[1]} ({odd[2]})": line for said, line in log.interfaces.items()
             for odd in _ODD.finditer(said) if several or _chosen(said, odd)}  # fmt: skip
    if not found:
        return None
    figures: Figures = {"interfaces": names(list(found), 4)}
    return tell(
        "odd_interface", file, figures,
        ["NCCL uses {interfaces}: a loopback, tunnel or bridge, or a container's end of one. Other "
         "hosts do not reach it, so that ranks on several hosts wait for one another or time out."],
        "Name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0 (or =^docker,lo,veth to "
        "leave some out); on one host it does no harm.",
        cited(file, *list(found.values())[:3]),
        fault=True, confidence=0.7, area="machine",
    )  # fmt: skip


def ports_differ(file: str, log: NcclLog) -> Finding | None:
    """Hosts of one job that use different numbers of RDMA ports."""
    ports: dict[str, list[str]] = {}
    lines: dict[str, Line] = {}
    mixed = set[str]()  # whose ranks use ports of their own
    for said, line in log.interfaces.items():
        host, _, rest = said.partition(": ")
        used = _PORT.findall(rest.partition(" ; ")[0]) if rest.startswith("NET/IB") else []
        if host and used:
            mixed |= {host} if ports.setdefault(host, used) != used else set()
            lines.setdefault(host, line)
    most = max(ports, key=lambda host: len(ports[host]), default="")
    least = min(ports, key=lambda host: len(ports[host]), default="")
    if mixed or not ports or not set(ports[least]) < set(ports[most]):
        return None
    missing = [port for port in ports[most] if port not in ports[least]]
    figures: Figures = {
        "least": least,
        "few": len(ports[least]),
        "most": most,
        "many": len(ports[most]),
        "missing": names(missing, 8),
    }
    return tell(
        "ports_differ", least, figures,
        ["Host {least} uses {few:RDMA port|RDMA ports} and host {most} {many}: {missing} is not "
         "used on {least}. Where the hosts are built alike its link is down or its driver has not "
         "brought it up, and ranks that count on it fail or wait."],
        "ibstat (or ibv_devinfo) on both hosts: is that port active? See its cable, switch port "
        "and dmesg; until it is mended leave it out on all hosts (NCCL_IB_HCA=^...).",
        cited(file, lines[least], lines[most]), fault=True, confidence=0.7, area="machine",
    )  # fmt: skip
