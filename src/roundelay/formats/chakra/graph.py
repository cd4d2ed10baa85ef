"""What an execution trace says: nodes, and what each waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

from ..kineto import words
from ..note import Note

COLLECTIVES: Final = (
    "all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast", "all_to_all",
    "reduce_scatter", "reduce_scatter_block", "barrier",
)  # fmt: skip
"""By the number that the attribute comm_type holds."""
_C10D: Final = re.compile(r"c10d::_?([a-z]+(?:_[a-z]+)*)")


class NodeKind(IntEnum):
    """Kind of a node, as Chakra numbers them."""

    INVALID, METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(8)
    STORAGE, BATCH, CHECKPOINT = range(8, 11)

    @property
    def communicates(self) -> bool:
        """Whether it exchanges data between ranks."""
        return self in (NodeKind.SEND, NodeKind.RECEIVE, NodeKind.COLLECTIVE)


class Attribute(NamedTuple):
    """A value and the type that the file gives it, such as "int64" or "string_list", or ""."""

    type: str
    value: Any


class Node(NamedTuple):
    """An operation.

    Attributes:
        id: its number in the file.
        name: such as "aten::add".
        kind: what it is.
        control, data: ids of nodes that it waits for.
        begin_us, duration_us: 0 where the file does not say.
        attributes: by name.
        inputs, outputs: values, shapes and types, as text.
    """

    id: int
    name: str
    kind: NodeKind
    control: tuple[int, ...] = ()
    data: tuple[int, ...] = ()
    begin_us: int = 0
    duration_us: int = 0
    attributes: Mapping[str, Attribute] = {}
    inputs: tuple[str, str, str] = ("", "", "")
    outputs: tuple[str, str, str] = ("", "", "")

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        found = self.attributes.get(name)
        return default if found is None else found.value

    @property
    def collective(self) -> str:
        """The collective, by its number or by the node's name; "" where none is told."""
        number = self.get("comm_type")
        if isinstance(number, int) and 0 <= number < len(COLLECTIVES):
            return COLLECTIVES[number]
        if isinstance(number, str) and number.lower() in COLLECTIVES:
            return number.lower()
        if kernel := words.IN_KERNEL.search(self.name):
            return words.collective(next(filter(None, kernel.groups())))
        call = _C10D.match(self.name)
        return words.collective(call[1]) if call else words.on_host(self.name)


@dataclass(frozen=True)
class Graph:
    """A file.

    Attributes:
        dialect: "chakra" (protobuf), "chakra JSON", or "PyTorch".
        version: of the schema.
        nodes: in the file's order.
        nested: whether `control` names the node in which one is, and no dependency.
        attributes: of the whole file.
        notes: what was odd.
    """

    dialect: str
    version: str
    nodes: tuple[Node, ...]
    nested: bool = False
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
