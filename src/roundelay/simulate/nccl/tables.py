"""NCCL's own figures: what its cost model knows of protocols, links and generations.

Facts from the source of NCCL 2.30.7 (github.com/NVIDIA/nccl, src/graph/tuning.cc, topo.h, search.cc
and src/include/device.h). Times are microseconds and bandwidths GB/s one way, as there. They say
what NCCL chooses, and are a poor clock: `clock` has constants of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

PROTOCOLS: Final = ("LL", "LL128", "Simple")
ALGORITHMS: Final = ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat")
Hardware: TypeAlias = Literal["nvlink", "pci", "net"]
Triple: TypeAlias = tuple[float, float, float]

_REDUCING: Final = ("ring", "collnet_direct", "nvls", "pat")
LEGAL: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "all_reduce": ALGORITHMS[:-1],
        "all_gather": _REDUCING,
        "reduce_scatter": _REDUCING,
        "broadcast": ("ring",),
        "reduce": ("ring",),
    }
)
"""Algorithms of each collective. All but tree and ring have the Simple protocol only."""

BASE: Final[Mapping[str, Triple]] = MappingProxyType(
    {
        "tree": (6.8, 14.0, 8.4),
        "ring": (6.6, 14.0, 8.4),
        "collnet_direct": (0.0, 0.0, 0.0),
        "collnet_chain": (0.0, 0.0, 0.0),
        "nvls": (0.0, 0.0, 0.0),
        "nvls_tree": (0.0, 0.0, 0.0),
        "pat": (8.0, 8.0, 8.0),
    }
)
"""us once a collective, for each protocol."""

LATENCY: Final[Mapping[Hardware, Mapping[str, Triple]]] = MappingProxyType(
    {
        "nvlink": {
            "tree": (0.6, 1.25, 4.0),
            "ring": (0.6, 1.9, 3.4),
            "collnet_direct": (0.0, 0.0, 3.7),
            "collnet_chain": (0.0, 0.0, 2.8),
            "nvls": (0.0, 0.0, 25.0),
            "nvls_tree": (0.0, 0.0, 25.0),
            "pat": (0.0, 0.0, 4.0),
        },
        "pci": {
            "tree": (1.0, 1.9, 4.0),
            "ring": (1.0, 2.5, 5.7),
            "collnet_direct": (0.0, 0.0, 3.7),
            "collnet_chain": (0.0, 0.0, 2.8),
            "nvls": (0.0, 0.0, 0.0),
            "nvls_tree": (0.0, 0.0, 0.0),
            "pat": (0.0, 0.0, 4.0),
        },
        "net": {
            "tree": (5.0, 8.5, 14.0),
            "ring": (2.7, 4.0, 14.0),
            "collnet_direct": (0.0, 0.0, 31.0),
            "collnet_chain": (0.0, 0.0, 30.0),
            "nvls": (0.0, 0.0, 18.0),
            "nvls_tree": (0.0, 0.0, 20.9),
            "pat": (0.0, 0.0, 14.0),
        },
    }
)
"""us a step, for each protocol, over each kind of link."""

NET_OVERHEAD: Final[Mapping[str, float]] = MappingProxyType({"amd": 2.0})
"""us that a processor adds to a step between nodes; 1 if not named; three times for Simple."""

# One node, two, and more; rows volta, ampere, hopper, blackwell.
LL_MAX: Final[Mapping[str, Triple]] = MappingProxyType(
    {
        "volta": (39.0, 39.0, 20.4),
        "ampere": (87.7, 22.5, 19.0),
        "hopper": (141.0, 45.0, 35.0),
        "blackwell": (282.0, 90.0, 70.0),
    }
)
"""LL in all. With several nodes the row is volta's for Intel and others, ampere's for AMD."""
RING_LL128: Final[Mapping[str, Triple]] = MappingProxyType(
    {
        "volta": (20.0, 20.0, 20.0),
        "ampere": (20.0, 20.0, 20.0),
        "hopper": (36.7, 36.7, 36.7),
        "blackwell": (40.0, 40.0, 40.0),
    }
)
"""A channel of a ring with LL128."""
TREE_LL128: Final[Mapping[str, Triple]] = MappingProxyType(
    {
        "volta": (20.0, 20.0, 20.0),
        "ampere": (20.0, 20.0, 20.0),
        "hopper": (36.7, 36.7, 29.0),
        "blackwell": (55.6, 31.67, 20.0),
    }
)
"""A channel of a tree with LL128."""
TREE: Final[Mapping[str, Triple]] = MappingProxyType(
    {
        "volta": (26.5, 18.5, 10.0),
        "ampere": (24.0, 23.6, 17.8),
        "hopper": (38.7, 41.4, 36.0),
        "blackwell": (70.0, 42.8, 24.0),
    }
)
"""A channel of a tree."""
NVLS_TREE: Final[Mapping[str, Triple]] = MappingProxyType(
    {
        "volta": (26.5, 18.5, 10.0),
        "ampere": (24.0, 23.6, 17.8),
        "hopper": (0.0, 57.7, 45.5),
        "blackwell": (0.0, 96.0, 80.0),
    }
)
"""A channel of an NVLS tree."""
NVLS_EFFICIENCY: Final[Mapping[str, float]] = MappingProxyType({"hopper": 0.85, "blackwell": 0.74})

TREE_CORRECTION: Final[Mapping[str, tuple[float, ...]]] = MappingProxyType(
    {
        "LL": (*(1.0,) * 4, 0.9, 0.8, *(0.7,) * 4, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
               *(1.0,) * 5),
        "LL128": (*(1.0,) * 5, 0.9, *(0.8,) * 3, 0.7, *(0.6,) * 6, 0.8, *(0.9,) * 4, *(1.0,) * 3),
        "Simple": (*(0.9,) * 7, 0.8, 0.7, 0.6, 0.6, *(0.5,) * 4, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8,
                   *(0.9,) * 3),
    }
)  # fmt: skip
"""Part of a tree's bandwidth, by the binary logarithm of size / 64 bytes."""

