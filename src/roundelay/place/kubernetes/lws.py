"""A LeaderWorkerSet (v1, of LWS 0.10).

The unit of scale is one gang, such as an instance of a model whose tensors are spread over several
hosts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..submission import Submission
from .kueue import QUEUE, UNCONSTRAINED, asked, cluster_file
from .pods import Shape, head, running, shape
from .yaml import Manifest, Why

PREFIX = "leaderworkerset.sigs.k8s.io"


def _asked(found: Shape) -> dict[str, Any]:
    """Of both sets, the leader and its workers, which can't have slices together."""
    if found.within or not found.part:
        return asked(replace(found, part=None))
    label, size, _ = found.part
    return {UNCONSTRAINED: Why("true", (
        f"No domain holds all pods. It would be cheapest if each {size} that follow one another "
        f"had one {label}, but Kueue can't be asked for that here, as a leader and its workers "
        "are two sets for it. Without --queue LeaderWorkerSet itself asks for it."))}  # fmt: skip


def files(job: Submission) -> dict[str, Manifest]:
    """The LeaderWorkerSet; with a queue also what Kueue needs once a cluster."""
    found = shape(job)
    metadata: dict[str, Any] = {"name": job.name}
    inside: dict[str, Any] = {}
    if job.queue:
        metadata["labels"] = {QUEUE: Why(job.queue, "Kueue admits all pods of a gang, or none.")}
        inside = _asked(found)
        if found.within and found.pods > 1:
            inside["kueue.x-k8s.io/podset-group-name"] = Why(
                job.name, "The leader and its workers are two sets for Kueue: in one domain here."
            )
    elif found.within:
        metadata["annotations"] = {f"{PREFIX}/exclusive-topology": Why(found.within[0], (
            "All pods of a gang in one such domain, and no two gangs in one: without Kueue "
            "(--queue) that is the way to keep a gang together."))}  # fmt: skip
    template: dict[str, Any] = {
        "size": Why(found.pods, "Pods of a gang, its leader among them."),
        "restartPolicy": Why("RecreateGroupOnPodRestart", "A lone rank can't go on."),
    }
    if found.part and not job.queue:
        label, size, _ = found.part
        metadata.setdefault("annotations", {})[f"{PREFIX}/subgroup-exclusive-topology"] = Why(
            label,
            f"Each {size} pods that follow one another in one such domain: so it is cheapest.",
        )
        template["subGroupPolicy"] = {"subGroupSize": size}
    pod: dict[str, Any] = {"metadata": {"annotations": inside}} if inside else {}
    pod["spec"] = running(job, found, '"$LWS_WORKER_INDEX"', '"$LWS_LEADER_ADDRESS"')
    template["workerTemplate"] = pod
    value = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata,
        "spec": {
            "replicas": Why(1, "Gangs: this is what an autoscaler changes, never single pods."),
            "startupPolicy": Why("LeaderCreated", "Ranks wait for one another by themselves."),
            "leaderWorkerTemplate": template,
        },
    }
    own = Manifest(head(job, "For LeaderWorkerSet 0.10."), [value])
    return {f"{job.name}.lws.yaml": own, **(cluster_file(job) if job.queue else {})}
