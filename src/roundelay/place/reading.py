"""A job from a few numbers, or from a TOML or JSON file.

name = "dense"
ranks = 64           # to check
tensor = 8
pipeline = 4
data = 2
order = "tensor-data-pipeline"

[model]
layers = 32
hidden = 8192
sequence = 4096

[volumes]            # bytes a step instead of what the model gives
data = "2 GiB"

[[exchange]]         # or groups one by one
name = "ring"
pattern = "all_reduce"
groups = [[0, 1], [2, 3]]
size = "1 GiB"
"""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePath
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np

from ..collectives import UnknownName
from ..errors import RoundelayError
from ..files import read_file
from ..units import parse_size
from .job import ORDER, Exchange, Job, Model, Pattern, layout_of, parallel

FILE_LIMIT: Final = 2**24
"""Bytes of a job file."""
DEGREES: Final = ("tensor", "pipeline", "data", "expert")
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
"""A number that arithmetic takes."""
VOLUME: Final = "_bytes"
"""Ending of a volume in a job of a few numbers, such as data_bytes=2GiB."""


class ModelFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The model; see `Model`."""

    layers: Count
    hidden: Count
    sequence: Count
    parameters: Count = 0
    batch: Count = 1
    micro_batches: Count = 1
    element: Count = 2
    top_k: Count = 1
    sharded: bool = False


class ExchangeFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Groups one by one; see `Exchange`."""

    name: str
    pattern: Pattern
    groups: list[list[Count]]
    size: str | int
    calls: Count = 1


class JobFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A job; see `parallel`."""

    name: str = ""
    ranks: Count | None = None
    tensor: Count = 1
    pipeline: Count = 1
    data: Count = 1
    expert: Count = 1
    order: str = "-".join(ORDER)
    sliced: bool = False
    model: ModelFile | None = None
    volumes: dict[str, str | int] = {}
    exchange: list[ExchangeFile] = []


def read_job(text: str) -> Job:
    """The job of a file, or of a few numbers: "tensor=8,data=4,data_bytes=2GiB".

    Raises:
        RoundelayError: it is none; the message says what and where.
    """
    if text.endswith((".toml", ".json")):
        return _from_file(Path(text))
    return _build(_converted(_few(text)), "the job")


def _from_file(path: Path) -> Job:
    try:
        data = read_file(path, FILE_LIMIT)
    except OSError as error:
        raise RoundelayError(
            f"{path} cannot be read: {error}; expected a job file, or a few "
            "numbers such as tensor=8,data=4,data_bytes=2GiB"
        ) from None
    return job_of(data, str(path), path.suffix == ".json")


def job_of(data: bytes, name: str, as_json: bool) -> Job:
    """The job that a file describes.

    Args:
        data: the file.
        name: of the file, for messages; the job is called after it where it has no name.
        as_json: whether it is JSON, and not TOML.

    Raises:
        RoundelayError: it is none; the message says what and where.
    """
    try:
        tree = msgspec.json.decode(data) if as_json else tomllib.loads(data.decode())
        return _build(_converted(tree), PurePath(name).stem)
    except RoundelayError as error:
        raise RoundelayError(f"{name}: {error}") from None
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        what = "JSON" if as_json else "TOML"
        raise RoundelayError(f"{name}: no {what}: {error}") from None


def _few(text: str) -> dict[str, Any]:
    """A job file's tree from key=value,key=value."""
    tree: dict[str, Any] = {}
    model: dict[str, Any] = {}
    volumes: dict[str, Any] = {}
    seen: set[str] = set()
    top, inner = (msgspec.structs.fields(kind) for kind in (JobFile, ModelFile))
    names = {f.name for f in top} - {"model", "volumes", "exchange"}
    figures = {f.name for f in inner}
    for pair in filter(None, text.split(",")):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not value:
            raise RoundelayError(f"{pair!r:.80}; expected key=value,key=value, such as tensor=8,"
                                 "data=4,data_bytes=2GiB, a .toml or .json file, or a trace"
                                 )  # fmt: skip
        if key in seen:
            raise RoundelayError(f"{key} stands there twice; expected it once")
        seen.add(key)
        if key.endswith(VOLUME):
            volumes[key.removesuffix(VOLUME)] = value
        elif key in names:
            tree[key] = _value(value)
        elif key in figures:
            model[key] = _value(value)
        else:
            known = [*sorted(names), *sorted(figures), *(d + VOLUME for d in DEGREES)]
            raise UnknownName("figure of a job", key, known)
    return tree | ({"model": model} if model else {}) | {"volumes": volumes}


