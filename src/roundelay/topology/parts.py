"""What a cluster is made of: cards inside a node, network cards, and the switches between nodes.

All rates are bytes a second **one way**, all times are seconds. Figures are checked when a part is
made: what no machine has is refused, with the field that says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..units import Rate, format_rate, format_time

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

InsideKind: TypeAlias = Literal["switch", "mesh", "bus"]
InsideMedium: TypeAlias = Literal["nvlink", "xgmi", "pcie", "memory"]
NicMedium: TypeAlias = Literal["ib", "roce", "efa", "tcp"]
FabricKind: TypeAlias = Literal["switch", "rail", "fat_tree", "dragonfly", "torus", "none"]

MEDIA: Final = (*get_args(InsideMedium), *get_args(NicMedium))
"""What links are made of; `Cluster.media` holds indices into it."""
RATES: Final = (1e3, 1e15)
"""Bytes a second, one way, between which a link's rate is believed."""
LATENCIES: Final = (1e-12, 10.0)
"""Seconds between which a latency other than 0 is believed."""
COUNT_LIMIT: Final = 2**24
"""Things of one kind in a cluster, at most."""
CACHE_LIMIT: Final = 2**40
"""Bytes of caches, at most."""
FLOWS_LIMIT: Final = 2**16
"""Flows of a network card, at most."""
TAPER_LIMIT: Final = 1000.0
"""Oversubscription of a level, at most."""


def check_count(field: str, value: int, least: int = 1, most: int = COUNT_LIMIT) -> None:
    """Refuse a count that is too small or too large for a cluster."""
    if not isinstance(value, int) or not least <= value <= most:
        raise RoundelayError(f"{field}: {value}; expected {least} to {most:,}")


def check_rate(field: str, value: float) -> None:
    """Refuse a rate that no link has: zero, negative, not finite, or of another unit."""
    low, high = (format_rate(Rate(r, "oneway")) for r in RATES)
    if not RATES[0] <= value <= RATES[1]:
        raise RoundelayError(f"{field}: {value:.6g} bytes a second; expected {low} to {high}")


def check_time(field: str, value: float, most: float = LATENCIES[1]) -> None:
    """Refuse a time that is negative, not finite, or too long."""
    if value and not LATENCIES[0] <= value <= most:
        low, high = format_time(LATENCIES[0]), format_time(most)
        raise RoundelayError(f"{field}: {value:.6g} s; expected 0 s, or {low} to {high}")


def check_one_of(field: str, value: object, known: Any) -> None:
    """Refuse a word that is not among those of a literal type."""
    if value not in get_args(known):
        raise RoundelayError(f"{field}: {value!r}; expected {' or '.join(get_args(known))}")


@dataclass(frozen=True)
class Inside:
    """How the cards of one node reach one another.

    Attributes:
        kind: "switch": all cards on a switch (NVSwitch); "mesh": direct links between every two
            cards; "bus": through the host, PCIe or its memory.
        medium: "nvlink", "xgmi", "pcie", or "memory" where data pass through the host's memory.
        rate: line rate of all links of a card together, bytes a second one way.
        links: links of a card (18 on H100); in a mesh they are divided among the other cards.
        latency: seconds that a small message takes from card to card, one way, end to end. The
            protocols of a GPU library have step times of their own in place of it.
        multicast: whether the switch adds and multicasts (NVLS: NVSwitch 3 and later).
        uplink: of a bus: rate one way, up and down each, of what the cards of one socket share
            on their way to the host; None: nothing shared.
        between_sockets: of a bus with several sockets: rate one way from one socket to another.
        reduce: where data pass through the host's memory: seconds that adding takes for each byte,
            beyond copying it.
        cache: there, too: bytes of a collective up to which all its data stay in the processors'
            caches; 0: not known.
        cached: what `uplink` is as long as they do; None: not known.
    """

    kind: InsideKind
    medium: InsideMedium
    rate: float
    links: int = 1
    latency: float = 0.0
    multicast: bool = False
    uplink: float | None = None
    between_sockets: float | None = None
    reduce: float = 0.0
    cache: int = 0
    cached: float | None = None

    def __post_init__(self) -> None:
        check_one_of("inside.kind", self.kind, InsideKind)
        check_one_of("inside.medium", self.medium, InsideMedium)
        check_rate("inside.rate", self.rate)
        check_count("inside.links", self.links)
        check_time("inside.latency", self.latency)
        self._check_memory()
        for field in ("uplink", "between_sockets"):
            value = getattr(self, field)
            if value is not None:
                check_rate(f"inside.{field}", value)
                if self.kind != "bus":
                    raise RoundelayError(f"inside.{field} is for a bus; leave it out "
                                         f"for a {self.kind}")  # fmt: skip
        if self.multicast and self.kind != "switch":
            raise RoundelayError(f"inside.multicast: only a switch adds; this is a {self.kind}")

    def _check_memory(self) -> None:
        check_time("inside.reduce", self.reduce)
        check_count("inside.cache", self.cache, 0, CACHE_LIMIT)
        for field in ("reduce", "cache", "cached"):
            if getattr(self, field) and self.medium != "memory":
                raise RoundelayError(f"inside.{field} is for memory; "
                                     f"leave it out for {self.medium}")  # fmt: skip
        if self.cached is not None:
            check_rate("inside.cached", self.cached)
            if not self.cache or self.uplink is None or self.cached < self.uplink:
                raise RoundelayError("inside.cached needs inside.cache, and inside.uplink that is "
                                     "no more than it")  # fmt: skip


