"""Dumps of PyTorch's flight recorder: which collectives each rank has called, and how far they got.

Pickles and JSON of schema 2.0 to 2.10 are read; a key that is not there is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from ..errors import RoundelayError
from ..i18n import message
from .note import Note
from .pickled import read_pickle
from .plain import unpacked
from .saved import unsaved

ENTRIES: Final = 10**6
TENSORS: Final = 64
DIMENSIONS: Final = 16
"""Of a tensor; more are left out."""
_RANK: Final = re.compile(r"(\d+)(?:\.\w+)*$")
_NUMBER: Final = re.compile(r"\d+")


class Call(NamedTuple):
    """A call of one rank.

    Attributes:
        group: the process group's name.
        sequence: of collectives in the group, from 1; of messages where `between` is set.
        operation: such as "all_reduce"; of messages with both ranks, "send 0->1".
        inputs, outputs: shapes of tensors.
        dtype: of the first input.
        state: "scheduled", "started" or "completed", as recorded.
        retired: whether it is done with.
        between: whether it is a message between two ranks.
        record: number of the entry.
        where: the first line of the program that is known, or "".
        result: data type of the first output.
    """

    group: str
    sequence: int
    operation: str
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    dtype: str
    state: str
    retired: bool
    between: bool
    record: int
    where: str
    result: str = ""

    @property
    def done(self) -> bool:
        """Whether it has ended; Gloo's calls stay "scheduled", and are retired in the end."""
        return self.retired or self.state == "completed"


@dataclass(frozen=True)
class Dump:
    """What one rank has recorded.

    Attributes:
        file: its name.
        rank: None if neither the file nor its name tells.
        version: of the schema.
        groups: ranks of each process group, by name; empty where the dump does not list them.
        names: what groups are called.
        completed, enqueued: the last collective of each group, where that is told.
        calls: in the order of the record.
        notes: what was odd.
    """

    file: str
    rank: int | None
    version: str
    groups: Mapping[str, tuple[int, ...]]
    names: Mapping[str, str]
    completed: Mapping[str, int]
    enqueued: Mapping[str, int]
    calls: tuple[Call, ...]
    notes: tuple[Note, ...]


def read_flight(data: bytes, name: str = "-") -> tuple[Dump, ...]:
    """The dumps in a file: one, a list of them, or one by rank.

    Args:
        data: a pickle, JSON, or what torch.save has written; gzip is unpacked.
        name: of the file; a number at its end is the rank where the dump does not tell.

    Raises:
        RoundelayError: it is no dump; a pickle that asks for any class is not run.
    """
    data = unsaved(unpacked(data))
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RoundelayError(f"no sound JSON: {error}; is the file whole?") from None
    else:
        value = read_pickle(data)
    if isinstance(value, dict) and value and "entries" not in value:
        value = _by_rank(value)
    dumps = value if isinstance(value, list) else [value]
    if not dumps or not all(isinstance(d, dict) and "entries" in d for d in dumps):
        raise RoundelayError(
            "no dump of the flight recorder: expected an object with version, pg_config and entries"
        )
    numbered = _RANK.search(name) if len(dumps) == 1 else None
    rank = int(numbered[1]) if numbered and len(numbered[1]) < 8 else None
    return tuple(_dump(dump, name, rank) for dump in dumps)


def _by_rank(value: Mapping[Any, Any]) -> Any:
    """A dump for each rank, where that is what it is."""
    ranks = [int(key) if isinstance(key, str) and key.isdecimal() and len(key) < 8 else key
             for key in value]  # fmt: skip
    if all(map(_is_count, ranks)) and all(isinstance(dump, dict) for dump in value.values()):
        return [{**dump, "rank": rank}
                for rank, dump in zip(ranks, value.values(), strict=True)]  # fmt: skip
    return value


def _dump(value: Mapping[str, Any], file: str, rank: int | None) -> Dump:
    notes: list[Note] = []
    groups, names = _groups(_table(value, "pg_config"))
    status = {name: dict(_items(at)) for name, at in _items(_table(value, "pg_status"))}
    calls = tuple(_calls(value.get("entries"), notes))
    own = value.get("rank")
    known = [
        "version", "comm_lib_version", "nccl_version", "pg_config", "pg_status", "entries", "rank",
        "nccl_comm_state",
    ]  # fmt: skip
    notes += [
        Note(0, message("not understood, and left out: {name}", name=str(name)[:80]))
        for name in list(value)[:100] if name not in known
    ]  # fmt: skip
    used = {call.group for call in calls if not call.between}
    if "" in groups and "" not in used and len(used) == 1 and not used & set(groups):
        only = next(iter(used))  # Gloo's dump calls the group "" here, and "0" in its entries
        groups[only] = groups.pop("")
    numbers = _numbers(value.get("entries"))
    known_as = {name: numbers.get(name, name if name in groups and not numbers else "")
                for name in status}  # fmt: skip
    return Dump(
        file, own if _is_count(own) else rank, str(value.get("version", ""))[:40], groups, names,
        _last(status, "last_completed_collective", known_as),
        _last(status, "last_enqueued_collective", known_as), calls, tuple(notes),
    )  # fmt: skip


