"""Calls in a trace: the fields by which torch describes them, on kernels and on the host."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Any, Final

import msgspec

from . import words
from .trace import Call

_RANKS: Final = re.compile(r"\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)\s*\]")


class Fields(msgspec.Struct, gc=False):
    """Of `args`; every type is accepted, and looked at when it is used."""

    external: Any = msgspec.field(default=None, name="External id")
    correlation: Any = None
    stream: Any = None
    collective: Any = msgspec.field(default=None, name="Collective name")
    elements_in: Any = msgspec.field(default=None, name="In msg nelems")
    elements_out: Any = msgspec.field(default=None, name="Out msg nelems")
    size: Any = msgspec.field(default=None, name="Group size")
    dtype: Any = None
    group: Any = msgspec.field(default=None, name="Process Group Name")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    seq: Any = msgspec.field(default=None, name="Seq")
    source: Any = msgspec.field(default=None, name="Src Rank")
    target: Any = msgspec.field(default=None, name="Dst Rank")
    dims: Any = msgspec.field(default=None, name="Input Dims")
    types: Any = msgspec.field(default=None, name="Input type")


def device_call(kernel: str, own: Fields, host: Fields | None, begin: int, end: int,
                stream: str) -> Call:  # fmt: skip
    """Of a kernel, by its own fields or those of the host's record that launched it."""
    fields = host if host is not None and not own.collective else own
    found = words.IN_KERNEL.search(kernel)
    name = fields.collective if isinstance(fields.collective, str) else ""
    name = name or (next(filter(None, found.groups())) if found else "")
    return _call(words.collective(name) if name else kernel[:80], fields, begin, end, stream)


def host_call(name: str, fields: Fields, begin: int, end: int, stream: str) -> Call:
    """Of an event of the host, whose name says the collective."""
    if isinstance(fields.collective, str) and fields.collective:
        name = words.collective(fields.collective)
    return _call(name, fields, begin, end, stream)


def _call(name: str, fields: Fields, begin: int, end: int, stream: str) -> Call:
    ranks = _ranks(fields.ranks) if isinstance(fields.ranks, str) else ()
    peer = fields.target if name == "send" else fields.source if name == "recv" else None
    return Call(
        name, fields.group if isinstance(fields.group, str) else "", ranks, _number(fields.seq),
        _bytes(name, fields), max(_number(fields.size), len(ranks)), begin, end, stream,
        _number(peer),
    )  # fmt: skip


def _bytes(name: str, fields: Fields) -> int:
    """Of the whole vector: what an all-gather gives, what a reduce-scatter takes."""
    each = words.type_size(fields.dtype) if isinstance(fields.dtype, str) else 0
    into, out = _number(fields.elements_in), _number(fields.elements_out)
    if each and max(into, out) >= 0:
        chosen = {"all_gather": out, "reduce_scatter": into}.get(name, -1)
        return each * (chosen if chosen >= 0 else max(into, out))
    return _of_inputs(fields)


def _of_inputs(fields: Fields) -> int:
    """What the host's record of shapes says."""
    if not isinstance(fields.dims, list) or not isinstance(fields.types, list):
        return -1
    total = 0
    for shape, kind in zip(fields.dims, fields.types, strict=False):
        each = words.type_size(kind) if isinstance(kind, str) else 0
        if each and isinstance(shape, list) and all(_number(n) >= 0 for n in shape):
            total += each * prod(shape)
    return total if 0 < total < 2**62 else -1


@lru_cache(maxsize=4096)
def _ranks(text: str) -> tuple[int, ...]:
    """Of a list such as "[0, 1, 2]"; nothing where it is abbreviated."""
    found = _RANKS.fullmatch(text.strip())
    return tuple(int(r) for r in found[1].split(",")) if found else ()


def _number(value: Any) -> int:
    """A count; -1 for what is none."""
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62
    return value if whole else -1
