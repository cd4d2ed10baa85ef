"""Ports of RDMA network cards: `ibstat`, `ibstatus`, `ibv_devinfo`, `ibdev2netdev`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import RoundelayError
from .pasted import pasted_lines

_DEVICE: Final = re.compile(
    r"^\s*(?:CA '([\w.:-]{1,40})'|hca_id:\s*([\w.:-]{1,40})|"
    r"Infiniband device '([\w.:-]{1,40})' port (\d{1,3}) status:)\s*$", re.I
)  # fmt: skip
_PORT: Final = re.compile(r"^\s*port:?\s*(\d{1,3}):?\s*$", re.I)
_FIELD: Final = re.compile(r"^\s*([A-Za-z][\w ]{0,30}?)\s*:\s*(\S.{0,80})$")
_NAMED: Final = re.compile(
    r"^\s*([\w.:-]{1,40}) port (\d{1,3}) (?:\([^)]{1,80}\) )?==> (\S{1,40}) \((Up|Down)\)"
)
"""A line of ibdev2netdev, with -v or without."""
_NUMBER: Final = re.compile(r"\d{1,5}(?:\.\d{1,3})?")
STATES: Final = ("active", "down", "initializ", "armed", "init")


@dataclass
class IbPort:
    """A port.

    Attributes:
        device, port: name of the network card, and number.
        line: where the port begins.
        model: as the command names the kind of card; "" if not told.
        state: "active", "down", "init" or "armed"; "named" where only its interface is told; ""
            if not told.
        physical: such as "linkup", "polling", "disabled"; "" if not told.
        rate: Gb/s; None if not told.
        layer: "infiniband" or "ethernet"; "" if not told.
        mtu, mtu_most: bytes, now and at most; None if not told.
        board: what the ports of one board share; "" if not told.
        interface, up: its interface of the network, and whether that is up.
    """

    device: str
    port: int
    line: int
    model: str = ""
    state: str = ""
    physical: str = ""
    rate: float | None = None
    layer: str = ""
    mtu: int | None = None
    mtu_most: int | None = None
    board: str = ""
    interface: str = ""
    up: bool = False

    @property
    def name(self) -> str:
        """As people write it: the port only where it is not the first."""
        return self.device if self.port == 1 else f"{self.device}:{self.port}"


def read_ib_ports(data: bytes) -> tuple[IbPort, ...]:
    """The ports of a text.

    Raises:
        RoundelayError: there is none.
    """
    ports: list[IbPort] = []
    device, model, board = "", "", ""
    port: IbPort | None = None
    for number, line in pasted_lines(data):
        if found := _NAMED.match(line):
            ports.append(IbPort(found[1], int(found[2]), number, state="named",
                                interface=found[3], up=found[4] == "Up"))  # fmt: skip
        elif found := _DEVICE.match(line):
            device, model, board = found[1] or found[2] or found[3], "", ""
            port = IbPort(device, int(found[4]), number) if found[4] else None
        elif device and (found := _PORT.match(line)):
            port = IbPort(device, int(found[1]), number, model, board=board)
        elif found := _FIELD.match(line):
            name, value = found[1].lower().replace(" ", "_"), found[2].strip()
            if port is None:
                model = value if name in ("ca_type", "vendor_part_id") else model
                board = value if name in ("system_image_guid", "sys_image_guid") else board
                continue
            _put(port, name, value)
        if port is not None and (not ports or ports[-1] is not port):
            ports.append(port)
    listed = tuple(p for p in ports if p.state)
    if not listed:
        raise RoundelayError("no port; expected the output of ibstat, ibstatus or ibv_devinfo")
    return listed


def _put(port: IbPort, name: str, value: str) -> None:
    low = value.lower()
    if name == "state" and not port.state:
        found = next((state for state in STATES if state in low), "")
        port.state = "init" if found.startswith("init") else found
    elif name in ("physical_state", "phys_state") and not port.physical:
        port.physical = re.sub(r"[^a-z]", "", low)
    elif name == "rate" and port.rate is None and (rate := _NUMBER.match(value)):
        port.rate = float(rate[0])
    elif name == "active_speed" and (speed := _NUMBER.match(value)):
        port.rate = (port.rate or 1.0) * float(speed[0])
    elif name == "active_width" and (lanes := _NUMBER.match(value)):
        port.rate = (port.rate or 1.0) * float(lanes[0])
    elif name == "link_layer":
        port.layer = low
    elif name in ("active_mtu", "max_mtu") and (size := _NUMBER.match(value)):
        if name == "max_mtu":
            port.mtu_most = int(float(size[0]))
        else:
            port.mtu = int(float(size[0]))
