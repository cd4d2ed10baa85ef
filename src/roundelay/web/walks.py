"""The walks along one request that the page shows: one that comes with it, and those from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Literal

import msgspec

from ..errors import RoundelayError
from ..files import read_file
from .named import with_files

EXAMPLE: Final = "smollm2"
"""SmolLM2-135M-Instruct over two ranks of one machine with two cores, in float32."""
SIZE_LIMIT: Final = 2**26
"""Bytes of a file."""

_Time = Annotated[float, msgspec.Meta(ge=0, lt=1e15)]
_Text = Annotated[str, msgspec.Meta(max_length=100_000)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class Step(msgspec.Struct, omit_defaults=True):
    """One step of a token; times in us, from when the request came.

    Attributes:
        name: of the step.
        token: 0 for the first.
        start_us, duration_us: when, and how long.
        exchanges: how many, where it is exchanging.
        wait_us: in them, until the last rank had come.
        bytes_by_rank: of the weights.
    """

    name: Literal["request", "instance", "ranks", "weights", "compute", "exchange", "token"]
    token: _Count
    start_us: _Time
    duration_us: _Time
    exchanges: _Count = 0
    wait_us: _Time = 0.0
    bytes_by_rank: Annotated[list[_Count], msgspec.Meta(max_length=16384)] = []


class Walk(msgspec.Struct, omit_defaults=True):
    """What `roundelay walk --json` says; more than this in a file is left out.

    Attributes:
        steps: of all tokens.
        ranks: that the model is cut over.
        tokens: that came out.
        token_us: of a token after the first.
        exchanges_per_token: of such a token.
        exchange_share: of its time.
        cluster: where it was worked out for one; then nothing was measured.
        prompt, text: what was asked and answered.
        first_token_us, compute_us, exchange_us, wait_us, rest_us: where the time went.
    """

    steps: Annotated[list[Step], msgspec.Meta(min_length=1, max_length=100_000)]
    ranks: _Count
    tokens: _Count
    token_us: _Time
    exchanges_per_token: _Time
    exchange_share: _Time
    cluster: str = ""
    prompt: _Text = ""
    text: _Text = ""
    first_token_us: _Time = 0.0
    compute_us: _Time = 0.0
    exchange_us: _Time = 0.0
    wait_us: _Time = 0.0
    rest_us: _Time = 0.0


Walks = Mapping[str, Walk]
"""By the name that the page's address has for it."""


@cache
def examples() -> Walks:
    """The walk that comes with the page."""
    data = files(__package__).joinpath("examples", "walk.json").read_bytes()
    return MappingProxyType({EXAMPLE: _read(data)})


def open_walks(paths: Iterable[Path]) -> Walks:
    """The example, and the walks of files, each named after its file.

    Args:
        paths: files of `roundelay walk --save`.

    Raises:
        RoundelayError: a file that cannot be read, or two of one name.
    """
    return with_files(examples(), paths, lambda path: _read(read_file(path, SIZE_LIMIT)))


def _read(data: bytes) -> Walk:
    try:
        return msgspec.json.decode(data, type=Walk)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(
            f"no walk: {error}; expected a file that roundelay walk --save has written"
        ) from None
