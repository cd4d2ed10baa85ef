"""Hosts of a Kubernetes cluster, from ``kubectl get nodes -o json``, also with pods and Topology.

Levels are the labels of Kueue's Topology where the file has one, else those of topograph 1.0 or
before, of GKE, or of Kueue's examples; below them the domain of NVLink: topograph's, or the GPU
Operator's clique. Where several hosts share a node of the machine, that domain is the node.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from ...errors import RoundelayError
from ...i18n import Message, message
from ...topology import Cluster
from ..site import Host, Site, oldest, settle
from .objects import at, listed

Taint: TypeAlias = tuple[str, str, str]
"""Key, value and effect."""

HOSTNAME: Final = "kubernetes.io/hostname"
TIER: Final = re.compile(r"fabric\.topograph\.run/tier-(\d{1,2})")
FAMILIES: Final = (
    ("network.topology.nvidia.com/core", "network.topology.nvidia.com/spine",
     "network.topology.nvidia.com/leaf"),
    ("cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"),
    ("cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"),
)  # fmt: skip
"""Labels from the top to the leaf."""
SHARED: Final = ("accelerator.topograph.run/domain", "nvidia.com/gpu.clique")
"""Labels of the hosts that one NVLink joins; the first that a cluster has counts."""
CARDS: Final = ("nvidia.com/gpu", "amd.com/gpu")
"""Resources that are whole cards."""
LEVELS: Final = 16
"""Levels of a Topology, at most, with that of hosts; Kueue's CRD and KAI's say so."""
NETWORK: Final = re.compile(r"rdma|hca|roce|sriov|hostdev|infiniband|/efa$", re.I)
"""In the names of resources that device plugins give to network cards."""
_KEY: Final = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[a-z0-9]([\w.-]{0,61}[a-z0-9])?",
                         re.A | re.I)  # fmt: skip
_VALUE: Final = re.compile(r"[a-z0-9]([\w.-]{0,61}[a-z0-9])?", re.A | re.I)
"""What a label may be, by Kubernetes' own rules."""


def resource(cluster: Cluster) -> str:
    """The resource that a pod asks for: a kind of cards, or the processor."""
    if cluster.generation == "cpu":
        return "cpu"
    return CARDS[1] if cluster.generation.startswith("cdna") else CARDS[0]


def kubernetes_site(data: bytes, machine: Cluster) -> Site:
    """The hosts of a file.

    Raises:
        RoundelayError: it is no list of nodes, labels are missing on all or contradict, or the
            machine is another.
    """
    items = _items(data)
    kind = resource(machine)
    nodes = [item for item in items if item.get("kind") == "Node"
             and (kind == "cpu" or _cards(item, kind) or _mig(item))]  # fmt: skip
    if not nodes:
        raise RoundelayError(f"no node has {kind}; expected the output of `kubectl get nodes "
                             "-o json`, and --cluster the machine that they are")  # fmt: skip
    labels = _levels(items, nodes, machine)
    notes: list[Message] = []
    if not labels and len(nodes) > 1:
        notes.append(
            message(
                "no node has a label of a level of the network, such as "
                "fabric.topograph.run/tier-0: all count as under one switch"
            )
        )
    used, taints = _used(items, kind), _taints(nodes, kind)
    hosts = [host for node in nodes
             for host in _host(node, labels, kind, used.get(_name(node), 0), taints, notes)
             ]  # fmt: skip
    if not hosts:
        found = sorted({key for node in nodes for key in _labels(node)})[:8]
        raise RoundelayError(f"no node has the labels {', '.join(labels)}; there are "
                             f"{', '.join(found) or 'none'}")  # fmt: skip
    _nested(hosts, labels)
    version = oldest(str(at(node, "status", "nodeInfo", "kubeletVersion") or "") for node in nodes)
    site = settle(hosts, machine, "kubernetes", labels, version.lstrip("v"), notes)
    return replace(site, taints=tuple(sorted({key for key, *_ in taints})),
                   networks=_networks(nodes))  # fmt: skip


