"""The cluster file: its tables and fields, and the JSON Schema made from them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from ..topology import FabricKind, Generation, InsideKind, InsideMedium, NicMedium, Processor

Count = Annotated[int, Meta(ge=1)]
Rate = Annotated[
    str,
    Meta(
        description="a rate with its direction",
        examples=["900 GB/s duplex", "63 GB/s oneway", "400 Gb/s oneway"],
    ),
]
Size = Annotated[str, Meta(description="a number of bytes", examples=["1 MiB"])]
Time = Annotated[str, Meta(description="a time", examples=["2.8 us"])]


class InsideFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How the cards of one node reach one another; see `Inside`."""

    kind: InsideKind
    medium: InsideMedium
    rate: Rate
    links: Count = 1
    latency: Time = "0 s"
    multicast: bool = False
    uplink: Rate | None = None
    between_sockets: Rate | None = None
    reduce: Time = "0 s"
    cache: Size = "0 B"
    cached: Rate | None = None


class NicsFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The network cards of a node; see `Nics`."""

    count: Count
    rate: Rate
    medium: NicMedium
    card_pcie: Rate
    latency: Time = "0 s"
    gpudirect: bool = True


class FabricFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The switches between nodes; see `Fabric`."""

    kind: FabricKind
    nodes_per_leaf: Count | None = None
    nodes_per_pod: Count | None = None
    nodes_per_group: Count | None = None
    oversubscription: float | list[float] = []
    planes: Count = 1
    dims: list[Count] = []
    hop_latency: Time = "0 s"
    adds: bool = False
    flows: Count | None = None
    radix: Count | None = None


class ClusterFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A cluster; see `Cluster`. Without `nics` it is one node; without `fabric`, on one switch."""

    name: str = ""
    title: str = ""
    generation: Generation
    nodes: Count = 1
    cards: Count
    hosts: Count = 1
    sockets: Count = 2
    processor: Processor = "intel"
    launch: Time = "0 s"
    inside: InsideFile
    nics: NicsFile | None = None
    fabric: FabricFile | None = None
    sources: dict[str, str | dict[str, str]] = {}


TABLES: Final[Mapping[str, type[msgspec.Struct]]] = MappingProxyType(
    {"inside": InsideFile, "nics": NicsFile, "fabric": FabricFile}
)
RATES: Final = frozenset({"rate", "uplink", "between_sockets", "card_pcie", "cached"})
SIZES: Final = frozenset({"cache"})
TIMES: Final = frozenset({"latency", "hop_latency", "launch", "reduce"})


def fields(table: type[msgspec.Struct]) -> tuple[str, ...]:
    """The names of a table's fields."""
    return tuple(f.name for f in msgspec.structs.fields(table))


def sourced() -> tuple[str, ...]:
    """What a source may be given for: a field, such as cards or inside.rate."""
    inner = (f"{table}.{field}" for table, kind in TABLES.items() for field in fields(kind))
    return (*(f for f in fields(ClusterFile) if f not in (*TABLES, "sources")), *inner)


def schema() -> dict[str, Any]:
    """The JSON Schema of a cluster file."""
    return msgspec.json.schema(ClusterFile)
