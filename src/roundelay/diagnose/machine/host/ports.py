"""What ports of RDMA network cards say: which are up, and how fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from ....formats.ib_ports import IbPort, read_ib_ports
from ...finding import Evidence, Figures, Finding, names, tell


def port_findings(file: str, data: bytes) -> list[Finding]:
    """What the ports say.

    Raises:
        RoundelayError: there is none.
    """
    ports = read_ib_ports(data)
    return [found for rule in RULES if (found := rule(file, ports)) is not None]


def _at(file: str, ports: Sequence[IbPort]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, p.line, f"{p.name}: {p.state} {p.physical}".strip())
                 for p in ports[:4])  # fmt: skip


def _down(file: str, ports: Sequence[IbPort]) -> Finding | None:
    """Ports without a link, though their like has one; a second port is often left empty."""
    up = [p for p in ports if p.state == "active"]
    down = [p for p in ports if p.state == "down"]
    alive = {p.device for p in up}
    alike = {p.model for p in up}
    boards = {p.board for p in up} - {""}
    off = [p for p in down if p.device not in alive and p.board not in boards
           and (p.model in alike or not up)]  # fmt: skip
    if not off:
        return None
    physical = {p.physical for p in off} - {""}
    figures: Figures = {"who": names([p.name for p in off], 8), "up": len(up), "all": len(ports),
                        "physical": names(sorted(physical)) or "-"}  # fmt: skip
    reason = ["No link: {who} (physical state: {physical}); {up} of {all:port is|ports are} up. "
              "NCCL leaves such a port out without a word, so the host has that much less to other "
              "nodes."]  # fmt: skip
    if "polling" in physical:
        reason.append("Polling: the port looks for the other end and finds none.")
    if "disabled" in physical:
        reason.append("Disabled: somebody has switched the port off.")
    return tell(
        "link_down", file, figures, reason,
        "Look at the cable, the transceiver and the switch's port (mlxlink -d ... shows why); "
        "ibportstate or ip link switches a port on.",
        _at(file, off), fault=True, confidence=0.8, area="machine",
    )  # fmt: skip


def _no_manager(file: str, ports: Sequence[IbPort]) -> Finding | None:
    waits = [p for p in ports if p.state in ("init", "armed")]
    if not waits:
        return None
    return tell(
        "no_subnet_manager", file, {"who": names([p.name for p in waits], 8)},
        ["{who} has its link and stays in the state of initialising: no subnet manager (SM) has "
         "set the port up, so nothing is sent over it."],
        "See that a subnet manager runs in that network (sminfo; opensm, or that of the switch), "
        "and that the port is in the right network.",
        _at(file, waits), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _slower(file: str, ports: Sequence[IbPort]) -> Finding | None:
    """Ports that run slower than others of the same kind of card."""
    up = [p for p in ports if p.state == "active" and p.rate]
    slow: list[IbPort] = []
    usual = 0.0
    for model in {p.model for p in up}:
        rates = Counter(p.rate or 0 for p in up if p.model == model and p.model)
        if len(rates) > 1:
            usual = max(rates)
            slow += [p for p in up if p.model == model and (p.rate or 0) < usual]
    if not slow:
        return None
    figures: Figures = {
        "who": names([f"{p.name} {p.rate:g} Gb/s" for p in slow], 8), "usual": usual,
        "usual_GBps": usual / 8,
    }  # fmt: skip
    return tell(
        "port_slower", file, figures,
        ["{who}, while others of the same kind run at {usual} Gb/s ({usual_GBps} GB/s one way). "
         "NCCL spreads its data evenly, so that all go at the rate of the slowest."],
        "Look at the cable, and at the speed that is set at both ends (mlxlink -d ...).",
        _at(file, slow), fault=len(slow) == 1,  # several are those of storage, mostly
        confidence=0.8, area="machine",
    )  # fmt: skip


def _small(file: str, ports: Sequence[IbPort]) -> Finding | None:
    """RoCE with the MTU of Ethernet as it comes."""
    small = [p for p in ports if p.layer == "ethernet" and p.mtu and p.mtu < 4096
             and (p.mtu_most or 4096) >= 4096]  # fmt: skip
    if not small:
        return None
    figures: Figures = {"who": names([p.name for p in small], 8), "mtu": small[0].mtu or 0,
                        "most": small[0].mtu_most or 4096}  # fmt: skip
    return tell(
        "small_mtu", file, figures,
        ["RoCE on {who} sends packets of {mtu} bytes, and could of {most}: the MTU of Ethernet "
         "below it is that of a small frame (1500), which costs some of the rate."],
        "Set an MTU of 9000 (4200 at least) at both ends and on the switches between.",
        _at(file, small), confidence=0.8, area="machine",
    )  # fmt: skip


def _named(file: str, ports: Sequence[IbPort]) -> Finding | None:
    """Which interface belongs to which network card."""
    named = [p for p in ports if p.interface]
    if not named:
        return None
    down = [f"{p.interface} ({p.name})" for p in named if not p.up]
    figures: Figures = {"told": names([f"{p.name} {p.interface}" for p in named], 12),
                        "down": names(down, 8)}  # fmt: skip
    reason = ["Network cards and their interfaces: {told}."]
    if down:
        reason.append("Down: {down}. That is said of the interface and not of the port: over "
                      "InfiniBand NCCL does not need it, RoCE needs it up and with an "
                      "address.")  # fmt: skip
    return tell(
        "interfaces", file, figures, reason, "For the state and rate of the ports: ibstat.",
        tuple(Evidence(file, p.line, f"{p.name} ==> {p.interface}") for p in named[:4]),
        confidence=0.85, area="machine",
    )  # fmt: skip


def _shown(file: str, ports: Sequence[IbPort]) -> Finding | None:
    up = [p for p in ports if p.state == "active"]
    if not up:
        return None
    kinds = Counter((p.rate, p.layer) for p in up)
    told = [f"{count} x {f'{rate:g} Gb/s ({rate / 8:g} GB/s)' if rate else '?'} {layer}".strip()
            for (rate, layer), count in kinds.items()]  # fmt: skip
    figures: Figures = {"up": len(up), "who": names([p.name for p in up], 12),
                        "kinds": names(told, 6)}  # fmt: skip
    return tell(
        "ports", file, figures,
        ["{up:port is|ports are} up: {who}; rates one way: {kinds}."],
        "For the card that each is near: nvidia-smi topo -m.", _at(file, up[:1]), confidence=0.9,
        area="machine",
    )  # fmt: skip


RULES: Final[tuple[Callable[[str, Sequence[IbPort]], Finding | None], ...]] = (
    _no_manager, _down, _slower, _small, _named, _shown,
)  # fmt: skip