def _table(value: Mapping[str, Any], name: str) -> Any:
    return value.get(name)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name in list(value)[:10000]:
            yield str(name)[:200], value[name]


def _groups(config: Any) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    ranks: dict[str, tuple[int, ...]] = {}
    names: dict[str, str] = {}
    for name, about in _items(config):
        fields = dict(_items(about))
        listed = fields.get("ranks", ())
        if isinstance(listed, str):
            ranks[name] = _ranks(listed[: 10**6])
        elif isinstance(listed, list | tuple):
            ranks[name] = tuple(n for n in listed[:ENTRIES] if _is_count(n))
        names[name] = str(fields.get("desc", ""))[:200]
    return ranks, names


@lru_cache(64)
def _ranks(text: str) -> tuple[int, ...]:
    """The ranks of a group as text: the dumps of a job hold the same one again and again."""
    return tuple(int(n) for n in _NUMBER.findall(text) if len(n) < 8)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**40


def _numbers(entries: Any) -> dict[str, str]:
    """Names of groups by the numbers that this rank has given them, as its entries tell."""
    found: dict[str, str] = {}
    for entry in entries[-ENTRIES:] if isinstance(entries, list | tuple) else ():
        if isinstance(entry, dict) and _is_count(entry.get("pg_id")):
            found.setdefault(str(entry["pg_id"]), _group(entry))
    return found


def _group(entry: Mapping[str, Any]) -> str:
    group = entry.get("process_group", entry.get("pg_name", entry.get("pg_id", "")))
    if isinstance(group, list | tuple):
        group = group[0] if group else ""
    return str(group)[:200]


def _last(
    status: Mapping[str, dict[str, Any]], field: str, known_as: Mapping[str, str]
) -> dict[str, int]:
    """The last collective by group. The table counts groups by number, entries have names."""
    found = {}
    for number, about in status.items():
        text = str(about.get(field, ""))[:20]
        if text.isdecimal() and known_as[number]:
            found[known_as[number]] = int(text)
    return found


def _calls(entries: Any, notes: list[Note]) -> Iterator[Call]:
    if not isinstance(entries, list | tuple):
        notes.append(Note(0, message("the dump has no list of entries")))
        return
    if len(entries) > ENTRIES:
        what = message(
            "{count:entry|entries}; the last {kept} are read", count=len(entries), kept=ENTRIES
        )
        notes.append(Note(0, what))
    for number, entry in enumerate(entries[-ENTRIES:]):
        if isinstance(entry, dict):
            yield _call(entry, number)
        else:
            notes.append(Note(0, message("entry {number} is no object", number=number)))


def _call(entry: Mapping[str, Any], number: int) -> Call:
    between = bool(entry.get("is_p2p"))
    sequence = entry.get("p2p_seq_id" if between else "collective_seq_id", entry.get("seq_id"))
    types, results = entry.get("input_dtypes") or (), entry.get("output_dtypes") or ()
    frames = entry.get("frames") or ()
    return Call(
        _group(entry), sequence if _is_count(sequence) else 0,
        str(entry.get("profiling_name", "")).partition(":")[2][:80]
        or str(entry.get("profiling_name", ""))[:80],
        _shapes(entry.get("input_sizes")), _shapes(entry.get("output_sizes")),
        _first(types),
        str(entry.get("state", ""))[:40], bool(entry.get("retired")), between,
        entry["record_id"] if _is_count(entry.get("record_id")) else number, _where(frames),
        _first(results),
    )  # fmt: skip


def _first(types: Any) -> str:
    return str(types[0])[:40] if isinstance(types, list | tuple) and types else ""


def _shapes(value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(
        tuple(n for n in shape[:DIMENSIONS] if _is_count(n))
        for shape in value[:TENSORS] if isinstance(shape, list | tuple)
    )  # fmt: skip


def _where(frames: Any) -> str:
    """The innermost line of the program that is not torch's own."""
    found: Sequence[Any] = frames if isinstance(frames, list | tuple) else ()
    for frame in found[:64]:
        if isinstance(frame, dict):
            file = str(frame.get("filename", ""))[:400]
            if file and "/torch/" not in file:
                return f"{file}:{frame.get('line', '')}"[:440]
    return ""
