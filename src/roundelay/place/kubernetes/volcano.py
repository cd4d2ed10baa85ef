"""Volcano 1.15: a Job with a gang by topology, and the HyperNodes of the cluster."""

from __future__ import annotations

import re
from typing import Any

from ..submission import Submission
from .pods import head, running, shape
from .yaml import Manifest, Why


def files(job: Submission) -> dict[str, Manifest]:
    """The Job, and the HyperNodes."""
    found = shape(job)
    levels = len(job.site.levels)
    first = f"{job.name}-worker-0.{job.name}"
    task: dict[str, Any] = {"name": "worker", "replicas": found.pods}
    if found.part:
        label, size, depth = found.part
        task["partitionPolicy"] = Why(
            {
                "totalPartitions": found.pods // size,
                "partitionSize": size,
                "networkTopology": {"mode": "hard", "highestTierAllowed": levels - depth},
            },
            f"Each {size} pods that follow one another in one {label}: so it is cheapest.",
        )
    task["template"] = {"spec": {
        "restartPolicy": "Never",
        **running(job, found, '"$VC_TASK_INDEX"', first),
    }}  # fmt: skip
    spec: dict[str, Any] = {
        "schedulerName": "volcano",
        "queue": job.queue or "default",
        "minAvailable": Why(found.pods, "All or nothing: fewer could only wait for the rest."),
    }
    if found.within:
        label, depth = found.within
        spec["networkTopology"] = Why(
            {"mode": "hard", "highestTierAllowed": levels - depth},
            f"All pods under one HyperNode of this tier ({label}), the lowest that holds them.",
        )
    spec |= {
        "plugins": Why({"svc": [], "env": []}, f"svc: rank 0 is found at {first}; env: a pod has "
                       "its number in VC_TASK_INDEX."),
        "policies": Why([{"event": "PodFailed", "action": "RestartJob"},
                         {"event": "PodEvicted", "action": "RestartJob"}],
                        "A lone rank can't go on, so all start anew."),
        "maxRetry": 3,
        "tasks": [task],
    }  # fmt: skip
    value = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
             "metadata": {"name": job.name}, "spec": spec}  # fmt: skip
    texts = {f"{job.name}.volcano.yaml": Manifest(head(job, "For Volcano 1.15."), [value])}
    if levels:
        texts["hypernodes.yaml"] = Manifest(
            ["Once a cluster. Tier 1 is next to the nodes. Leave it out where Volcano finds its "
             "HyperNodes by itself."], list(_hypernodes(job).values()))  # fmt: skip
    return texts


def _hypernodes(job: Submission) -> dict[tuple[str, ...], dict[str, Any]]:
    """A HyperNode for each domain, by its path: those next to nodes by label, others by name."""
    levels = job.site.levels
    paths = dict.fromkeys(path[: depth + 1] for path in job.site.paths.values()
                          for depth in range(len(levels)))  # fmt: skip
    names = _names(list(paths), len(levels))
    found = {}
    for path in sorted(paths, key=lambda path: (-len(path), path)):
        if len(path) == len(levels):
            members = [{"type": "Node", "selector": {
                "labelMatch": {"matchLabels": {levels[-1]: path[-1]}}}}]  # fmt: skip
        else:
            below = [p for p in paths if len(p) == len(path) + 1 and p[:-1] == path]
            members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": names[p]}}}
                       for p in below]  # fmt: skip
        found[path] = {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": names[path]},
            "spec": {"tier": len(levels) - len(path) + 1, "members": members},
        }
    return found


def _names(paths: list[tuple[str, ...]], levels: int) -> dict[tuple[str, ...], str]:
    """Names of HyperNodes: letters that a name may have, at most 253, and none twice."""
    found: dict[tuple[str, ...], str] = {}
    taken: set[str] = set()
    for path in paths:
        plain = re.sub(r"[^a-z0-9]+", "-", path[-1].lower()).strip("-")
        name = f"tier{levels - len(path) + 1}-{plain}".rstrip("-")
        found[path] = name if name not in taken else f"{name}-{len(taken)}"
        taken.add(found[path])
    return found
