"""What is slow: ranks and links, as the command line names them."""

from __future__ import annotations

import re

from ..errors import RoundelayError
from ..topology import Cluster

Straggler = tuple[str, str, float]
"""rank or link, which one, and how many times slower it is."""


def read_straggler(text: str) -> Straggler:
    """``rank=37:1.10`` or ``link=NIC 3 of node 12, out:2`` as what, which and factor.

    Raises:
        RoundelayError: it cannot be understood.
    """
    what, equals, rest = text.partition("=")
    which, colon, factor = rest.rpartition(":")
    try:
        times = float(factor)
    except ValueError:
        times = 0.0
    if what not in ("rank", "link") or not equals or not colon or not times:
        raise RoundelayError(
            f"{text!r} is no straggler; expected what is slow and how many times, such as "
            "rank=37:1.10 or 'link=NIC 3 of node 12, out:2'"
        )
    return what, which.strip(), times


def find_rank(text: str) -> int:
    """The number of a rank.

    Raises:
        RoundelayError: it is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise RoundelayError(f"{text!r} is no rank; expected a number, as in rank=37:1.10")
    return int(text)


def find_link(cluster: Cluster, name: str) -> int:
    """The number of a link, from it or from its name.

    Raises:
        RoundelayError: no such link.
    """
    if name.isascii() and name.isdigit():
        return int(name)
    for links in cluster.links:
        pattern = re.sub(r"\\\{(\d)\\\}", r"(?P<i\1>\\d+)", re.escape(links.label))
        if match := re.fullmatch(pattern, name):
            index = [int(match[f"i{d}"]) for d in range(len(links.shape))]
            if all(i < size for i, size in zip(index, links.shape, strict=True)):
                return int(links.at(*index))
    known = ", ".join(repr(links.describe(links.first)) for links in cluster.links)
    raise RoundelayError(f"{cluster.name} has no link {name!r}; it has such as {known}")
