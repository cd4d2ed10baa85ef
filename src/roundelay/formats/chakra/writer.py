"""Write execution traces as Chakra's protobuf, which ASTRA-sim and Chakra's tools take."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final

from ...errors import RoundelayError
from .graph import Attribute, Graph, Node
from .wire import BYTES, FIXED32, FIXED64, TYPES, packed, put, put_value, put_varint

_PLACE: Final = {name: (3 + 2 * i, how) for i, (name, how) in enumerate(TYPES)}
_ONE_BY_ONE: Final = ("string", "bytes")


def write_chakra(graph: Graph) -> bytes:
    """The graph: its metadata, then its nodes in order, each with its length before it.

    Raises:
        RoundelayError: an attribute is of a type, or has a value, that cannot be written; or the
            nodes' order is by nesting, so that there are no dependencies to write.
    """
    if graph.nested:
        raise RoundelayError(
            "PyTorch's observer says which operation is inside which, and not what waits for "
            "what; link it with a profiler's trace first (chakra_trace_link, chakra_converter)"
        )
    about = put(1, graph.version.encode()) + _attributes(2, graph.attributes.items())
    messages = [about, *map(_node, graph.nodes)]
    return b"".join(put_varint(len(message)) + message for message in messages)


def _node(node: Node) -> bytes:
    parts = [put(1, node.id), put(2, node.name.encode()), put(3, int(node.kind))]
    for number, ids in ((4, node.control), (5, node.data)):
        if ids:
            parts.append(put(number, packed("", ids)))
    for number, time in ((6, node.begin_us), (7, node.duration_us)):
        if time:
            parts.append(put(number, time))
    for number, texts in ((8, node.inputs), (9, node.outputs)):
        if any(texts):
            inner = (put(i, text.encode()) for i, text in enumerate(texts, 1) if text)
            parts.append(put(number, b"".join(inner)))
    parts.append(_attributes(10, node.attributes.items()))
    return b"".join(parts)


def _attributes(number: int, items: Iterable[tuple[str, Attribute]]) -> bytes:
    return b"".join(put(number, put(1, name.encode()) + _value(name, *at)) for name, at in items)


def _value(name: str, type_: str, value: Any) -> bytes:
    type_ = type_ or _type_of(name, value)
    plain = type_.removesuffix("_list")
    if plain not in _PLACE:
        raise RoundelayError(f"attribute {name} is of type {type_!r}; expected one of Chakra's")
    place, how = _PLACE[plain]
    try:
        if plain == type_:
            return _put(place, how, value)
        if plain in _ONE_BY_ONE:
            inner = b"".join(put(1, put_value(how, each)) for each in value)
        else:
            inner = put(1, packed(how, value))
    except (TypeError, ValueError, struct.error) as error:
        raise RoundelayError(f"attribute {name} = {value!r:.60}: no {type_}: {error}") from None
    return put(place + 1, inner)


def _put(place: int, how: str, value: Any) -> bytes:
    made = put_value(how, value)
    kind = {4: FIXED32, 8: FIXED64}[struct.calcsize(how)] if how.startswith("<") else BYTES
    return put(place, made, kind)


def _type_of(name: str, value: Any) -> str:
    """For a value that was read from JSON."""
    if isinstance(value, list | tuple) and value:
        kinds = {_type_of(name, each) for each in value}
        if len(kinds) == 1 and not any(kind.endswith("_list") for kind in kinds):
            return f"{kinds.pop()}_list"
    for kind, type_ in ((bool, "bool"), (int, "int64"), (float, "double"), (str, "string"),
                        (bytes, "bytes")):  # fmt: skip
        if isinstance(value, kind):
            return type_
    raise RoundelayError(f"attribute {name} = {value!r:.60}; expected a number, a text, or a list")
