"""From a trace's events to columns, keeping only what is asked for."""

from __future__ import annotations

import re
from array import array
from typing import Any, BinaryIO, Final

import msgspec
import numpy as np

from ...i18n import message
from ..note import Note
from . import words
from .calls import Fields, device_call, host_call
from .stream import Stream
from .trace import Call, Kind, Step, Times, Trace

SHOWN: Final = 20
"""Events that could not be read, which are listed one by one."""
_LONG: Final = 400
"""Letters of a kernel's name that are kept."""
_DEVICE: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_LAUNCH: Final = frozenset({"cuda_runtime", "cuda_driver", "runtime", "privateuse1_runtime"})
_LAUNCHES: Final = re.compile("launch|memcpy|memset", re.IGNORECASE)
_STEP: Final = re.compile(r"ProfilerStep#(\d{1,18})")
_FAR: Final = 9e15
"""us beyond which no time is."""
_Id = int | str | float | None


class _Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    tid: _Id = None
    ts: float | None = None
    dur: float | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Launch(msgspec.Struct, gc=False):
    correlation: _Id = None


class _Wait(msgspec.Struct, gc=False):
    event: int | None = msgspec.field(default=None, name="wait_on_cuda_event_id")
    record: int | None = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")


_EVENTS: Final = msgspec.json.Decoder(list[_Event])
_FIELDS: Final = msgspec.json.Decoder(Fields)
_WAIT: Final = msgspec.json.Decoder(_Wait)
_CORRELATION: Final = msgspec.json.Decoder(_Launch)


def read_kineto(source: bytes | BinaryIO, file: str = "") -> Trace:
    """A trace of PyTorch's profiler (Kineto), or of what writes the same format.

    Memory is needed for the columns that are kept, and for a few pieces of the file.

    Args:
        source: the file's bytes, or a stream of them; JSON, plain or gzip.
        file: its name.

    Raises:
        RoundelayError: it is no such file; the message says why.
    """
    stream = Stream(source, _EVENTS.decode)
    found = _Columns()
    for events in stream:
        found.add(events)
    return found.trace(file, stream)


