"""A cluster from the text of a file."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Final

import msgspec

from ..collectives import UnknownName
from ..errors import RoundelayError
from ..topology import Cluster, Fabric, Inside, Nics
from ..units import Rate, UnitError, format_rate, parse_rate, parse_size, parse_time
from .files import RATES, SIZES, TABLES, TIMES, ClusterFile, fields, sourced

FILE_LIMIT: Final = 2**20
"""Bytes of a cluster file."""
_BINARY: Final = re.compile(r"([KMGT])i(B ?/ ?s|Bps)", re.I)


def read(data: bytes | str, name: str) -> Cluster:
    """The cluster that a file describes.

    Args:
        data: the file: TOML, or YAML where the name ends in .yaml or .yml.
        name: of the file, for messages; the cluster is called after it where it has no name.

    Raises:
        RoundelayError: it is no such file, or describes no possible cluster; the message names
            the file, the field, what was found and what was expected.
    """
    try:
        tree = _parse(data, name)
        _known(tree)
        file = _convert(tree)
        return _build(file, PurePath(name).stem)
    except RoundelayError as error:
        raise RoundelayError(f"{name}: {error}") from None


def _parse(data: bytes | str, name: str) -> dict[str, Any]:
    if len(data) > FILE_LIMIT:
        raise RoundelayError(f"{len(data):,} bytes; a cluster file has at most {FILE_LIMIT:,}")
    kind = "YAML" if name.endswith((".yaml", ".yml")) else "TOML"
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        tree = _yaml(text) if kind == "YAML" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, RoundelayError):
            raise
        raise RoundelayError(f"no {kind}: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise RoundelayError("no table of fields; expected generation, cards, [inside] and so on")
    return tree


def _yaml(text: str) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise RoundelayError(
            "reading YAML needs PyYAML: pip install 'roundelay[yaml]', or write the file in TOML"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(error) from None


def _known(tree: dict[str, Any]) -> None:
    """Refuse fields that there are not, with the nearest that there are."""
    tables: dict[str, type[msgspec.Struct]] = {"": ClusterFile, **TABLES}
    for name, kind in tables.items():
        table = tree.get(name) if name else tree
        for field in table if isinstance(table, dict) else ():
            if field not in fields(kind):
                where = f"[{name}]" if name else "the cluster"
                raise UnknownName(f"field of {where}", str(field), fields(kind))


def _convert(tree: dict[str, Any]) -> ClusterFile:
    try:
        return msgspec.convert(tree, ClusterFile)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        where = where.strip("`.")
        hint = ""
        if where.rpartition(".")[2] in RATES | SIZES | TIMES and what.startswith("Expected"):
            hint = ', in quotes with its unit, such as "900 GB/s duplex" or "2.8 us"'
        raise RoundelayError(f"{where + ': ' if where else ''}{what}{hint}") from None
    except RecursionError:
        raise RoundelayError("tables within tables without end") from None


def _build(file: ClusterFile, stem: str) -> Cluster:
    inside = Inside(**_values(file.inside, "inside."))
    nics = Nics(**_values(file.nics, "nics.")) if file.nics else Nics(0)
    if file.fabric:
        fabric = Fabric(**_values(file.fabric, "fabric."))
    else:
        fabric = Fabric("switch" if file.nics else "none")
    own = _values(file, "")
    name = file.name or stem
    own |= {"name": name, "title": file.title or name, "sources": _sources(file.sources)}
    return Cluster(**own | {"inside": inside, "nics": nics, "fabric": fabric})


def _values(table: msgspec.Struct, where: str) -> dict[str, Any]:
    """The fields of a table, with rates, sizes and times as numbers."""
    values = msgspec.structs.asdict(table)
    for field, value in values.items():
        if isinstance(value, str) and field in RATES:
            values[field] = _rate(where + field, value)
        elif isinstance(value, str) and field in TIMES:
            values[field] = _number(where + field, value, parse_time)
        elif isinstance(value, str) and field in SIZES:
            values[field] = _number(where + field, value, parse_size)
        elif isinstance(value, list):
            values[field] = tuple(value)
        elif field == "oversubscription":
            values[field] = (value,)
    return values


def _rate(field: str, text: str) -> float:
    """Bytes a second one way."""
    try:
        rate = parse_rate(text)
    except UnitError as error:
        raise RoundelayError(f"{field}: {error}") from None
    if _BINARY.search(text):
        meant = _BINARY.sub(r"\1\2", text)
        raise RoundelayError(
            f"{field}: {text!r} counts in powers of 1024; rates of links are in powers of 1000: "
            f"write {meant!r} if that was meant, or else {format_rate(rate)!r}"
        )
    if rate.direction is None:
        both, one = (format_rate(Rate(rate.bytes_per_second, d)) for d in ("duplex", "oneway"))
        raise RoundelayError(
            f"{field}: {text!r} has no direction; write {both!r} if it counts both directions "
            f"together, as data sheets of NVLink do, or {one!r}"
        )
    return rate.oneway


def _number(field: str, text: str, parse: Callable[[str], float]) -> float:
    try:
        return parse(text)
    except UnitError as error:
        raise RoundelayError(f"{field}: {error}") from None


def _sources(found: dict[str, str | dict[str, str]]) -> dict[str, str]:
    """Sources by field; a table's are written as inside.rate."""
    flat: dict[str, str] = {}
    for key, value in found.items():
        inner = (
            {key: value} if isinstance(value, str) else {f"{key}.{k}": v for k, v in value.items()}
        )
        flat |= inner
    for field in flat:
        if field not in sourced():
            raise UnknownName("field of [sources]", field, sourced())
    return flat
