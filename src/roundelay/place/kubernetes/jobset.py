"""A JobSet (v1alpha2, of JobSet 0.12) that Kueue places by its topology."""

from __future__ import annotations

from ..submission import Submission
from .kueue import QUEUE, asked, cluster_file
from .pods import head, running, shape
from .yaml import Manifest, Why

VERSION = "jobset.x-k8s.io/v1alpha2"


def files(job: Submission) -> dict[str, Manifest]:
    """The JobSet, and what Kueue needs once a cluster."""
    found = shape(job)
    first = f"{job.name}-workers-0-0.{job.name}"
    pod = {
        "metadata": {"annotations": asked(found)},
        "spec": {
            "restartPolicy": Why("Never", "The JobSet starts all anew: a lone rank can't go on."),
            **running(job, found, '"$JOB_COMPLETION_INDEX"', first),
        },
    }
    workers = {
        "name": "workers",
        "replicas": 1,
        "template": {"spec": {
            "completionMode": Why("Indexed", "Pods are numbered, and Kueue packs them in order."),
            "parallelism": found.pods,
            "completions": found.pods,
            "backoffLimit": 0,
            "template": pod,
        }},
    }  # fmt: skip
    value = {
        "apiVersion": VERSION,
        "kind": "JobSet",
        "metadata": {"name": job.name, "labels": {
            QUEUE: Why(job.queue or "default", "Kueue admits all pods at once, or none.")}},
        "spec": {
            "suspend": Why(True, "Kueue starts it once there is room for all."),
            "network": {"enableDNSHostnames": Why(True, f"Rank 0 is found at {first}.")},
            "failurePolicy": {"maxRestarts": Why(3, "From the last checkpoint, if the program "
                                                    "keeps one.")},
            "replicatedJobs": [workers],
        },
    }  # fmt: skip
    own = Manifest(head(job, "For JobSet 0.12 and Kueue 0.19."), [value])
    return {f"{job.name}.jobset.yaml": own, **cluster_file(job)}
