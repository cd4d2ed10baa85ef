"""What a server asks of its clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Told = Callable[[str, int], Any]
"""What stands in the body of a refusal, as JSON, by its text and status."""


class Rules(NamedTuple):
    """Of one server.

    Attributes:
        headers: on its refusals.
        most: connections that may be open.
        told: what stands in its refusals.
        head: seconds that a client has for the head of its request.
        body: seconds that it then has for the body.
        take: seconds in which it must take some of an answer that waits for it.
    """

    headers: Mapping[str, str]
    most: int
    told: Told
    head: float
    body: float
    take: float