def _items(data: bytes) -> list[Mapping[str, Any]]:
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RoundelayError(f"no JSON: {error}") from None
    items = tree.get("items") if isinstance(tree, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise RoundelayError("no list of objects; expected the output of `kubectl get nodes "
                             "-o json`")  # fmt: skip
    for item in items:
        if not isinstance(at(item, "metadata", "name"), str):
            raise RoundelayError(f"{str(item)[:60]}: no object of Kubernetes; expected metadata "
                                 "with a name")  # fmt: skip
    return items


def _name(item: Mapping[str, Any]) -> str:
    return str(at(item, "metadata", "name"))


def _labels(item: Mapping[str, Any]) -> Mapping[str, str]:
    found = at(item, "metadata", "labels")
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, Mapping) else {}


def _number(value: Any) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _cards(node: Mapping[str, Any], kind: str) -> int:
    return _number(at(node, "status", "allocatable", kind))


def _mig(node: Mapping[str, Any]) -> bool:
    found = at(node, "status", "allocatable")
    own = found if isinstance(found, Mapping) else {}
    return any(key.startswith("nvidia.com/mig-") and _number(own[key]) for key in own)


def _sliced(node: Mapping[str, Any]) -> bool:
    labels = _labels(node)
    strategy = labels.get("nvidia.com/gpu.sharing-strategy", "none")
    replicas = labels.get("nvidia.com/gpu.replicas", "1")
    return (_mig(node) or strategy not in ("", "none") or replicas not in ("", "0", "1")
            or "-MIG-" in labels.get("nvidia.com/gpu.product", ""))  # fmt: skip


def _levels(
    items: Sequence[Mapping[str, Any]], nodes: Sequence[Mapping[str, Any]], machine: Cluster
) -> tuple[str, ...]:
    """Labels from the top to the leaf, and the one of shared nodes."""
    known = Counter(key for node in nodes for key in _labels(node))
    told = [item for item in items if item.get("kind") == "Topology"]
    if len(told) > 1:
        names = ", ".join(_name(item) for item in told)
        raise RoundelayError(f"{len(told)} Topologies: {names}; expected one: leave the others out")
    if told:
        keys = [str(at(level, "nodeLabel")) for level in listed(told[0], "spec", "levels")]
        _in_order(keys)
        return tuple(key for key in keys if key != HOSTNAME)
    tiers = sorted((int(m[1]), key) for key in known if (m := TIER.fullmatch(key)))
    families = (tuple(key for _, key in reversed(tiers)),
                *(tuple(key for key in family if known[key]) for family in FAMILIES))  # fmt: skip
    keys = list(next((family for family in families if family), ()))
    shared = [key for key in SHARED if known[key]]
    if len(shared) > 1:
        _agree(nodes, *shared)
    if shared and (machine.hosts > 1 or not keys):
        keys.append(shared[0])
    if keys:
        _in_order(keys)
    return tuple(keys)


def levels_of(site: Site) -> list[dict[str, str]]:
    """Levels of a Topology of its hosts; hosts themselves are the last where there is room."""
    return [{"nodeLabel": key} for key in (*site.levels, HOSTNAME)[:LEVELS]]


def _in_order(keys: Sequence[str]) -> None:
    """Kueue's own rules of a Topology: its CRD, with what it writes in CEL."""
    if not 1 <= len(keys) <= LEVELS or len({*keys}) != len(keys):
        raise RoundelayError(f"Topology: levels {', '.join(keys) or 'none'}; expected 1 to "
                             f"{LEVELS} different labels")  # fmt: skip
    for key in keys:
        if not _KEY.fullmatch(key):
            raise RoundelayError(f"Topology: level {key!r:.80}; expected the key of a label, such "
                                 "as example.com/rack")  # fmt: skip
    if HOSTNAME in keys[:-1]:
        raise RoundelayError(f"Topology: {HOSTNAME} is not the last level; expected it there")


def _agree(nodes: Sequence[Mapping[str, Any]], a: str, b: str) -> None:
    """Two labels of NVLink domains say the same."""
    seen: dict[str, tuple[str, str]] = {}
    for node in nodes:
        labels = _labels(node)
        if a in labels and b in labels:
            other, first = seen.setdefault(labels[a], (labels[b], _name(node)))
            if other != labels[b]:
                raise RoundelayError(
                    f"{first} and {_name(node)} share {a}={labels[a]}, but not "
                    f"{b}: {other} and {labels[b]}; expected one domain"
                )


