"""NCCL's graph XML: what its search has found, from NCCL_GRAPH_DUMP_FILE (src/graph/search.cc)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .note import Note
from .xml import Element, Tree, read_xml

KINDS: Final = MappingProxyType(
    {0: "ring", 1: "tree", 2: "collnet_chain", 3: "nvls", 4: "collnet_direct"}
)
"""Graphs by id."""
PATTERNS: Final = MappingProxyType(
    {1: "balanced tree", 2: "split tree", 3: "tree", 4: "ring", 5: "nvls", 6: "collnet direct"}
)


@dataclass(frozen=True)
class Graph:
    """One graph.

    Attributes:
        line: where it stands.
        id, pattern: NCCL's numbers; see `KINDS` and `PATTERNS`.
        channels: of each channel the cards' numbers in order, and the network devices.
        stated: channels that the head promises.
        rate_inside, rate_between: GB/s of a channel, one way.
        way_inside, way_between: classes of ways.
        same_channels, crosses: whether channels repeat, and whether they change network cards.
    """

    line: int
    id: int
    pattern: int
    channels: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    stated: int
    rate_inside: float
    rate_between: float
    way_inside: str
    way_between: str
    same_channels: bool
    crosses: bool

    @property
    def kind(self) -> str:
        """The algorithm that it is for."""
        return KINDS.get(self.id, f"id {self.id}")


@dataclass(frozen=True)
class Graphs:
    """All graphs of a file."""

    graphs: tuple[Graph, ...]
    notes: tuple[Note, ...]
    cut: bool


def read_nccl_graph(data: bytes) -> Graphs:
    """The graphs.

    Raises:
        RoundelayError: it is no graph file.
    """
    return graphs_of(read_xml(data))


def graphs_of(tree: Tree) -> Graphs:
    """The graphs that elements describe; see `read_nccl_graph`."""
    found: list[Element] = []
    for root in tree.roots:
        found += root.named("graph") if root.name == "graphs" else [root] * (root.name == "graph")
    if not found:
        raise RoundelayError("no <graph>; expected what NCCL_GRAPH_DUMP_FILE has written")
    notes = list(tree.notes)
    return Graphs(tuple(_graph(element, notes) for element in found), tuple(notes), tree.cut)


def _graph(element: Element, notes: list[Note]) -> Graph:
    at = element.attributes
    channels = tuple(_channel(channel, notes) for channel in element.named("channel"))
    stated = int(element.number("nchannels", 0) or 0)
    if stated != len(channels):
        what = message("{stated:channel|channels} are promised, {found} are there", stated=stated,
                       found=len(channels))  # fmt: skip
        notes.append(Note(element.line, what))
    return Graph(
        element.line, int(element.number("id", -1) or 0), int(element.number("pattern", 0) or 0),
        channels, stated, element.number("speedintra", 0.0) or 0.0,
        element.number("speedinter", 0.0) or 0.0, at.get("typeintra", ""), at.get("typeinter", ""),
        at.get("samechannels") == "1", at.get("crossnic", "0") != "0",
    )  # fmt: skip


def _channel(element: Element, notes: list[Note]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(_numbers(element, name, notes) for name in ("gpu", "net"))  # type: ignore[return-value]


def _numbers(element: Element, name: str, notes: list[Note]) -> tuple[int, ...]:
    """Devices, which are written in base 16; a card's rank goes before its device."""
    found = []
    for child in element.named(name):
        text, base = child.attributes.get("rank"), 10
        if text is None:
            text, base = child.attributes.get("dev", ""), 16
        try:
            found.append(int(text, base))
        except ValueError:
            notes.append(Note(child.line, message("{text!r} is no device", text=text[:40])))
    return tuple(found)
