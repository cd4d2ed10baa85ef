"""Read execution traces: protobuf or JSON, plain or gzip."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ...errors import RoundelayError
from ...i18n import message
from ..note import Note
from ..plain import unpacked
from .graph import Attribute, Graph, Node, NodeKind
from .wire import TYPES, fields, number_of, numbers, varint

SHOWN: Final = 20
"""Nodes that could not be read, which are listed one by one."""
_NAMES: Final = {
    "INVALID_NODE": 0, "METADATA_NODE": 1, "MEM_LOAD_NODE": 2, "MEM_STORE_NODE": 3, "COMP_NODE": 4,
    "COMM_SEND_NODE": 5, "COMM_RECV_NODE": 6, "COMM_COLL_NODE": 7,
}  # fmt: skip
_KEYS: Final = {
    "id": "id", "name": "name", "nodetype": "kind", "type": "kind", "ctrldeps": "control",
    "controldeps": "control", "datadeps": "data", "runtime": "duration_us",
    "duration": "duration_us", "durationmicros": "duration_us", "starttimemicros": "begin_us",
    "durationus": "duration_us", "startus": "begin_us",
}  # fmt: skip
"""Of JSON, without case and underscores."""
_REPLACED: Final = re.compile(r"\bvoId\b|StrIde|\bgrId\b")
_COMMUNICATES: Final = re.compile(
    r"(?:nccl|gloo|mpi|ucc|xccl):|c10d::|record_param_comms$|ncclKernel|ncclDevKernel"
)
_SIGNED: Final = ("int32", "int64")


def read_chakra(data: bytes) -> Graph:
    """An execution trace.

    Args:
        data: Chakra's protobuf (.et) or JSON, or JSON of PyTorch's observer; gzip is unpacked.

    Raises:
        RoundelayError: it is none.
    """
    data = unpacked(data)
    if data.lstrip()[:1] != b"{":
        return _of_protobuf(data)
    try:
        value = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"no sound JSON: {error}; is the file whole?") from None
    if isinstance(value.get("workload_graph"), list):
        return _of_json(value)
    if isinstance(value.get("nodes"), list) and "schema" in value:
        return _of_observer(value)
    raise RoundelayError(
        "no execution trace; expected Chakra's protobuf, JSON with workload_graph, or JSON of "
        "PyTorch's observer with schema and nodes"
    )


# Protobuf.


def _of_protobuf(data: bytes) -> Graph:
    messages, notes = _messages(data)
    try:
        version, attributes = "", dict[str, Attribute]()
        for number, value in fields(next(messages, b"")):
            if number == 1 and isinstance(value, bytes):
                version = value.decode("utf-8", "replace")[:80]
            elif number == 2 and isinstance(value, bytes):
                attributes |= dict([_attribute(value)])
        nodes = tuple(map(_node, messages))
    except RoundelayError as error:
        raise RoundelayError(f"no execution trace of Chakra: {error}") from None
    if not nodes and not version:
        raise RoundelayError("no execution trace of Chakra: it has no version and no node")
    return Graph("chakra", version, nodes, False, attributes, tuple(notes))


def _messages(data: bytes) -> tuple[Iterator[bytes], list[Note]]:
    """Messages with their lengths before them; the last one may be cut off."""
    notes: list[Note] = []

    def messages() -> Iterator[bytes]:
        at, seen = 0, 0
        while at < len(data):
            size, at = varint(data, at)
            if size > len(data) - at:
                if seen < 2:
                    raise RoundelayError(
                        f"a message of {size:,} bytes, and {len(data) - at:,} are left"
                    )
                notes.append(Note(0, message("the file is cut off: node {number} is not whole",
                                             number=seen)))  # fmt: skip
                return
            yield data[at : at + size]
            at, seen = at + size, seen + 1

    return messages(), notes


def _node(data: bytes) -> Node:
    found: dict[str, Any] = {"id": 0, "name": "", "kind": NodeKind.INVALID}
    control: list[int] = []
    depends: list[int] = []
    attributes: dict[str, Attribute] = {}
    for number, value in fields(data):
        if number in (4, 5):
            into = control if number == 4 else depends
            into += numbers(value, "", False) if isinstance(value, bytes) else [value]
        elif number in (8, 9) and isinstance(value, bytes):
            found["inputs" if number == 8 else "outputs"] = _texts(value)
        elif number == 10 and isinstance(value, bytes):
            attributes |= dict([_attribute(value)])
        elif number == 2 and isinstance(value, bytes):
            found["name"] = value.decode("utf-8", "replace")
        elif number in (1, 6, 7) and isinstance(value, int):
            found[{1: "id", 6: "begin_us", 7: "duration_us"}[number]] = value
        elif number == 3 and isinstance(value, int):
            found["kind"] = _kind(value)
    return Node(**found, control=tuple(control), data=tuple(depends), attributes=attributes)


def _texts(data: bytes) -> tuple[str, str, str]:
    by = {n: v.decode("utf-8", "replace") for n, v in fields(data) if isinstance(v, bytes)}
    return by.get(1, ""), by.get(2, ""), by.get(3, "")


def _attribute(data: bytes) -> tuple[str, Attribute]:
    name, found = "", Attribute("", None)
    for number, value in fields(data):
        if number == 1 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")
        elif 3 <= number < 3 + 2 * len(TYPES):
            type_, how = TYPES[(number - 3) // 2]
            signed = type_ in _SIGNED
            if number % 2:
                single = number_of(value, how, signed)
                found = Attribute(type_, bool(single) if type_ == "bool" else single)
            elif isinstance(value, bytes):
                found = Attribute(f"{type_}_list", _list(value, type_, how, signed))
    return name, found


def _list(data: bytes, type_: str, how: str, signed: bool) -> tuple[Any, ...]:
    values: list[Any] = []
    for number, value in fields(data):
        if number == 1:
            whole = isinstance(value, int) or how in ("text", "raw")
            values += [number_of(value, how, signed)] if whole else numbers(value, how, signed)  # type: ignore[arg-type]
    return tuple(map(bool, values) if type_ == "bool" else values)


def _kind(value: object) -> NodeKind:
    number = _NAMES.get(value, -1) if isinstance(value, str) else value
    if isinstance(number, int) and 0 <= number < len(NodeKind):
        return NodeKind(number)
    return NodeKind.INVALID


# JSON.


def _of_json(value: Mapping[str, Any]) -> Graph:
    notes: list[Note] = []
    nodes, spellings = [], dict[str, None]()
    for at, entry in enumerate(value["workload_graph"]):
        node = _json_node(entry, spellings) if isinstance(entry, dict) else None
        if node is None:
            _odd(notes, at)
        else:
            nodes.append(node)
    styles = {"_" in key for key in spellings if key.lower() != key or "_" in key}
    if len(styles) > 1:
        notes.append(Note(0, message("names of fields are spelt in more than one way: {names}",
                                     names=", ".join(spellings))))  # fmt: skip
    if any(_REPLACED.search(node.name) for node in nodes):
        notes.append(Note(0, message("in names of operations id has been replaced by Id, as in "
                                     "voId; they are not what ran")))  # fmt: skip
    about = {name: Attribute("", v) for name, v in value.items() if name != "workload_graph"}
    return Graph("chakra JSON", str(value.get("version", "")), tuple(nodes), False, about,
                 tuple(notes))  # fmt: skip


def _json_node(entry: Mapping[str, Any], spellings: dict[str, None]) -> Node | None:
    found: dict[str, Any] = {"name": "", "kind": NodeKind.INVALID}
    attributes: dict[str, Attribute] = {}
    for key, value in entry.items():
        name = _KEYS.get(key.replace("_", "").lower())
        if name is None:
            attributes |= _attached(key, value)
            continue
        spellings[key] = None
        if name == "kind":
            found[name] = _kind(value)
        elif name in ("control", "data"):
            ids = [_whole(v) for v in value] if isinstance(value, list) else [None]
            found[name] = tuple(i for i in ids if i is not None)
        else:
            found[name] = str(value) if name == "name" else _whole(value)
    if any(found.get(name, 0) is None for name in ("id", "begin_us", "duration_us")) or (
        "id" not in found
    ):
        return None
    return Node(**found, attributes=attributes)


def _attached(key: str, value: Any) -> dict[str, Attribute]:
    """Attributes of a node: each by its name, or all together, also as protobuf's JSON lists them.

    There one is {"name": "comm_size", "int64Val": "1048576"}.
    """
    if key not in ("attr", "attrs", "attributes"):
        return {key: Attribute("", value)}
    if isinstance(value, dict):
        return {str(name): Attribute("", inner) for name, inner in value.items()}
    found: dict[str, Attribute] = {}
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict) and (
            held := [k for k in one if k.lower().endswith(("val", "value"))]
        ):
            inner, type_ = one[held[0]], held[0].removesuffix("Val").removesuffix("_val")
            whole = _whole(inner) if "int" in type_.lower() else None
            found[str(one.get("name"))] = Attribute(type_, inner if whole is None else whole)
    return found


def _whole(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and 0 <= value < 2**53:
        value = round(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64
    return value if fits else None  # type: ignore[return-value]


def _of_observer(value: Mapping[str, Any]) -> Graph:
    """PyTorch's: a node has a parent, in which it is, and arguments."""
    notes: list[Note] = []
    nodes = []
    for at, entry in enumerate(value["nodes"]):
        number = _whole(entry.get("id")) if isinstance(entry, dict) else None
        if number is None:
            _odd(notes, at)
            continue
        listed = entry.get("attrs")
        attributes = {
            str(a.get("name")): Attribute(str(a.get("type", "")), a.get("value"))
            for a in listed if isinstance(a, dict)
        } if isinstance(listed, list) else {
            k: Attribute("", v) for k, v in entry.items() if k not in ("id", "name", "parent")
        }  # fmt: skip
        if "inputs" in entry:
            attributes.setdefault("inputs", Attribute("", entry["inputs"]))
        parent = _whole(entry.get("parent", entry.get("ctrl_deps")))
        name = str(entry.get("name", ""))
        schema = attributes.get("op_schema", attributes.get("kernel_backend"))
        nodes.append(Node(number, name, _kind_of(name, bool(schema and schema.value)),
                          () if parent is None or parent == number else (parent,),
                          attributes=attributes))  # fmt: skip
    about = {name: Attribute("", v) for name, v in value.items() if name not in ("schema", "nodes")}
    return Graph("PyTorch", str(value["schema"])[:80], tuple(nodes), True, about, tuple(notes))


def _kind_of(name: str, operation: bool) -> NodeKind:
    if _COMMUNICATES.match(name):
        between = {"send": NodeKind.SEND, "recv": NodeKind.RECEIVE}
        return between.get(name.rpartition(":")[2].partition(" ")[0], NodeKind.COLLECTIVE)
    return NodeKind.COMPUTE if operation or name.startswith("triton") else NodeKind.METADATA


def _odd(notes: list[Note], at: int) -> None:
    if len(notes) < SHOWN:
        notes.append(Note(0, message("node {number} has no sound id or time; left out", number=at)))