@dataclass(frozen=True)
class Nics:
    """The network cards of a node.

    Cards and network cards belong together in order. Where there are fewer network cards, cards
    share them; where there are more, those of a card work as one.

    Attributes:
        count: network cards of a node; 0 where there is no network.
        rate: line rate of each, bytes a second one way.
        medium: "ib" (InfiniBand), "roce", "efa", or "tcp" (through the kernel).
        latency: seconds that a small message takes between network cards over one switch, one
            way, end to end.
        gpudirect: whether a network card reads a card's memory. If not, data go through the
            host's memory and cross the card's own PCIe link first.
        card_pcie: line rate between a card, or its network cards, and PCIe, one way.
    """

    count: int
    rate: float = 0.0
    medium: NicMedium = "ib"
    latency: float = 0.0
    gpudirect: bool = True
    card_pcie: float = 0.0

    def __post_init__(self) -> None:
        check_count("nics.count", self.count, 0)
        if not self.count:
            if self.rate or self.latency or self.card_pcie:
                raise RoundelayError("nics.count: 0, but more is said of them; "
                                     "leave out the other fields")  # fmt: skip
            return
        check_one_of("nics.medium", self.medium, NicMedium)
        check_rate("nics.rate", self.rate)
        check_rate("nics.card_pcie", self.card_pcie)
        check_time("nics.latency", self.latency)


@dataclass(frozen=True)
class Fabric:
    """The switches between nodes.

    Attributes:
        kind: "switch": one for all; "rail": card i of all nodes of a group on one leaf switch;
            "fat_tree": all cards of a group on one leaf switch; "dragonfly": groups, and a link
            between every two; "torus": nodes linked to their neighbours; "none": a single node.
        nodes_per_leaf: nodes under one leaf switch (rail: under one set of them, a leaf a rail).
        nodes_per_pod: nodes under one set of spine switches, where a third level joins several;
            None: two levels.
        nodes_per_group: of a dragonfly: nodes of a group.
        oversubscription: one for each level that has links upwards (leaf, then spine), 1 or more:
            rate of the links below over that of the links above. Dragonfly: one, network cards
            of a group over the links to other groups.
        planes: networks that have no link between them; network card i is on plane i % planes.
        dims: of a torus: nodes in each dimension.
        hop_latency: seconds that each switch after the first adds.
        adds: whether its switches add (SHARP).
        flows: flows that a network card spreads over the links above by hashing, which collide
            (ECMP); None where the network spreads them evenly.
        radix: ports of a switch; None: not said.
    """

    kind: FabricKind
    nodes_per_leaf: int | None = None
    nodes_per_pod: int | None = None
    nodes_per_group: int | None = None
    oversubscription: tuple[float, ...] = ()
    planes: int = 1
    dims: tuple[int, ...] = ()
    hop_latency: float = 0.0
    adds: bool = False
    flows: int | None = None
    radix: int | None = None

    def __post_init__(self) -> None:
        check_one_of("fabric.kind", self.kind, FabricKind)
        check_count("fabric.planes", self.planes)
        check_time("fabric.hop_latency", self.hop_latency)
        for field in ("nodes_per_leaf", "nodes_per_pod", "nodes_per_group", "flows", "radix"):
            if getattr(self, field) is not None:
                most = FLOWS_LIMIT if field == "flows" else COUNT_LIMIT
                check_count(f"fabric.{field}", getattr(self, field), most=most)
        for size in self.dims:
            check_count("fabric.dims", size, 2)
        self._check_fields()
        self._check_levels()

    def _check_fields(self) -> None:
        """Each kind has fields of its own."""
        for field, kinds in _FIELDS.items():
            given = getattr(self, field) != Fabric.__dataclass_fields__[field].default
            if given and self.kind not in kinds:
                raise RoundelayError(f"fabric.{field} is for {' and '.join(kinds)}; "
                                     f"leave it out for {self.kind}")  # fmt: skip
        needed = _NEEDED.get(self.kind)
        if needed and not getattr(self, needed):
            raise RoundelayError(f"fabric.{needed} is missing; a {self.kind} needs it")

    def _check_levels(self) -> None:
        leaf, pod = self.nodes_per_leaf, self.nodes_per_pod
        if leaf is not None and pod is not None and pod % leaf:
            raise RoundelayError(f"fabric.nodes_per_pod: {pod}; expected a multiple of "
                                 f"nodes_per_leaf, {leaf}")  # fmt: skip
        given, upwards = self.oversubscription, 1 if pod is None else 2
        if given and len(given) != upwards:
            raise RoundelayError(
                f"fabric.oversubscription: {', '.join(f'{value:g}' for value in given)}; expected "
                f"{upwards} of them, one for each level with links upwards"
            )
        for value in self.oversubscription:
            if not 1 <= value <= TAPER_LIMIT:
                raise RoundelayError(
                    f"fabric.oversubscription: {value:g}; expected 1 (as much above as below) to "
                    f"{TAPER_LIMIT:g}, such as 2 for 2:1"
                )

    def tapers(self) -> tuple[float, ...]:
        """Oversubscription of each level that has links upwards."""
        return self.oversubscription or (1.0,) * (1 if self.nodes_per_pod is None else 2)


_TREES: Final = ("rail", "fat_tree")
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "nodes_per_leaf": _TREES,
        "nodes_per_pod": _TREES,
        "nodes_per_group": ("dragonfly",),
        "oversubscription": (*_TREES, "dragonfly"),
        "planes": ("switch", *_TREES, "dragonfly"),
        "dims": ("torus",),
        "hop_latency": (*_TREES, "dragonfly", "torus"),
        "adds": ("switch", *_TREES),
        "flows": (*_TREES, "dragonfly"),
        "radix": ("switch", *_TREES, "dragonfly"),
    }
)
_NEEDED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rail": "nodes_per_leaf",
        "fat_tree": "nodes_per_leaf",
        "dragonfly": "nodes_per_group",
        "torus": "dims",
    }
)
