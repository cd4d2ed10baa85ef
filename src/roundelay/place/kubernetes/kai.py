"""KAI: a PodGroup with subgroups (scheduling.run.ai/v2alpha2), and its pods.

Pods have no owner, as KAI's podgrouper leaves ownerless pods that name their group alone, in every
version; those of a Job it would put into a group of its own.
"""

from __future__ import annotations

from typing import Any

from ..submission import Submission
from .nodes import levels_of
from .pods import Shape, head, running, service, shape
from .yaml import Manifest, Why, plain

TOPOLOGY = "roundelay"
LABEL = "roundelay.job"


def files(job: Submission) -> dict[str, Manifest]:
    """The PodGroup with its pods, and the Topology of the cluster."""
    found = shape(job)
    queue = job.queue or "default-queue"
    spec: dict[str, Any] = {
        "queue": queue,
        "minMember": Why(found.pods, "All or nothing: fewer could only wait for the rest."),
    }
    if found.within:
        spec["topologyConstraint"] = _constraint(
            found.within[0],
            ("The smallest domain that holds the job: without it the exchange crosses more links."),
        )
    if found.part:
        label, size, _ = found.part
        why = f"Each {size} pods that follow one another in one such domain: so it is cheapest."
        spec["subGroups"] = [
            {"name": f"part-{i}", "minMember": size, "topologyConstraint": _constraint(label, why)}
            for i in range(found.pods // size)]  # fmt: skip
        spec["subGroups"][1:] = map(plain, spec["subGroups"][1:])
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
             "metadata": {"name": job.name}, "spec": spec}  # fmt: skip
    pods = [_pod(job, found, number, queue) for number in range(found.pods)]
    pods[1:] = map(plain, pods[1:])  # a reason stands once
    topology = {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology",
                "metadata": {"name": TOPOLOGY},
                "spec": {"levels": levels_of(job.site)}}  # fmt: skip
    return {
        f"{job.name}.kai.yaml": Manifest(
            head(job, "For KAI Scheduler 0.10 and later. The queue must be there."),
            [service(job.name, {LABEL: job.name}), group, *pods]),
        "kai-topology.yaml": Manifest(
            ["Once a cluster. Levels from the top down, as the labels of the nodes have it."],
            [topology]),
    }  # fmt: skip


def _constraint(label: str, why: str) -> dict[str, Any]:
    return {"topology": TOPOLOGY, "requiredTopologyLevel": Why(label, why)}


def _pod(job: Submission, found: Shape, number: int, queue: str) -> dict[str, Any]:
    labels = {LABEL: job.name, "kai.scheduler/queue": queue}
    if found.part:
        labels["kai.scheduler/subgroup-name"] = f"part-{number // found.part[1]}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{job.name}-{number}", "labels": labels,
                     "annotations": {"pod-group-name": job.name}},
        "spec": {
            "schedulerName": "kai-scheduler",
            "hostname": f"{job.name}-{number}",
            "subdomain": job.name,
            "restartPolicy": "Never",
            **running(job, found, str(number), f"{job.name}-0.{job.name}"),
        },
    }  # fmt: skip