class _Columns:
    """What has been read so far."""

    def __init__(self) -> None:
        self.events = self.odd = self.waits = self.unmatched = 0
        self.device = {name: array("q") for name in ("begin", "end", "kind", "stream", "name",
                                                     "correlation")}  # fmt: skip
        self.host = array("q"), array("q")
        self.launch = array("q"), array("q")
        self.names: dict[str, int] = {}
        self.kinds: list[Kind] = []
        self.steps: list[Step] = []
        # No events are kept: their arguments are views that would hold the whole file's bytes.
        self.device_calls: list[tuple[str, Fields, int, int, str]] = []
        self.host_calls: list[Call] = []
        self.params: dict[int, Fields] = {}

    def add(self, events: list[_Event]) -> None:
        """Take what is needed of some events."""
        self.events += len(events)
        for e in events:
            if e.ph != "X" or e.ts is None:
                continue
            if not abs(e.ts) < _FAR or not 0 <= (e.dur or 0.0) < _FAR:
                self.odd += 1
                continue
            cat = e.cat.lower()
            if cat in _DEVICE:
                self._on_device(e)
            elif cat in ("cpu_op", "operator"):
                self._on_host(e)
            elif cat == "user_annotation":
                self._annotation(e)
            elif cat in _LAUNCH and _LAUNCHES.search(e.name):
                self._launch(e)
            elif cat == "cuda_sync":
                self._wait(e)

    def _fields(self, e: _Event) -> Fields:
        try:
            return _FIELDS.decode(e.args)
        except msgspec.DecodeError:
            self.odd += 1
            return Fields()

    def _on_device(self, e: _Event) -> None:
        fields, (begin, end) = self._fields(e), _span(e)
        name = e.name[:_LONG]
        index = self.names.setdefault(name, len(self.names))
        if index == len(self.kinds):
            self.kinds.append(_kind(name))
        kind = Kind.COMMUNICATION if fields.collective else self.kinds[index]
        stream = fields.stream if isinstance(fields.stream, int) else e.tid
        columns = self.device
        columns["begin"].append(begin)
        columns["end"].append(end)
        columns["kind"].append(kind)
        columns["stream"].append(_whole(stream))
        columns["name"].append(index)
        columns["correlation"].append(_whole(fields.correlation))
        if kind == Kind.COMMUNICATION:
            self.device_calls.append((name, fields, begin, end, f"{stream}"))

    def _on_host(self, e: _Event) -> None:
        if e.name == "record_param_comms":
            fields = self._fields(e)
            self.params[_whole(fields.external)] = fields
        elif not e.name.startswith("c10d::"):
            begin, end = _span(e)
            self.host[0].append(begin)
            self.host[1].append(end)

    def _annotation(self, e: _Event) -> None:
        if step := _STEP.match(e.name):
            self.steps.append(Step(int(step[1]), *_span(e)))
        elif name := words.on_host(e.name):
            self.host_calls.append(host_call(name, self._fields(e), *_span(e), f"{e.tid}"))

    def _wait(self, e: _Event) -> None:
        try:
            wait = _WAIT.decode(e.args)
        except msgspec.DecodeError:
            return
        if wait.event is not None and wait.record is not None:
            self.waits += 1
            self.unmatched += wait.record < 0

    def _launch(self, e: _Event) -> None:
        try:
            correlation = _CORRELATION.decode(e.args).correlation
        except msgspec.DecodeError:
            return
        if isinstance(correlation, int):
            self.launch[0].append(_whole(correlation))
            self.launch[1].append(_span(e)[0])

    def trace(self, file: str, source: Stream) -> Trace:
        """All of it, on the clock of the file."""
        about = _About(source)
        base = about.base
        columns = {name: _array(column) for name, column in self.device.items()}
        order = np.argsort(columns["begin"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
        launched = self._launched(columns.pop("correlation"))
        columns["begin"] += base
        columns["end"] += base
        of_device = [device_call(name, f, self.params.get(_whole(f.external)), b, t, stream)
                     for name, f, b, t, stream in self.device_calls]  # fmt: skip
        calls = sorted(of_device or self.host_calls, key=lambda call: call.begin)
        if base:
            calls = [c._replace(begin=c.begin + base, end=c.end + base) for c in calls]
            self.steps = [Step(s.number, s.begin + base, s.end + base) for s in self.steps]
        nothing = np.empty(0, np.int64)
        host = [nothing if len(order) else _array(column) + base for column in self.host]
        groups = about.groups | {c.group: c.ranks for c in calls if c.ranks and c.group}
        return Trace(
            file, about.rank, about.world, about.backend, about.host, groups, **columns,
            launched=np.where(launched >= 0, launched + base, -1), names=tuple(self.names),
            host_begin=host[0], host_end=host[1], calls=tuple(calls),
            steps=tuple(sorted(self.steps, key=lambda s: s.begin)), events=self.events,
            bytes=source.read, waits=self.waits, unmatched=self.unmatched,
            notes=(*about.notes, *self._notes(source)), other=about.other,
        )  # fmt: skip

    def _launched(self, correlation: Times) -> Times:
        """[device event], when the host launched it, or -1."""
        key, begin = map(_array, self.launch)
        order = np.argsort(key, kind="stable")
        key, begin = key[order], begin[order]
        if not len(key):
            return np.full(len(correlation), -1, np.int64)
        at = np.minimum(np.searchsorted(key, correlation), len(key) - 1)
        return np.where((key[at] == correlation) & (correlation >= 0), begin[at], -1)

    def _notes(self, stream: Stream) -> list[Note]:
        notes = [Note(line, message("an event that cannot be read, left out: {why}", why=why))
                 for line, why in stream.bad[:SHOWN]]  # fmt: skip
        if len(stream.bad) > SHOWN:
            notes.append(Note(0, message("{n:more event|more events} that cannot be read, left out",
                                         n=len(stream.bad) - SHOWN)))  # fmt: skip
        if self.odd:
            notes.append(Note(0, message("{n:event|events} with impossible times or fields",
                                         n=self.odd)))  # fmt: skip
        if stream.cut:
            notes.append(Note(0, message("the file ends before its events do: it was cut off, or "
                                         "is still being written")))  # fmt: skip
        if not self.events:
            notes.append(Note(0, message("the trace has no events")))
        return notes


class _About:
    """What the file says of itself, before and behind its events."""

    def __init__(self, stream: Stream) -> None:
        self.notes: list[Note] = []
        every: dict[str, Any] = {}
        for text in (stream.head, stream.tail):
            try:
                every |= msgspec.json.decode(text, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                self.notes.append(Note(0, message(
                    "what the file says of itself cannot be read: {why}", why=f"{error}"
                )))  # fmt: skip
        info = every.get("distributedInfo")
        info = dict(info) if isinstance(info, dict) else {}
        self.rank, self.world = (_count(info.pop(name, None)) for name in ("rank", "world_size"))
        self.backend = f"{info.pop('backend', None) or ''}"
        self.host = f"{every.pop('host_name', '')}"
        self.base = _count(every.pop("baseTimeNanoseconds", None)) or 0
        self.groups = dict(_groups(info.pop("pg_config", None)))
        every["distributedInfo"] = info
        self.other = every
        if self.rank is None:
            self.notes.append(Note(0, message("the file does not say which rank it is of")))
        elif self.world is None:
            self.notes.append(Note(0, message("the file does not say how many ranks there are")))


def _groups(config: Any) -> list[tuple[str, tuple[int, ...]]]:
    found = []
    for group in config if isinstance(config, list) else []:
        ranks = group.get("ranks") if isinstance(group, dict) else None
        if isinstance(ranks, str):  # as torch writes it on demand
            ranks = [int(r) for r in re.findall(r"\d{1,9}", ranks)] if "..." not in ranks else []
        if isinstance(ranks, list) and all(isinstance(r, int) for r in ranks):
            found.append((f"{group.get('pg_name')}", tuple(ranks)))
    return found


def _kind(name: str) -> Kind:
    if words.communicates(name):
        return Kind.COMMUNICATION
    return Kind.MEMORY if words.copies(name) else Kind.COMPUTATION


def _span(e: _Event) -> tuple[int, int]:
    begin = round((e.ts or 0.0) * 1000)
    return begin, begin + round((e.dur or 0.0) * 1000)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**62 else -1


def _count(value: Any) -> int | None:
    whole = _whole(value)
    return whole if whole >= 0 and not isinstance(value, bool) else None


def _array(column: array[int]) -> Times:
    return np.frombuffer(column, np.int64).copy() if len(column) else np.empty(0, np.int64)
