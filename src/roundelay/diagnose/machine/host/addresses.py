"""What a host's interfaces and RoCE addresses mean for NCCL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....formats.gids import Gid, read_gids
from ....formats.interfaces import Interface, read_interfaces
from ...finding import Evidence, Figures, Finding, names, numbers, tell

LEFT_OUT: Final = re.compile(r"lo$|lo:|docker|virbr")
"""What NCCL leaves out by itself, if there is anything else."""
BRIDGES: Final = re.compile(
    r"br-|cni|flannel|cali|veth|tunl|vxlan|virbr|docker|weave|kube-|vnet|tailscale|wg\d"
)
LINK_LOCAL: Final = re.compile(r"fe80:|169\.254\.")


def interface_findings(file: str, data: bytes) -> list[Finding]:
    """Which interface NCCL takes by itself, and which are none for it.

    Raises:
        RoundelayError: there are none.
    """
    found = read_interfaces(data)
    usable = [i for i in found if i.up and any(_real(a) for a in i.addresses)]
    first = [i for i in usable if i.name.startswith("ib")]
    first = first or [i for i in usable if not LEFT_OUT.match(i.name)] or usable
    if not first:
        return [tell(
            "no_interface", file, {"count": len(found)},
            ["None of {count:interface|interfaces} is up and has an address, so that NCCL cannot "
             "start on several hosts."],
            "Bring one up: ip link set ... up, and give it an address.",
            _at(file, found[:4]), fault=True, confidence=0.8, area="machine",
        )]  # fmt: skip
    chosen, bridges = first[0], [i for i in first if BRIDGES.match(i.name)]
    down = [
        i for i in found if not i.up and not BRIDGES.match(i.name) and not LEFT_OUT.match(i.name)
    ]
    mtus = dict.fromkeys(i.mtu for i in first if i.mtu and i not in bridges)
    figures: Figures = {
        "first": chosen.name, "address": next(a for a in chosen.addresses if _real(a)),
        "bridges": names([i.name for i in bridges], 8), "down": names([i.name for i in down], 8),
        "others": names([i.name for i in first[1:] if i not in bridges], 8),
        "mtus": numbers(mtus, 4),
        "left": names([i.name for i in found if LEFT_OUT.match(i.name)], 8),
    }  # fmt: skip
    reason = ["Left to itself NCCL starts over {first} ({address}), the first that it may take."]
    if figures["others"]:
        reason.append("It uses these as well, where it sends over sockets: {others}.")
    if bridges:
        reason.append(
            "Among them are bridges or tunnels, which other hosts don't reach: {bridges}."
        )
    if figures["left"]:
        reason.append("It leaves out {left}.")
    if down:
        reason.append("Without a link: {down}.")
    if mtus:
        reason.append("MTU: {mtus}.")
    odd = chosen in bridges
    keep = next((i for i in first if i not in bridges), chosen)
    figures["keep"] = keep.name
    return [tell(
        "odd_interface" if odd else "interfaces", file, figures, reason,
        "On all hosts set NCCL_SOCKET_IFNAME={keep} (for Gloo GLOO_SOCKET_IFNAME), the interface "
        "by which they reach one another.",
        _at(file, [chosen, *bridges[:2], *down[:1]]), fault=odd,
        confidence=0.6 if odd else 0.8, area="machine",
    )]  # fmt: skip


def _real(address: str) -> bool:
    return not LINK_LOCAL.match(address.lower()) and address not in ("127.0.0.1", "::1")


def _at(file: str, found: Sequence[Interface]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, i.line, f"{i.name} {' '.join(i.addresses[:2])}".strip())
                 for i in found)  # fmt: skip


def gid_findings(file: str, data: bytes) -> list[Finding]:
    """Which GID index carries RoCE v2 over IPv4, and which ports have none.

    Raises:
        RoundelayError: there is no table.
    """
    rows = read_gids(data)
    ports = dict.fromkeys((row.device, row.port) for row in rows)
    by = {port: [r for r in rows if (r.device, r.port) == port and r.version == 2 and r.address
                 and _real(r.address)] for port in ports}  # fmt: skip
    have = {port: found[0] for port, found in by.items() if found}
    lacks = [port for port in ports if port not in have]
    indices = {row.place for row in have.values()}
    found: list[Finding] = []
    if lacks and have:
        figures: Figures = {"who": names([device for device, _ in lacks], 8), "have": len(have),
                            "all": len(ports)}  # fmt: skip
        found.append(tell(
            "no_ipv4_gid", file, figures,
            ["{who} has no GID of RoCE v2 with an IPv4 address ({have} of {all:port has|ports "
             "have} one): its interface has no address, so NCCL cannot reach other hosts through "
             "it, or only by its link-local address."],
            "Give the interface an address (ip addr add), or leave the network card out: "
            "NCCL_IB_HCA=^...",
            _rows(file, [r for r in rows if (r.device, r.port) in lacks]), fault=True,
            confidence=0.75, area="machine",
        ))  # fmt: skip
    if have:
        told = [f"{row.device} {row.place} ({row.address})" for row in have.values()]
        figures = {"told": names(told, 8), "index": min(indices)}
        reason = ["GID index of RoCE v2 over IPv4: {told}."]
        one = len(indices) == 1
        reason.append("It is {index} on all of them: NCCL_IB_GID_INDEX={index}." if one else
                      "It differs, so that no one NCCL_IB_GID_INDEX fits all; leave it unset, "
                      "NCCL finds it by itself from 2.21 on.")  # fmt: skip
        found.append(tell(
            "gids", file, figures, reason,
            "Compare with the other hosts: the index must fit there too.",
            _rows(file, list(have.values())), confidence=0.85, area="machine",
        ))  # fmt: skip
    else:
        found.append(tell(
            "no_ipv4_gid", file, {"count": len(ports)},
            ["None of {count:port|ports} has a GID of RoCE v2 with an IPv4 address."],
            "For InfiniBand that is as it must be; for RoCE give the interfaces addresses.",
            _rows(file, rows), confidence=0.7, area="machine",
        ))  # fmt: skip
    return found


def _rows(file: str, rows: Sequence[Gid]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, r.line, f"{r.device} {r.port} {r.place} {r.gid} v{r.version}")
                 for r in rows[:4])  # fmt: skip
