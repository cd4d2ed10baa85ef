"""What a machine has that matters to collectives, and what it means to who uses it.

>>> from roundelay.doctor import examine
>>> [check.area for check in examine()][0]
'machine'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Final

from ..i18n import Message, message
from . import gpu, library, machine, memory, network, processor, software
from .check import Check
from .host import Host

Probe = Callable[[Host], Iterator[Check]]

PROBES: Final[tuple[Probe, ...]] = (
    machine.probe,
    processor.probe,
    memory.probe,
    network.probe,
    gpu.probe,
    software.probe,
    library.probe,
)
"""One for each area, in the order in which they are told."""

AREAS: Final[Mapping[str, Message]] = MappingProxyType(
    {
        "machine": message("Machine"),
        "processor": message("Processor"),
        "memory": message("Memory and limits"),
        "network": message("Network"),
        "gpu": message("GPUs"),
        "software": message("Other software"),
        "roundelay": message("Roundelay"),
    }
)
"""Names of areas in words."""


def examine(host: Host | None = None) -> list[Check]:
    """Look at everything, in less than two seconds: programs that are slower to answer are left.

    Args:
        host: what to look at; without it, this machine and this process.
    """
    here = host or Host()
    with ThreadPoolExecutor(len(PROBES)) as pool:
        found = pool.map(lambda probe: list(probe(here)), PROBES)
    return [check for checks in found for check in checks]
