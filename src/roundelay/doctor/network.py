"""Network cards and RDMA devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from ..i18n import Message, message
from .check import Check
from .host import Host

CARDS: Final = "/sys/class/net"
DEVICES: Final = "/sys/class/infiniband"

_Check = partial(Check, "network")


def probe(host: Host) -> Iterator[Check]:
    """Each network card that data may go over, then each RDMA device."""
    cards = [c for c in host.find(CARDS) if host.exists(f"{CARDS}/{c}/device")]
    for card in cards:
        yield _card(host, card)
    if not cards:
        others = [c for c in host.find(CARDS) if c != "lo"]
        text = message("No card of this machine's own; through others ({others}) TCP may still go.",
                       others=", ".join(others) or "-")  # fmt: skip
        yield _Check(message("network card"), "absent", text)
    yield from _rdma(host)


def _card(host: Host, card: str) -> Check:
    folder = f"{CARDS}/{card}"
    name = message("network card {card}", card=card)
    driver, mtu = host.link(f"{folder}/device/driver") or "-", host.text(f"{folder}/mtu") or "-"
    if (state := host.text(f"{folder}/operstate")) == "down":
        text = message("Down: it carries nothing. Driver {driver}.", driver=driver)
        return _Check(name, "absent", text)
    megabits = host.number(f"{folder}/speed") or -1
    if megabits <= 0:
        text = message("It does not tell its speed; `roundelay probe` measures. Driver {driver}, "
                       "MTU {mtu}.", driver=driver, mtu=mtu)  # fmt: skip
        return _Check(name, "present", text, state if state != "unknown" else None)
    text = message("At most {rate:.4g} GB/s each way over TCP, less what the kernel's copies cost. "
                   "Driver {driver}, MTU {mtu}.", rate=megabits / 8000, driver=driver,
                   mtu=mtu)  # fmt: skip
    return _Check(name, "present", text, _whole(megabits / 1000), "Gb/s")


def _rdma(host: Host) -> Iterator[Check]:
    devices = host.find(DEVICES)
    if not devices:
        text = message("Between hosts everything goes through the kernel, over TCP.")
        yield _Check(message("RDMA device"), "absent", text)
        return
    for device in devices:
        for port in host.find(f"{DEVICES}/{device}/ports"):
            yield _port(host, device, port)
    yield _verbs(host)


def _port(host: Host, device: str, port: str) -> Check:
    folder = f"{DEVICES}/{device}/ports/{port}"
    name = message("RDMA device {device}, port {port}", device=device, port=port)
    kind = host.text(f"{folder}/link_layer") or "-"
    rate = re.match(r"[0-9]{1,6}(\.[0-9]{1,3})?", host.text(f"{folder}/rate"))
    state = host.text(f"{folder}/state").rpartition(":")[2].strip()
    value, unit = (_whole(float(rate[0])), "Gb/s") if rate else (None, "")
    if state == "ACTIVE":
        per_s = float(rate[0]) / 8 if rate else 0.0
        text = message(
            "{kind}: at most {rate:.4g} GB/s each way, without the kernel's copies. Roundelay "
            "itself goes over TCP; NCCL uses it.", kind=kind, rate=per_s,
        )  # fmt: skip
        return _Check(name, "present", text, value, unit)
    physical = host.text(f"{folder}/phys_state").rpartition(":")[2].strip() or "-"
    if physical == "Disabled":
        text = message("{kind}: switched off by the administrator.", kind=kind)
        return _Check(name, "absent", text)
    text = message("{kind}: state {state}, link {physical}. A cable, a transceiver, the switch's "
                   "port or the subnet manager; nothing to do if no cable is meant to be there.",
                   kind=kind, state=state or "-", physical=physical)  # fmt: skip
    return _Check(name, "wrong", text)


def _verbs(host: Host) -> Check:
    name = message("RDMA for programs")
    version = host.shared_library("libibverbs.so")
    if not host.find("/dev/infiniband", "uverbs*"):
        text = message(
            "The devices are there, /dev/infiniband is not: programs fall back to TCP. Give the "
            "container --device=/dev/infiniband, or load ib_uverbs."
        )
        return _Check(name, "wrong", text)
    if version is None:
        text = message("libibverbs is missing: NCCL and MPI fall back to TCP. Install rdma-core.")
        return _Check(name, "wrong", text)
    return _Check(name, "present", _ready(), version or None)


def _ready() -> Message:
    return message("Device files and libibverbs are there: NCCL and MPI can use the devices.")


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value
