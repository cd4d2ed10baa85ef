"""Kueue's topologies and what workloads ask of them (kueue.x-k8s.io: topology-aware scheduling)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ..errors import RoundelayError
from .yaml_nodes import Yaml, read_yaml

ASKED: Final = "kueue.x-k8s.io/podset-"
"""Beginning of the annotations by which pods ask: `required-topology`, `preferred-topology`, ..."""


@dataclass(frozen=True)
class Levels:
    """A topology: the node labels that name its levels, the widest first."""

    name: str
    labels: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Placed:
    """What a workload asks for.

    Attributes:
        kind, name: of the object, such as Job.
        how: "required", "preferred" or "unconstrained"; "slices" where so many pods at a time
            must lie together.
        level: the label, "" if unconstrained.
        pods: how many.
        cards: GPUs of each, 0 if none.
        line: where the annotation stands.
        slices: level and pods of each slice.
    """

    kind: str
    name: str
    how: str
    level: str
    pods: int
    cards: int
    line: int
    slices: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Flavor:
    """A ResourceFlavor that names a topology."""

    name: str
    topology: str
    line: int


@dataclass(frozen=True)
class Assigned:
    """Where Kueue has put a set of pods of an admitted workload.

    Attributes:
        workload, name: of the Workload, "" if not told, and of its PodSet.
        pods: how many it has.
        levels: labels, the widest first.
        domains: values of the levels, and how many pods lie there.
        slices: domains of the later, packed form, which are counted and not unpacked.
        line: where the assignment stands.
    """

    workload: str
    name: str
    pods: int
    levels: tuple[str, ...]
    domains: tuple[tuple[tuple[str, ...], int], ...]
    slices: int
    line: int


@dataclass(frozen=True)
class Kueue:
    """All of a file."""

    topologies: tuple[Levels, ...]
    workloads: tuple[Placed, ...]
    flavors: tuple[Flavor, ...] = ()
    assigned: tuple[Assigned, ...] = ()


def read_kueue(data: bytes) -> Kueue:
    """The topologies and workloads of a file with Kubernetes objects.

    Raises:
        RoundelayError: there is neither; PyYAML is missing.
    """
    yaml = read_yaml(data)
    documents = [d for d in yaml.documents if isinstance(d, dict)]
    topologies = tuple(
        Levels(_name(d), tuple(str(level.get("nodeLabel", ""))[:300]
                               for level in _list(d.get("spec"), "levels")), yaml.line(d))
        for d in documents if d.get("kind") == "Topology"
    )  # fmt: skip
    workloads = tuple(found for d in documents for found in _asked(yaml, d, d))
    assigned = tuple(found for d in documents for found in _assigned(yaml, d, d))
    if not topologies and not workloads and not assigned:
        raise RoundelayError(
            "no Topology of Kueue, and no workload with an annotation such as "
            f"{ASKED}required-topology or a topologyAssignment"
        )
    flavors = tuple(
        Flavor(_name(d), str(d["spec"]["topologyName"])[:200], yaml.line(d["spec"]))
        for d in documents if d.get("kind") == "ResourceFlavor"
        and isinstance(d.get("spec"), dict) and d["spec"].get("topologyName")
    )  # fmt: skip
    return Kueue(topologies, workloads, flavors, assigned)


def _name(document: dict[str, Any]) -> str:
    meta = document.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return str(meta.get("name") or meta.get("generateName") or "")[:200]


def _list(value: Any, key: str) -> Iterator[dict[str, Any]]:
    listed = value.get(key) if isinstance(value, dict) else None
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict):
            yield item


def _asked(yaml: Yaml, document: dict[str, Any], part: Any, pods: int = 1) -> Iterator[Placed]:
    """Annotations anywhere in an object, with the number of pods that stands nearest above."""
    if isinstance(part, list):
        for item in part:
            yield from _asked(yaml, document, item, pods)
    if not isinstance(part, dict):
        return
    for key in ("parallelism", "replicas", "size"):
        if str(part.get(key, "")).isdecimal() and len(str(part[key])) < 8:
            pods = int(part[key])
    meta = part.get("metadata")
    notes: Any = meta.get("annotations") if isinstance(meta, dict) else None
    for key, value in notes.items() if isinstance(notes, dict) else ():
        if key.startswith(ASKED) and "slice" in key:
            if slices := _slices(notes, key):
                yield Placed(
                    str(document.get("kind", ""))[:80], _name(document), "slices", slices[-1][0],
                    pods, _cards(part), yaml.line(notes), slices,
                )  # fmt: skip
        elif key.startswith(ASKED) and key.endswith("-topology"):
            how = key.removeprefix(ASKED).removesuffix("-topology")
            level = "" if how == "unconstrained" else str(value)[:300]
            yield Placed(str(document.get("kind", ""))[:80], _name(document), how[:40], level, pods,
                         _cards(part), yaml.line(notes))  # fmt: skip
    for key, value in part.items():
        if key != "metadata":
            yield from _asked(yaml, document, value, pods)


def _assigned(yaml: Yaml, document: dict[str, Any], part: Any) -> Iterator[Assigned]:
    """Assignments anywhere in an object: of a Workload, or of its status alone."""
    if isinstance(part, list):
        for item in part:
            yield from _assigned(yaml, document, item)
    if not isinstance(part, dict):
        return
    given = part.get("topologyAssignment")
    if isinstance(given, dict):
        levels = given.get("levels")
        domains = tuple(
            (tuple(str(v)[:100] for v in values), _whole(one.get("count")))
            for one in _list(given, "domains") if isinstance(values := one.get("values"), list)
        )  # fmt: skip
        yield Assigned(
            _name(document), str(part.get("name", ""))[:200], _whole(part.get("count")),
            tuple(str(x)[:300] for x in levels) if isinstance(levels, list) else (), domains,
            sum(_whole(one.get("domainCount")) or 1 for one in _list(given, "slices")),
            yaml.line(given),
        )  # fmt: skip
    for value in part.values():
        yield from _assigned(yaml, document, value)


def _whole(value: object) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 8 else 0


def _slices(notes: dict[str, Any], key: str) -> tuple[tuple[str, int], ...]:
    """Levels and pods of slices: a list as JSON, or one level with its size beside it."""
    value = str(notes[key])[:10000]
    if key.endswith("slice-required-topology"):
        size = str(notes.get(f"{ASKED}slice-size", ""))
        return ((value[:300], int(size)),) if size.isdecimal() and len(size) < 8 else ()
    if not key.endswith("-constraints"):
        return ()
    try:
        listed = json.loads(value)
    except (ValueError, RecursionError):
        return ()
    return tuple(
        (str(item.get("topology", ""))[:300], item["size"])
        for item in (listed if isinstance(listed, list) else [])[:16]
        if isinstance(item, dict) and isinstance(item.get("size"), int)
    )


def _cards(template: dict[str, Any]) -> int:
    """GPUs that the containers of a pod ask for."""
    count = 0
    for container in _list(template.get("spec"), "containers"):
        resources = container.get("resources")
        limits = resources.get("limits") if isinstance(resources, dict) else None
        for key, value in limits.items() if isinstance(limits, dict) else ():
            if key.endswith("/gpu") and str(value).isdecimal() and len(str(value)) < 6:
                count += int(value)
    return count