def _used(items: Sequence[Mapping[str, Any]], kind: str) -> dict[str, int]:
    """Cards that pods ask for, by node."""
    found: Counter[str] = Counter()
    for item in items:
        ended = at(item, "status", "phase") in ("Succeeded", "Failed")
        if item.get("kind") == "Pod" and not ended and kind != "cpu":
            for one in listed(item, "spec", "containers"):
                count = _number(at(one, "resources", "limits", kind))
                found[str(at(item, "spec", "nodeName"))] += count
    return found


def _own_taints(node: Mapping[str, Any]) -> set[Taint]:
    """Those that keep pods away, but for Kubernetes' own, of which conditions tell."""
    return {(str(at(one, "key")), str(at(one, "value") or ""), str(at(one, "effect")))
            for one in listed(node, "spec", "taints")
            if at(one, "effect") in ("NoSchedule", "NoExecute")
            and not str(at(one, "key")).startswith("node.kubernetes.io/")}  # fmt: skip


def _taints(nodes: Sequence[Mapping[str, Any]], kind: str) -> set[Taint]:
    """What jobs are to tolerate: the mark of their pool, which all nodes have, and of their cards.

    Taints with the name of the resource keep away only pods that don't ask for it, by custom.
    """
    each = [_own_taints(node) for node in nodes]
    return set.intersection(*each) | {taint for own in each for taint in own if taint[0] == kind}


def _networks(nodes: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    found = [at(node, "status", "allocatable") for node in nodes]
    return tuple(sorted({str(key) for own in found if isinstance(own, Mapping) for key in own
                         if NETWORK.search(str(key)) and _KEY.fullmatch(str(key))}))  # fmt: skip


def _host(
    node: Mapping[str, Any],
    labels: Sequence[str],
    kind: str,
    used: int,
    taints: set[Taint],
    notes: list[Message],
) -> Iterator[Host]:
    own, name = _labels(node), _name(node)
    missing = [key for key in labels if not own.get(key)]
    if missing:
        notes.append(message("{name} lacks the label {labels}: left out, as schedulers do",
                             name=name, labels=", ".join(missing)))  # fmt: skip
        return
    ready = [at(one, "status") for one in listed(node, "status", "conditions")
             if at(one, "type") == "Ready"]  # fmt: skip
    free = not at(node, "spec", "unschedulable") and ready in ([], ["True"])
    if not free:
        notes.append(message("{name} is cordoned or not ready: left out", name=name))
    for key, value, effect in sorted(_own_taints(node) - taints) if free else ():
        free = False
        notes.append(message("{name} has the taint {taint}, and not all nodes here have it: left "
                             "out, as pods don't tolerate it", name=name,
                             taint=f"{key}{'=' if value else ''}{value}:{effect}"))  # fmt: skip
    for key in labels:
        if not _VALUE.fullmatch(own[key]):
            raise RoundelayError(f"{name}: label {key} is {own[key]!r:.80}; expected letters, "
                                 "digits, -, _ and dots, 63 at most")  # fmt: skip
    sliced = _sliced(node)
    count = None if kind == "cpu" or sliced else _cards(node, kind)
    yield Host(name, tuple(own[key] for key in labels), count, tuple(range(used)), free, sliced)


def _nested(hosts: Sequence[Host], labels: Sequence[str]) -> None:
    """A domain is within one domain of the level above."""
    for depth in range(1, len(labels)):
        seen: dict[str, tuple[str, str]] = {}
        for host in hosts:
            above, first = seen.setdefault(host.path[depth], (host.path[depth - 1], host.name))
            if above != host.path[depth - 1]:
                raise RoundelayError(
                    f"{labels[depth]}={host.path[depth]} is in {labels[depth - 1]}={above} by "
                    f"{first}, and in {host.path[depth - 1]} by {host.name}; expected one of them"
                )
