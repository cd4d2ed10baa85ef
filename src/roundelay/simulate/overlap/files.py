"""A step of training from a file: a model and how it is cut, or tasks one by one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from ...collectives import UnknownName
from ...errors import RoundelayError
from ...units import parse_size, parse_time
from .cards import CARDS, Card, card
from .models import Model, data_parallel, fsdp, tensor_parallel
from .tasks import COMM, COMPUTE, Exchange, Group, Step, Task

FILE_LIMIT: Final = 2**20
"""Bytes of a step file."""


class CardFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The card, by name or by figures; see `Card`."""

    name: str = "h100"
    tflops: float | None = None
    efficiency: float = Card.efficiency
    sms: int | None = None


class ModelFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The model; see `Model`."""

    layers: int
    hidden: int
    sequence: int
    batch: int = 1
    itemsize: int = 2


class GroupFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Who exchanges: groups of `group` ranks, `stride` apart; without it, all ranks."""

    group: int | None = None
    stride: int = 1


class DataParallelFile(GroupFile, forbid_unknown_fields=True, kw_only=True):
    """See `data_parallel`."""

    bucket: str = "25 MiB"


class FsdpFile(GroupFile, forbid_unknown_fields=True, kw_only=True):
    """See `fsdp`."""

    prefetch: int = 1
    reshard: bool = True


class TensorParallelFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """See `tensor_parallel`."""

    cards: int


class TaskFile(GroupFile, forbid_unknown_fields=True, kw_only=True):
    """A task that takes `seconds`, computes `flops`, or is a `collective` of `bytes`."""

    name: str
    stream: str | None = None
    seconds: str | None = None
    flops: float | None = None
    collective: str | None = None
    bytes: str | int | None = None
    after: list[str] = []


class StepFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A step: [model] with one of the next three, or [[task]]."""

    card: CardFile = msgspec.field(default_factory=CardFile)
    model: ModelFile | None = None
    data_parallel: DataParallelFile | None = None
    fsdp: FsdpFile | None = None
    tensor_parallel: TensorParallelFile | None = None
    task: list[TaskFile] = []


TABLES: Final[Mapping[str, type[msgspec.Struct]]] = MappingProxyType(
    {
        "card": CardFile,
        "model": ModelFile,
        "data_parallel": DataParallelFile,
        "fsdp": FsdpFile,
        "tensor_parallel": TensorParallelFile,
        "task": TaskFile,
    }
)
CUTS: Final = ("data_parallel", "fsdp", "tensor_parallel")


class Plan(NamedTuple):
    """What a file says: a step, and the card that does it."""

    step: Step
    card: Card


def read(data: bytes | str, name: str) -> Plan:
    """The step that a TOML file describes.

    Args:
        data: the file.
        name: of the file, for messages.

    Raises:
        RoundelayError: it is no such file; the message names the file, the field, what was found
            and what was expected.
    """
    try:
        if len(data) > FILE_LIMIT:
            raise RoundelayError(f"{len(data):,} bytes; a step file has at most {FILE_LIMIT:,}")
        tree = _parse(data)
        _known(tree)
        file = _convert(tree)
        found = _card(file.card)
        return Plan(_step(file, found), found)
    except RoundelayError as error:
        raise RoundelayError(f"{name}: {error}") from None


def _parse(data: bytes | str) -> dict[str, Any]:
    try:
        return tomllib.loads(data if isinstance(data, str) else data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RoundelayError(f"no TOML: {' '.join(str(error).split())}") from None


def _known(tree: dict[str, Any]) -> None:
    """Refuse tables and fields that there are not, with the nearest that there are."""
    for name in tree:
        if name not in TABLES:
            raise UnknownName("table of a step", name, TABLES)
    for name, kind in TABLES.items():
        known = [field.name for field in msgspec.structs.fields(kind)]
        tables = tree.get(name, {})
        for table in tables if isinstance(tables, list) else [tables]:
            for field in table if isinstance(table, dict) else ():
                if field not in known:
                    raise UnknownName(f"field of [{name}]", field, known)


def _convert(tree: dict[str, Any]) -> StepFile:
    try:
        return msgspec.convert(tree, StepFile)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        where = where.strip("`.")
        hint = ', in quotes with its unit, such as "12 ms"' if where.endswith(".seconds") else ""
        raise RoundelayError(f"{where + ': ' if where else ''}{what}{hint}") from None


def _card(file: CardFile) -> Card:
    if file.tflops is not None and file.sms is None:
        raise RoundelayError("card: tflops without sms, the multiprocessors of the card; give "
                             f"both, or a name: {', '.join(CARDS)}")  # fmt: skip
    named = replace(card(file.name), efficiency=file.efficiency)
    return replace(named, peak=named.peak if file.tflops is None else file.tflops * 1e12,
                   sms=named.sms if file.sms is None else file.sms)  # fmt: skip


def _step(file: StepFile, card: Card) -> Step:
    given = [name for name in (*CUTS, "task") if getattr(file, name)]
    if len(given) != 1:
        raise RoundelayError(f"{' and '.join(given) or 'nothing to do'}; expected one of "
                             f"[{'], ['.join(CUTS)}] with a [model], or [[task]]")  # fmt: skip
    if file.task:
        if file.model:
            raise RoundelayError(f"[model] beside [[task]]; it goes with {', '.join(CUTS)}")
        return Step([_task(task, card) for task in file.task])
    if file.model is None:
        raise RoundelayError(f"[{given[0]}] without [model]; it says layers, hidden, sequence")
    model = Model(**msgspec.structs.asdict(file.model))
    if file.data_parallel:
        cut = file.data_parallel
        return data_parallel(model, card, parse_size(cut.bucket), _group(cut))
    if file.fsdp:
        return fsdp(model, card, file.fsdp.prefetch, _group(file.fsdp), reshard=file.fsdp.reshard)
    assert file.tensor_parallel
    return tensor_parallel(model, card, file.tensor_parallel.cards)


def _group(file: GroupFile) -> Group | None:
    if file.group is None:
        if file.stride != 1:
            raise RoundelayError(f"stride = {file.stride} without group; it is from one rank of "
                                 "a group to the next")  # fmt: skip
        return None
    return Group(file.group, file.stride)


def _task(file: TaskFile, card: Card) -> Task:
    try:
        work = _work(file, card)
        stream = file.stream or (COMM if isinstance(work, Exchange) else COMPUTE)
        return Task(file.name, stream, work, tuple(file.after))
    except RoundelayError as error:
        raise RoundelayError(f"task {file.name!r}: {error}") from None


def _work(file: TaskFile, card: Card) -> float | Exchange:
    kinds = ("seconds", "flops", "collective")
    given = [name for name in kinds if getattr(file, name) is not None]
    if len(given) != 1:
        raise RoundelayError(f"has {' and '.join(given) or 'no work'}; expected one of "
                             f"{', '.join(kinds)}")  # fmt: skip
    if file.collective is None:
        only = [n for n in ("bytes", "group") if getattr(file, n) is not None]
        if only:
            raise RoundelayError(f"{only[0]} is for a collective; leave it out")
        return parse_time(file.seconds) if file.seconds else card.seconds(file.flops or 0.0)
    if file.bytes is None:
        raise RoundelayError(f'{file.collective} without bytes; expected such as bytes = "350 MB"')
    size = parse_size(file.bytes) if isinstance(file.bytes, str) else file.bytes
    return Exchange(file.collective, size, _group(file))
