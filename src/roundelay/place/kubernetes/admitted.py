"""Where Kueue has put a job: the topology assignment of its Workload (v1beta2, compressed)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...errors import RoundelayError
from .objects import at

PODS: Final = 1 << 20
"""Pods of a workload, at most."""


def admitted(data: bytes) -> list[tuple[tuple[str, ...], int]]:
    """The domains of a Workload's pods, in Kueue's order, and how many pods each has.

    Args:
        data: ``kubectl get workload NAME -o json``.

    Returns:
        A tuple of a value for each level, from the top down, and a number of pods, by domain.

    Raises:
        RoundelayError: it is no Workload, isn't admitted, or its assignment contradicts itself.
    """
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RoundelayError(f"no JSON: {error}") from None
    if not isinstance(tree, dict) or tree.get("kind") != "Workload":
        raise RoundelayError("no Workload; expected the output of `kubectl get workload NAME "
                             "-o json`")  # fmt: skip
    sets = at(tree, "status", "admission", "podSetAssignments")
    if not isinstance(sets, list) or not sets:
        raise RoundelayError("the Workload is not admitted yet; expected status.admission")
    found: list[tuple[tuple[str, ...], int]] = []
    for one in sets:
        assignment = at(one, "topologyAssignment")
        if not isinstance(assignment, dict):
            raise RoundelayError(f"pods {at(one, 'name')}: no topologyAssignment; expected a "
                                 "ResourceFlavor with topologyName")  # fmt: skip
        levels = assignment.get("levels")
        width = len(levels) if isinstance(levels, list) else 0
        slices = assignment.get("slices")
        for number, part in enumerate(slices if isinstance(slices, list) else ()):
            try:
                found += _slice(part, width)
                if len(found) > PODS:
                    raise RoundelayError(f"more than {PODS:,} domains")
            except RoundelayError as error:
                raise RoundelayError(f"slice {number} of {at(one, 'name')}: {error}") from None
    return found


def _slice(part: Any, width: int) -> Iterator[tuple[tuple[str, ...], int]]:
    count = at(part, "domainCount")
    if not isinstance(count, int) or not 0 < count <= PODS:
        raise RoundelayError(f"domainCount {count}; expected 1 to {PODS:,}")
    levels = at(part, "valuesPerLevel")
    if not isinstance(levels, list) or not levels or len(levels) != width:
        raise RoundelayError(
            f"values of {len(levels or ())} levels; expected {width or 'one at least'}"
        )
    values = [_values(level, count) for level in levels]
    pods = _each(at(part, "podCounts"), count)
    yield from zip(zip(*values, strict=True), pods, strict=True)


def _values(level: Any, count: int) -> Sequence[str]:
    """All alike, or a root each, between a prefix and a suffix that they share."""
    same, each = at(level, "universal"), at(level, "individual")
    if isinstance(same, str) and each is None:
        return [same] * count
    roots = at(each, "roots")
    if same is not None or not isinstance(roots, list) or len(roots) != count:
        raise RoundelayError(f"{str(level)[:60]}; expected universal, or individual with {count} "
                             "roots")  # fmt: skip
    before, behind = at(each, "prefix") or "", at(each, "suffix") or ""
    return [f"{before}{root}{behind}" for root in roots]


def _each(counts: Any, count: int) -> Sequence[int]:
    same, each = at(counts, "universal"), at(counts, "individual")
    found = [same] * count if each is None else each
    sound = isinstance(found, list) and len(found) == count and (same is None) != (each is None)
    if not sound or not all(isinstance(n, int) and 0 < n <= PODS for n in found):
        raise RoundelayError(f"podCounts {str(counts)[:60]}; expected universal, or individual "
                             f"with {count} of them, 1 or more each")  # fmt: skip
    return list(found)
