"""A schedule as a JSON file, versioned, with a JSON Schema.

A round's lists have one entry a move; what is the same for all moves may be one number.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np

from ..collectives import COLLECTIVES, ROUTED, UnknownName
from ..errors import RoundelayError
from ..rounds import COPY, REDUCE, Round, ScheduleError
from ..routing import Routing
from ..schedule import MAX_CHUNKS, MAX_RANKS, Schedule

MOVES_LIMIT: Final = 10**7
"""Listed moves up to which a schedule is written to a file."""

PLACES_LIMIT: Final = 2**30
"""Ranks x pieces up to which a routing is read."""

_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Signed = Annotated[int, msgspec.Meta(gt=-(2**62), lt=2**62)]
_Numbers = _Number | list[_Number]
_Op = Literal["copy", "reduce"]
_Participants = Annotated[int, msgspec.Meta(ge=0, le=MAX_RANKS)]


class RoundFile(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One round: see `Round` for the meaning of its fields."""

    src: _Numbers
    dst: _Numbers
    chunk: _Numbers
    op: _Op | list[_Op] = "copy"
    count: _Numbers = 1
    stride: _Signed = 1
    times: _Number = 1
    shift: _Signed = 0
    start: _Numbers = 0
    unit: Annotated[int, msgspec.Meta(ge=1, lt=2**62)] = 1
    wrap: _Number = 0
    begin: _Number | None = None


class RoutingFile(msgspec.Struct, forbid_unknown_fields=True):
    """Of a dispatch to experts or its combine: for each piece its home, and who wants it."""

    home: list[_Participants]
    wanted: list[list[_Participants]]


class ScheduleFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A schedule file, version 1."""

    format: Literal["roundelay/schedule"]
    version: Literal[1]
    collective: str
    ranks: Annotated[int, msgspec.Meta(ge=1, le=MAX_RANKS)]
    chunks: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHUNKS)]
    rounds: list[RoundFile]
    helpers: _Participants = 0
    root: _Participants = 0
    owner: list[_Participants] | None = None
    name: Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    params: dict[str, str | int | float | bool | list[int]] = {}
    routing: RoutingFile | None = None


def read_schedule(data: bytes) -> Schedule:
    """The schedule in a file.

    Raises:
        RoundelayError: the file is no JSON, is of another kind or version, lacks a field, or
            describes a schedule with ids out of range; the message says where.
    """
    try:
        file = msgspec.json.decode(data, type=ScheduleFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"no schedule file of version 1: {error}") from None
    if file.collective not in COLLECTIVES | ROUTED:
        raise UnknownName("collective", file.collective, COLLECTIVES | ROUTED)
    try:
        return Schedule(
            file.collective,
            file.ranks,
            file.chunks,
            [_round(number, r) for number, r in enumerate(file.rounds)],
            helpers=file.helpers,
            root=file.root,
            owner=None if file.owner is None else np.array(file.owner, np.int64),
            name=file.name,
            params=file.params,
            routing=None if file.routing is None else _routing(file.routing, file.ranks),
        )
    except ScheduleError as error:
        raise ScheduleError(f"schedule file: {error}") from None


def _routing(file: RoutingFile, ranks: int) -> Routing:
    pieces = len(file.home)
    if len(file.wanted) != pieces or pieces * ranks > PLACES_LIMIT:
        raise ScheduleError(
            f"routing: {pieces} homes, {len(file.wanted)} lists of who wants a piece, {ranks:,} "
            f"ranks; expected as many lists, and {PLACES_LIMIT:,} ranks x pieces at most"
        )
    wanted = np.zeros((ranks, pieces), np.bool_)
    for piece, who in enumerate(file.wanted):
        if who and max(who) >= ranks:
            raise ScheduleError(f"routing, piece {piece}: rank {max(who)}; expected 0 to "
                                f"{ranks - 1}")  # fmt: skip
        wanted[who, piece] = True
    return Routing(np.array(file.home, np.int64), wanted)


def _round(number: int, r: RoundFile) -> Round:
    fields = msgspec.structs.asdict(r)
    codes = {"copy": COPY, "reduce": REDUCE}
    fields["op"] = [codes[o] for o in r.op] if isinstance(r.op, list) else codes[r.op]
    try:
        return Round(**fields)
    except ScheduleError as error:
        raise ScheduleError(f"round {number}: {error}") from None


def write_schedule(schedule: Schedule) -> bytes:
    """The schedule as a file, one round a line.

    Raises:
        RoundelayError: it has more than ten million moves to list, or is a part for `then`.
    """
    listed = 0
    rounds = []
    for r in schedule.whole():
        listed += len(r.src)
        if listed > MOVES_LIMIT:
            raise RoundelayError(f"more than {MOVES_LIMIT:,} moves to list; try fewer ranks")
        rounds.append(msgspec.json.encode(_round_file(r)).decode())
    head = {
        "format": "roundelay/schedule",
        "version": 1,
        "collective": schedule.collective,
        "name": schedule.name,
        "params": {k: _plain(v) for k, v in schedule.params.items()},
        "ranks": schedule.ranks,
        "chunks": schedule.chunks,
        "helpers": schedule.helpers,
        "root": schedule.root,
        "owner": None if schedule.owner is None else schedule.owner.tolist(),
    }
    if (routing := schedule.routing) is not None:
        wanted = [np.flatnonzero(who).tolist() for who in routing.wanted.T]
        head["routing"] = {"home": routing.home.tolist(), "wanted": wanted}
    text = msgspec.json.encode(head).decode()
    return (text[:-1] + ',"rounds":[\n' + ",\n".join(rounds) + "\n]}\n").encode()


def _round_file(r: Round) -> RoundFile:
    def plain(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray) else value

    names: tuple[_Op, _Op] = ("copy", "reduce")
    op: _Op | list[_Op] = (
        names[r.op] if isinstance(r.op, int) else [names[o] for o in r.op.tolist()]
    )
    rest = ("src", "dst", "chunk", "count", "stride", "times", "shift", "start", "unit", "wrap")
    return RoundFile(op=op, begin=r.begin, **{name: plain(getattr(r, name)) for name in rest})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | bool | list) else str(value)


def schema() -> dict[str, Any]:
    """The JSON Schema of a schedule file."""
    return msgspec.json.schema(ScheduleFile)
