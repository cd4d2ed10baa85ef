"""Addresses: of a name, of a network interface, and whether others can reach them."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..errors import RoundelayError

_SIOCGIFADDR: Final = 0x8915


def is_address(host: str) -> bool:
    """Whether it is an IPv4 or IPv6 address, not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether the address, or the name localhost, means this machine on every machine."""
    if is_address(host):
        return ipaddress.ip_address(host).is_loopback
    return host.lower().rstrip(".") in ("localhost", "ip6-localhost", "localhost.localdomain")


def family_of(host: str) -> socket.AddressFamily:
    """The address family of an address."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def plain(host: str) -> str:
    """An IPv4 address that a socket for both families met, without its IPv6 form."""
    return host.removeprefix("::ffff:") if host.startswith("::ffff:") and "." in host else host


def resolve(host: str, deadline: float) -> list[str]:
    """The addresses of a name, in the order the system prefers.

    Raises:
        RoundelayError: it has none. A name server that is out of reach is asked until the deadline.
    """
    while True:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(str(entry[4][0]) for entry in found))
        except (OSError, UnicodeError) as error:
            again = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
            if not again or time.monotonic() + 0.5 >= deadline:
                why = getattr(error, "strerror", None) or str(error)
                raise RoundelayError(
                    f"the host of rank 0, {host!r}, has no address: {why}; expected a name that "
                    "this machine can resolve, or an address. Check MASTER_ADDR or "
                    "ROUNDELAY_ADDRESS"
                ) from error
            time.sleep(0.5)


def asked_address(environ: Mapping[str, str]) -> str | None:
    """The address that ROUNDELAY_INTERFACE asks for, if it is set: itself, or an interface's.

    Raises:
        RoundelayError: there is no such interface, or it has no address.
    """
    asked = environ.get("ROUNDELAY_INTERFACE")
    if not asked:
        return None
    if is_address(asked):
        return asked
    known = sorted(name for _, name in socket.if_nameindex())
    if asked not in known:
        raise RoundelayError(
            f"ROUNDELAY_INTERFACE={asked!r}; expected an address or one of the interfaces of this "
            f"machine: {', '.join(known)}"
        )
    found = next(_addresses(asked), None)
    if found is None:
        usable = [name for name in known if any(_addresses(name))]
        raise RoundelayError(
            f"ROUNDELAY_INTERFACE={asked!r}: it has no address; those that have one: "
            f"{', '.join(usable)}"
        )
    return found


def _addresses(name: str) -> Iterator[str]:
    """IPv4 first; IPv6 without link-local ones, which mean nothing on other machines."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, suppress(OSError):
        request = struct.pack("256s", name.encode()[:15])
        yield socket.inet_ntoa(fcntl.ioctl(sock.fileno(), _SIOCGIFADDR, request)[20:24])
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text("ascii").splitlines():
            number, _, _, _, _, interface = line.split()
            address = ipaddress.IPv6Address(int(number, 16))
            if interface == name and not address.is_link_local:
                yield str(address)
