"""What is put into one file of the cluster's view beside the whole of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..clusters import NO_FILES, Clusters
from .cluster import READERS, Shown, cluster
from .parameters import read


def around(
    given: Mapping[str, str],
    looked: Mapping[str, str],
    chosen: list[str],
    clusters: Clusters = NO_FILES,
) -> Iterator[dict[str, str]]:
    """Parameters to ask for as well.

    They are the cards that are looked at, the way from the whole to the busiest link, and the
    moves over the busiest link of every kind.

    Args:
        given: the parameters of the whole.
        looked: the cards that are looked at, if not all.
        chosen: the link that is chosen, if one is.
        clusters: of files.
    """
    whole = cluster(**read("cluster", READERS, given), clusters=clusters)
    spans = [dict(looked)] if looked else []
    shown = whole
    while shown.busiest and (span := _next(shown)):
        spans.append(span)
        shown = cluster(**read("cluster", READERS, {**given, **span}), clusters=clusters)
    for i, each in enumerate(spans):
        if each not in spans[:i]:
            yield each
    links = [*chosen, *(str(load.link) for load in whole.kinds if load.time)]
    for link in dict.fromkeys(links):
        yield {"link": link}


def _next(shown: Shown) -> dict[str, str]:
    """The cards of the row in which the busiest link is; nothing where they are shown already."""
    low, high = shown.at
    for box in shown.columns[shown.middle].boxes:
        first, last = box.cards
        if first <= low and high <= last and last - first < shown.last - shown.first:
            return {"first": str(first), "last": str(last)}
    return {}
