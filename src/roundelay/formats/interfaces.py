"""The interfaces of a host as `ip addr`, `ip -br addr` and `ifconfig` print them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ..errors import RoundelayError
from .pasted import pasted_lines

_IP: Final = re.compile(r"^\s*\d{1,5}: ([\w.@:-]{1,40}): <([\w,-]{0,200})> mtu (\d{1,6})")
_CONFIG: Final = re.compile(r"^([\w.:-]{1,40}): flags=\d{1,6}<([\w,]{0,200})>\s+mtu (\d{1,6})")
_BRIEF: Final = re.compile(
    r"^([\w.@-]{1,40})\s+(UP|DOWN|UNKNOWN)(?:\s{2,}|$)((?:[0-9a-f.:]{3,40}/\d{1,3} ?)*)"
)
_OLD: Final = re.compile(r"^([\w.:@-]{1,40})\s+Link encap:")
_FLAGS: Final = re.compile(r"^\s+((?:[A-Z]{2,20} +)*)MTU:(\d{1,6})")
_ADDRESS: Final = re.compile(r"^\s+inet6? (?:addr:)?([0-9a-fA-F.:]{3,40})")


@dataclass
class Interface:
    """An interface: name, line, whether it is up and has a carrier, bytes of MTU, addresses."""

    name: str
    line: int
    up: bool
    mtu: int | None = None
    addresses: list[str] = field(default_factory=list)


def read_interfaces(data: bytes) -> tuple[Interface, ...]:
    """The interfaces of a host, in its order.

    Raises:
        RoundelayError: there is none.
    """
    found: list[Interface] = []
    for number, line in pasted_lines(data):
        if head := (_IP.match(line) or _CONFIG.match(line)):
            flags = head[2].split(",")
            up = "UP" in flags and "NO-CARRIER" not in flags
            up = up and not (line.startswith(head[1]) and "RUNNING" not in flags)
            found.append(Interface(head[1].split("@")[0], number, up, int(head[3])))
        elif head := _OLD.match(line):
            found.append(Interface(head[1], number, False))
        elif found and (flags_ := _FLAGS.match(line)):
            words = flags_[1].split()
            found[-1].up, found[-1].mtu = {"UP", "RUNNING"} <= set(words), int(flags_[2])
        elif brief := _BRIEF.match(line):
            own = [word.split("/")[0] for word in brief[3].split()]
            found.append(Interface(brief[1].split("@")[0], number, brief[2] != "DOWN", None, own))
        elif found and (address := _ADDRESS.match(line)):
            found[-1].addresses.append(address[1])
    if not found:
        raise RoundelayError("no interface; expected the output of ip addr or ifconfig")
    return tuple(found)
