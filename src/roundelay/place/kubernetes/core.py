"""Kubernetes 1.37 by itself: a PodGroup (scheduling.k8s.io/v1beta1) and its Job.

A PodGroup has one topology constraint. Where parts of a job share smaller domains each, every part
has a PodGroup and a Job, under a CompositePodGroup (v1alpha3) that refers to a Workload.
"""

from __future__ import annotations

from typing import Any

from ...errors import RoundelayError
from ..site import at_least
from ..submission import Submission
from .pods import Shape, head, running, service, shape
from .yaml import Manifest, Why, plain

GROUP = "scheduling.k8s.io"
LABEL = "roundelay.job"
LEAST = "1.37"
"""The version from which on PodGroup is of v1beta1."""


def files(job: Submission) -> dict[str, Manifest]:
    """The groups, and the Jobs whose pods are in them.

    Raises:
        RoundelayError: nodes are older than that.
    """
    version = job.site.version
    if version and not at_least(version, LEAST):
        raise RoundelayError(f"nodes are of Kubernetes {version}, where {GROUP}/v1beta1 has no "
                             f"PodGroup; expected {LEAST} or later, or another --for")  # fmt: skip
    found = shape(job)
    values: list[dict[str, Any]] = [service(job.name, {LABEL: job.name})]
    gates, versions = "GenericWorkload, TopologyAwareWorkloadScheduling", f"{GROUP}/v1beta1"
    if found.part:
        label, size, _ = found.part
        gates, versions = f"{gates}, CompositePodGroup", f"{versions}, {GROUP}/v1alpha3"
        values += _composite(job, found)
        for i in range(found.pods // size):
            constraint = Why(
                [{"key": label}], f"These {size} pods in one such domain: so it is cheapest."
            )
            both = (_group(f"{job.name}-{i}", size, constraint, job.name),
                    _job(job, found, f"{job.name}-{i}", size, i * size))  # fmt: skip
            values += map(plain, both) if i else both  # a reason stands once
    else:
        whole = "All pods in one such domain, the smallest that holds them."
        within = Why([{"key": found.within[0]}], whole) if found.within else None
        values += [_group(job.name, found.pods, within, None),
                   _job(job, found, job.name, found.pods, 0)]  # fmt: skip
    note = (f"For Kubernetes 1.37, whose API server and scheduler have these features off: turn on "
            f"{gates} (--feature-gates), and {versions} (--runtime-config).")  # fmt: skip
    return {f"{job.name}.core.yaml": Manifest(head(job, note), values)}


def _composite(job: Submission, found: Shape) -> list[dict[str, Any]]:
    assert found.part is not None
    label, size, _ = found.part
    parts = found.pods // size
    policy = {"gang": {"minGroupCount": Why(parts, "All parts or none.")}}
    spec: dict[str, Any] = {
        "schedulingPolicy": policy,
        "workloadRef": {"workloadName": job.name, "templateName": "parts"},
    }
    if found.within:
        spec["schedulingConstraints"] = {"topology": Why([{"key": found.within[0]}], (
            "All parts in one such domain, the smallest that holds them."))}  # fmt: skip
    template = {"name": "parts", "schedulingPolicy": {"gang": {"minGroupCount": parts}},
                "podGroupTemplates": [{
                    "name": "part", "schedulingPolicy": {"gang": {"minCount": size}},
                    "schedulingConstraints": {"topology": [{"key": label}]}}]}  # fmt: skip
    return [
        {"apiVersion": f"{GROUP}/v1alpha3", "kind": "Workload", "metadata": {"name": job.name},
         "spec": {"compositePodGroupTemplates": [template]}},
        {"apiVersion": f"{GROUP}/v1alpha3", "kind": "CompositePodGroup",
         "metadata": {"name": job.name}, "spec": spec},
    ]  # fmt: skip


def _group(name: str, pods: int, constraint: Why | None, parent: str | None) -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {
        "minCount": Why(pods, "All or nothing: fewer could only wait for the rest.")}}}  # fmt: skip
    if constraint:
        spec["schedulingConstraints"] = {"topology": constraint}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    spec["disruptionMode"] = Why({"all": {}}, "A lone rank can't go on, so all go together.")
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "PodGroup", "metadata": {"name": name},
            "spec": spec}  # fmt: skip


def _job(job: Submission, found: Shape, name: str, pods: int, first: int) -> dict[str, Any]:
    whole = f"{job.name}-0" if found.part else job.name
    rank = f"$$((JOB_COMPLETION_INDEX + {first}))" if first else '"$JOB_COMPLETION_INDEX"'
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": Why("Indexed", "Pods are numbered; the number is torchrun's."),
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": {LABEL: job.name}},
                "spec": {
                    "schedulingGroup": {"podGroupName": name},
                    "subdomain": job.name,
                    "restartPolicy": "Never",
                    **running(job, found, rank, f"{whole}-0.{job.name}"),
                },
            },
        },
    }
