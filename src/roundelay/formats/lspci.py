"""What `lspci -vv` says of links and of access control (ACS), device after device; also grepped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ..errors import RoundelayError
from .pasted import pasted_lines

_DEVICE: Final = re.compile(
    r"^\s{0,20}((?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]) (\S.{0,200})$"
)
_LINK: Final = re.compile(
    r"Lnk(Cap|Sta):.{0,40}?Speed (\d{1,3}(?:\.\d)?)GT/s.{0,20}?Width x(\d{1,2})"
)
_CONTROL: Final = re.compile(r"ACSCtl:\s*SrcValid([+-]).{0,40}?ReqRedir([+-])")


@dataclass
class PciDevice:
    """A device.

    Attributes:
        bus, title, line: of the device; "" where its line was not copied.
        able, now: GT/s of a lane and lanes, as it is able to and as it runs; None if not told.
        able_line, now_line: where these stand.
        control: the line of ACSCtl, and whether requests are sent up (SrcValid+ or ReqRedir+).
    """

    bus: str
    title: str
    line: int
    able: tuple[float, int] | None = None
    now: tuple[float, int] | None = None
    now_line: int = 0
    control: tuple[int, bool] | None = None


def read_lspci(data: bytes) -> tuple[PciDevice, ...]:
    """The devices of a text.

    Raises:
        RoundelayError: it tells of no link and no access control.
    """
    devices: list[PciDevice] = []
    for number, line in pasted_lines(data):
        if found := _DEVICE.match(line):
            devices.append(PciDevice(found[1].lower(), found[2].strip(), number))
            continue
        link, control = _LINK.search(line), _CONTROL.search(line)
        if (link or control) and not devices:
            devices.append(PciDevice("", "", number))
        if link:
            rate = float(link[2]), int(link[3])
            if link[1] == "Cap":
                devices[-1].able = rate
            else:
                devices[-1].now, devices[-1].now_line = rate, number
        elif control:
            if devices[-1].control is not None:
                devices.append(PciDevice("", "", number))
            devices[-1].control = number, "+" in (control[1], control[2])
    listed = tuple(d for d in devices if d.now or d.control)
    if not listed:
        raise RoundelayError("neither LnkSta nor ACSCtl; expected the output of `sudo lspci -vv`")
    return listed
