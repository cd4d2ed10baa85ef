"""Kueue 0.19's side, once a cluster: Topology, ResourceFlavor and queues (v1beta2)."""

from __future__ import annotations

from typing import Any, Final

from ..submission import Submission
from .nodes import levels_of, resource
from .pods import Shape
from .yaml import Manifest, Why

API: Final = "kueue.x-k8s.io/v1beta2"
QUEUE: Final = "kueue.x-k8s.io/queue-name"
_ANNOTATION: Final = "kueue.x-k8s.io/podset-"
UNCONSTRAINED: Final = f"{_ANNOTATION}unconstrained-topology"
NAME: Final = "roundelay"
"""Of the cluster's objects."""


def asked(found: Shape) -> dict[str, Any]:
    """Of a pod template: which domains its pods share."""
    said: dict[str, Any] = {}
    if found.within:
        said[f"{_ANNOTATION}required-topology"] = Why(found.within[0], (
            "All pods in one such domain: that is the smallest that holds the job, and without "
            "it the exchange would cross more links."))  # fmt: skip
    elif not found.part:
        said[UNCONSTRAINED] = Why("true", (
            "No domain holds all pods, and none a fixed number of them: Kueue takes what is "
            "free."))  # fmt: skip
    if found.part:
        label, size, _ = found.part
        said[f"{_ANNOTATION}slice-required-topology"] = Why(
            label,
            (f"Each {size} pods that follow one another in one such domain: so it is cheapest."),
        )
        said[f"{_ANNOTATION}slice-size"] = str(size)
    return said


def cluster_file(job: Submission) -> dict[str, Manifest]:
    """The objects that a cluster has once."""
    cluster = job.site.cluster
    kind = resource(cluster)
    nvidia = kind.startswith("nvidia")
    labels = {"nvidia.com/gpu.present": "true"} if nvidia else {"kubernetes.io/os": "linux"}
    total = int(job.site.room.free.sum())
    queue = job.queue or "default"
    return {"kueue.yaml": Manifest(
        ["Once a cluster, by who runs it. Leave out what is there already: kubectl get "
         "topologies,resourceflavors,clusterqueues,localqueues -A. Written for Kueue 0.19 "
         "(v1beta2, from 0.15 on)."],
        [
            {"apiVersion": API, "kind": "Topology", "metadata": {"name": NAME},
             "spec": {"levels": Why(levels_of(job.site), (
                 "From the top down, as the labels of the nodes have it; a host's name may only be "
                 "the last."))}},
            {"apiVersion": API, "kind": "ResourceFlavor", "metadata": {"name": NAME},
             "spec": {"nodeLabels": Why(labels, "Which nodes it is: Kueue wants one label here."),
                      "topologyName": NAME}},
            {"apiVersion": API, "kind": "ClusterQueue", "metadata": {"name": NAME},
             "spec": {"namespaceSelector": {},
                      "resourceGroups": [{"coveredResources": [kind], "flavors": [
                          {"name": NAME, "resources": [{"name": kind, "nominalQuota": Why(
                              str(total), "What is free of the nodes here, now.")}]}]}]}},
            {"apiVersion": API, "kind": "LocalQueue",
             "metadata": {"name": queue, "namespace": "default"},
             "spec": {"clusterQueue": NAME}},
        ])}  # fmt: skip