NVLINK: Final[Mapping[str, float]] = MappingProxyType(
    {"volta": 20.0, "ampere": 20.0, "hopper": 20.6, "blackwell": 40.1}
)
"""What a link of NVLink is worth."""
PCI_SHARE: Final = 0.75
"""What PCIe is worth, as part of its line rate: 12 of 16 GB/s for 16 lanes of generation 3."""

_OLD_INSIDE: Final = (40.0, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3)
_OLD_BETWEEN: Final = (48.0, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12)
SPEEDS_INSIDE: Final[Mapping[str, tuple[float, ...]]] = MappingProxyType(
    {
        "volta": _OLD_INSIDE,
        "ampere": _OLD_INSIDE,
        "hopper": (60.0, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
        "blackwell": (90.0, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18),
    }
)
"""Speeds of a channel that are tried, inside a node."""
SPEEDS_BETWEEN: Final[Mapping[str, tuple[float, ...]]] = MappingProxyType(
    {
        "volta": _OLD_BETWEEN,
        "ampere": _OLD_BETWEEN,
        "hopper": (48.0, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
        "blackwell": (96.0, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2,
                      0.24, 0.12),
    }
)  # fmt: skip
"""Speeds of a channel that are tried, between nodes."""

SEARCHED_CHANNELS: Final = 32
"""Channels that a search finds at most; each runs twice."""
NVLS_HEADS: Final = 32
"""Cards that reduce on the switch for the others, at most."""
NVLS_CHANNELS: Final[Mapping[str, int]] = MappingProxyType({"hopper": 16, "blackwell": 32})
NVLS_CHANNELS_OF_A_RACK: Final = 24
"""Of Blackwell, where several hosts share one NVLink switch."""
THREADS: Final[Mapping[str, int]] = MappingProxyType({"LL": 512, "LL128": 640, "Simple": 640})
THRESHOLD: Final[Mapping[str, int]] = MappingProxyType({"LL": 8, "LL128": 8, "Simple": 64})
"""Bytes a thread for which one more channel is opened; of a ring with LL, times ranks."""
POINT_TO_POINT_LL: Final = 16 * 1024
"""Bytes between two ranks up to which a send goes by LL."""

ROWS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "volta": "volta",
        "ampere": "ampere",
        "ada": "ampere",
        "hopper": "hopper",
        "blackwell": "blackwell",
        "rubin": "blackwell",
    }
)
"""Generation of a card -> the row of the tables that is used for it."""