def _value(text: str) -> int | bool | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else text


def _converted(tree: Any) -> JobFile:
    try:
        file = msgspec.convert(tree, JobFile)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        where = where.strip("`.")
        raise RoundelayError(f"{where + ': ' if where else ''}{what}") from None
    for key in file.volumes:
        if key in DEGREES and key not in tree:
            raise RoundelayError(f"a volume of {key}, whose degree isn't said; expected also "
                                 f"{key}=N, the number of ranks in a group of it")  # fmt: skip
    return file


def _build(file: JobFile, stem: str) -> Job:
    name = file.name or stem
    degrees = {key: getattr(file, key) for key in DEGREES}
    if file.exchange:
        return _explicit(file, name, degrees)
    if file.model is None and not file.volumes:
        raise RoundelayError(
            f"{name}: nothing says what it exchanges; add a model (layers, hidden, sequence) or "
            "volumes, such as data_bytes=2GiB, or [[exchange]] in a file"
        )
    model = Model(**msgspec.structs.asdict(file.model)) if file.model else None
    if model and min(model.layers, model.hidden, model.sequence, model.batch,
                     model.micro_batches, model.element, model.top_k) < 1:  # fmt: skip
        raise RoundelayError(f"{name}: {model}; expected 1 or more of each figure")
    volumes = {key: float(_size(key, value)) for key, value in file.volumes.items()}
    order = tuple(file.order.split("-"))
    return parallel(name, degrees, model, volumes, order, file.ranks, file.sliced)


def _explicit(file: JobFile, name: str, degrees: dict[str, int]) -> Job:
    if file.model or file.volumes or any(d != 1 for d in degrees.values()):
        raise RoundelayError(f"{name}: [[exchange]] names its groups one by one; leave out "
                             "degrees, [model] and [volumes]")  # fmt: skip
    found = []
    for e in file.exchange:
        if len({len(group) for group in e.groups}) != 1 or not e.groups[0]:
            raise RoundelayError(f"exchange {e.name}: groups of {sorted({*map(len, e.groups)})} "
                                 "ranks; expected groups of one size")  # fmt: skip
        groups = np.array(e.groups, np.int64)
        found.append(Exchange(e.name, e.pattern, groups, float(_size(e.name, e.size)), e.calls))
    ranks = file.ranks or 1 + max(int(e.groups.max()) for e in found)
    return Job(name, ranks, tuple(found), layout_of(found, ranks), file.sliced)


def write_job(job: Job) -> str:
    """A job file in TOML, group by group, which `read_job` takes."""
    notes = [f"# {' '.join(str(note).split())}" for note in job.notes]
    head = [f"name = {_quoted(job.name)}", f"ranks = {job.ranks}"]
    if job.sliced:
        head.append("sliced = true")
    lines = [*(note for note in notes if note.isprintable()), *head]
    for e in job.exchanges:
        groups = ",\n  ".join(map(str, e.groups.tolist()))
        lines += ["", "[[exchange]]", f"name = {_quoted(e.name)}", f'pattern = "{e.pattern}"',
                  f"groups = [\n  {groups},\n]", f"size = {round(e.size)}",
                  f"calls = {e.calls}"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _size(where: str, text: str | int) -> int:
    try:
        return parse_size(str(text))
    except RoundelayError as error:
        raise RoundelayError(f"{where}: {error}") from None
