"""What nccl-tests writes with -J: the figures of its table as JSON (nccl-tests 2.19.6, util.cu)."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ...errors import RoundelayError
from ..plain import unpacked
from .inference import infer, program
from .measured import Device, Measured, Row, Table, Timing

ROWS: Final = 10**5
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
_Name = Annotated[str, msgspec.Meta(max_length=400)]


class _Form(msgspec.Struct):
    time: float | None = None
    cpu_time: float | None = None
    alg_bw: float = 0.0
    bus_bw: float = 0.0
    nwrong: int | str | None = None


class _Result(msgspec.Struct):
    size: _Count
    count: _Count | None = None
    type: _Name = ""
    redop: _Name = ""
    root: int | None = None
    out_of_place: _Form | None = None
    in_place: _Form | None = None


class _Device(msgspec.Struct):
    rank: int = 0
    hostname: _Name = ""
    device: int = 0
    device_hex: _Name = ""
    device_info: _Name = ""


class _Config(msgspec.Struct):
    devices: Annotated[list[_Device], msgspec.Meta(max_length=2**20)] = []


class _Average(msgspec.Struct):
    bandwidth: float | None = None


class _File(msgspec.Struct):
    results: Annotated[list[_Result], msgspec.Meta(min_length=1, max_length=ROWS)]
    args: list[Any] = []
    version: str = ""
    nccl_version: str | int = ""
    config: _Config = msgspec.field(default_factory=_Config)
    average_bus_bandwidth: _Average | None = None


def read_nccl_tests_json(data: bytes) -> Measured:
    """The table in such a file.

    Raises:
        RoundelayError: it is none, or nothing in it was measured.
    """
    try:
        file = msgspec.json.decode(unpacked(data), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"no JSON of nccl-tests: {error}; -J writes it") from None
    rows = tuple(row for row in map(_row, file.results) if row.out_of_place or row.in_place)
    if not rows:
        raise RoundelayError("no row of results in the JSON of nccl-tests was measured")
    stated = program(" ".join(str(word)[:400] for word in file.args[:100]))
    devices = tuple(Device(d.rank, d.hostname, d.device, d.device_hex, d.device_info)
                    for d in file.config.devices)  # fmt: skip
    guess = infer(rows, stated, len(devices) or None)
    average = file.average_bus_bandwidth
    table = Table(
        0, guess.collectives[0] if guess.collectives else None, guess.collectives,
        stated is not None, guess.ranks, guess.ranks_from, devices, rows,
        average.bandwidth if average else None,
    )  # fmt: skip
    versions = (f"nccl-tests {file.version}", f"NCCL {file.nccl_version}")
    return Measured((table,), tuple(v for v in versions if not v.endswith(" ")), ())


def _row(result: _Result) -> Row:
    forms = [_timing(form) for form in (result.out_of_place, result.in_place)]
    told = ", ".join(f"{t.time_us:g} us, busbw {t.busbw:g} GB/s" for t in forms if t)
    return Row(0, f"{result.size} B: {told}", result.size, result.count, result.type or None,
               result.redop or None, result.root, *forms)  # fmt: skip


def _timing(form: _Form | None) -> Timing | None:
    if form is None:
        return None
    time = form.time if form.time is not None else form.cpu_time
    if time is None:
        return None
    wrong = form.nwrong if isinstance(form.nwrong, int) else None
    return Timing(time, form.alg_bw, form.bus_bw, wrong)
