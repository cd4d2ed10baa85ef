"""The text of a file from a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ..topology import Cluster
from ..units import parse_rate, parse_time
from .files import RATES, SIZES, TABLES, TIMES, ClusterFile


def write(cluster: Cluster) -> str:
    """The cluster as a TOML file, which `read` makes an equal one of."""
    lines = list(_table(cluster, ClusterFile, leave_out=(*TABLES, "sources")))
    for name, kind in TABLES.items():
        if name == "inside" or cluster.nics.count:
            lines += ["", f"[{name}]", *_table(getattr(cluster, name), kind)]
    if cluster.sources:
        lines += ["", "[sources]"]
        lines += [f"{field} = {_text(source)}" for field, source in cluster.sources.items()]
    return "\n".join(lines) + "\n"


def _table(part: Any, kind: type[msgspec.Struct], leave_out: Sequence[str] = ()) -> Iterator[str]:
    """A line for every field that a file needs, or that is not as it is by default."""
    defaults = {f.name: f.default for f in dataclasses.fields(part)}
    for field in msgspec.structs.fields(kind):
        value = getattr(part, field.name) if field.name not in leave_out else None
        if value is not None and (field.required or value != defaults[field.name]):
            yield f"{field.name} = {_value(field.name, value)}"


def _value(field: str, value: Any) -> str:
    if field in RATES:
        shown = f"{value / 1e9:.12g} GB/s oneway"
        exact = parse_rate(shown).oneway == value
        return _text(shown if exact else f"{value!r} B/s oneway")
    if field in SIZES:
        return _text(f"{value} B")
    if field in TIMES:
        shown = f"{value * 1e6:.12g} us"
        return _text(shown if parse_time(shown) == value else f"{value!r} s")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(repr, value))}]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _text(text: str) -> str:
    """A TOML string: as in JSON, but for DEL."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
