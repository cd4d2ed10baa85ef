"""How long a server waits for its clients, and how many it listens to at one time.

Every connection may be one that asks nothing, or takes nothing of its answer. Such a one is sent
away after a time, and before that when others need its place.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

    from .rules import Told

HEAD: Final = 10.0
"""Seconds that a client has for the head of its request."""
BODY: Final = 30.0
"""Seconds that it then has for the body."""
TAKE: Final = 30.0
"""Seconds in which it must take some of an answer that waits for it."""


def connections(wanted: int) -> int:
    """As many as are wanted, but at most half as many as the process may have files open."""
    return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)


def impatient(headers: Mapping[str, str], most: int, told: Told) -> type[H11Protocol]:
    """A protocol for uvicorn that waits only so long, and refuses in JSON.

    A request that is not whole in time gets status 408. Where more connections are open than may
    be, the one that has been asking for longest is sent away with status 503; so a client that
    asks at once is always heard, and only if all others wait for answers a new one is refused.

    Args:
        headers: on its refusals.
        most: connections that may be open.
        told: what stands in them.
    """
    from .protocol import Impatient  # it needs uvicorn, which is an extra
    from .rules import Rules

    rules = Rules(headers, most, told, HEAD, BODY, TAKE)
    return type("Impatient", (Impatient,), {"rules": rules})
