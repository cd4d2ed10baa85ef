"""Requests: when they come, and how long they are."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np

from ..errors import RoundelayError

COLUMNS: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
"""Of a file of requests: those of Azure's traces of 2023 (github.com/Azure/AzurePublicDataset)."""
MOST: Final = 10_000_000
"""Requests of a file, or of made-up traffic."""
LONGEST: Final = 10_000_000
"""Tokens of a request."""


class Request(NamedTuple):
    """A request.

    Attributes:
        at: when it comes, in seconds from the first.
        prompt, answer: tokens; 1 or more.
    """

    at: float
    prompt: int
    answer: int


def read_requests(text: str, name: str = "the requests") -> list[Request]:
    """The requests of a CSV file with the columns `COLUMNS`, in the order in which they come.

    Raises:
        RoundelayError: with the line at fault.
    """
    try:
        head, *rows = list(csv.reader(text.splitlines())) or [[]]
    except csv.Error as error:
        raise RoundelayError(f"{name}: no CSV: {error}") from None
    if tuple(cell.strip() for cell in head) != COLUMNS:
        raise RoundelayError(f"{name}, line 1: {','.join(head)[:80]!r}; expected the columns "
                             f"{','.join(COLUMNS)}")  # fmt: skip
    found = []
    for line, row in enumerate(rows, 2):
        try:
            at, prompt, answer = row
            found.append((_moment(at), _tokens(prompt), _tokens(answer)))
        except (ValueError, OverflowError) as error:
            raise RoundelayError(
                f"{name}, line {line}: {','.join(row)[:80]!r} ({error}); expected a time "
                "such as 2023-11-16 18:17:03.97, and two numbers of tokens"
            ) from None
    if not 0 < len(found) <= MOST:
        raise RoundelayError(f"{name}: {len(found)} requests; expected 1 to {MOST:,}")
    found.sort()
    return [Request((at - found[0][0]).total_seconds(), *tokens) for at, *tokens in found]


def _moment(text: str) -> datetime:
    """In UTC, which a time without a zone is taken to be in."""
    moment = datetime.fromisoformat(text.strip())
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _tokens(text: str) -> int:
    count = int(text)
    if not 0 <= count <= LONGEST:
        raise ValueError(f"{count} tokens")
    return max(1, count)


def poisson(count: int, rate: float, prompt: int, answer: int, seed: int = 1) -> list[Request]:
    """Made-up requests: independent, with lengths that are exponential about their means.

    Args:
        count: of them.
        rate: a second.
        prompt: tokens in the mean.
        answer: tokens in the mean.
        seed: of the draws.

    Raises:
        RoundelayError: numbers that are not above 0.
    """
    if not (0 < count <= MOST and 0 < rate < 1e9 and 0 < min(prompt, answer) <= LONGEST):
        raise RoundelayError(f"{count} requests, {rate:g} a second, of {prompt} and {answer} "
                             "tokens; expected numbers above 0")  # fmt: skip
    draw = np.random.default_rng(seed)
    times = np.cumsum(draw.exponential(1 / rate, count))
    lengths = [np.ceil(draw.exponential(mean, count)).clip(1, LONGEST) for mean in (prompt, answer)]
    columns = (times - times[0], *(column.astype(int) for column in lengths))
    return [Request(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def quicker(requests: Sequence[Request], times: float) -> list[Request]:
    """The same requests, coming so many times as quickly.

    Raises:
        RoundelayError: a number that is not above 0.
    """
    if not 0 < times < 1e9:
        raise RoundelayError(f"traffic {times:g} times as quick; expected above 0")
    return [request._replace(at=request.at / times) for request in requests]
