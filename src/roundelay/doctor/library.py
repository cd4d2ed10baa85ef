"""Roundelay itself: its version, its native core, its extras."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Final

from ..errors import NotBuilt
from ..i18n import Message, message
from .check import Check
from .host import Host

EXTRAS: Final[Mapping[str, Message]] = MappingProxyType(
    {
        "torch": message("Backend of torch.distributed."),
        "plot": message("Charts of `roundelay sweep`."),
        "progress": message("Bars that show how far long commands are."),
        "metrics": message("Counts for Prometheus."),
        "encryption": message("What ranks tell one another to control a job can be encrypted."),
        "yaml": message("Cluster files in YAML."),
        "ray": message("Sweeps over the machines of a Ray cluster."),
        "web": message("The page: `roundelay serve`."),
        "llm": message("A language model: `roundelay generate`, `llm` and `walk`."),
        "place": message("The optimum that `roundelay place --exact` finds."),
    }
)
"""What each extra is for."""
REQUIREMENT: Final = re.compile(
    r"(?P<name>[\w.-]+)[^;]*?(?:>=\s*(?P<least>[\d.]+))?[^;]*;.*extra\s*==\s*['\"](?P<extra>\w+)"
)

_Check = partial(Check, "roundelay")


def probe(host: Host) -> Iterator[Check]:
    """Version, native core, and each extra."""
    version = host.package("roundelay")
    if version is None:
        text = message("Run from a source tree: its extras are not known. pip install -e .")
        yield _Check(message("version"), "absent", text)
    else:
        yield _Check(message("version"), "present", message("Installed in this Python."), version)
    yield _core()
    for extra, requirements in _requirements(host).items():
        yield _extra(host, extra, requirements)


def _core() -> Check:
    name = message("native core")
    try:
        core = import_module("roundelay._native")
    except ImportError as error:
        why = str(NotBuilt("nothing runs here")) if error.name == "roundelay._native" else error
        text = message("Schedules are shown, proved and counted, and not run: {why}", why=str(why))
        return _Check(name, "wrong", text)
    text = message("Runs collectives between processes; it can add with: {sets}",
                   sets=", ".join(core.isas()))  # fmt: skip
    return _Check(name, "present", text)


def _requirements(host: Host) -> dict[str, list[tuple[str, str]]]:
    """Names and least versions of the packages of each extra, as the installed package tells."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in host.requirements("roundelay"):
        match = REQUIREMENT.match(line)
        if match and match["extra"] in EXTRAS:
            found.setdefault(match["extra"], []).append((match["name"], match["least"] or "0"))
    return found


def _extra(host: Host, extra: str, requirements: list[tuple[str, str]]) -> Check:
    name = message("extra {extra}", extra=extra)
    versions = [(package, least, host.package(package)) for package, least in requirements]
    lacking = [package for package, _, version in versions if version is None]
    value = ", ".join(f"{package} {version}" for package, _, version in versions if version)
    if lacking:
        text = message("{use} Missing: {packages}. pip install 'roundelay[{extra}]'",
                       use=EXTRAS[extra], packages=", ".join(lacking), extra=extra)  # fmt: skip
        return _Check(name, "absent", text, value or None)
    old = [f"{p} {least}" for p, least, version in versions if _key(version) < _key(least)]
    if old:
        text = message("{use} Too old; expected at least {packages}. pip install -U "
                       "'roundelay[{extra}]'", use=EXTRAS[extra], packages=", ".join(old),
                       extra=extra)  # fmt: skip
        return _Check(name, "wrong", text, value)
    return _Check(name, "present", EXTRAS[extra], value)


def _key(version: str | None) -> list[int]:
    found = re.match(r"[0-9]{1,9}(\.[0-9]{1,9})*", version or "")
    return [int(part) for part in found[0].split(".")] if found else []
