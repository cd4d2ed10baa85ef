"""What all kinds have in common: the pods of a job, and the domains that they must share."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from ...errors import RoundelayError
from ...units import format_time
from ..submission import Submission
from .nodes import resource
from .yaml import Why

PORT: Final = 29400
"""At which the ranks meet, on the pod of rank 0."""

SHARED: Final[Mapping[str, Any]] = MappingProxyType({"name": "shm", "emptyDir": Why(
    {"medium": "Memory"}, "/dev/shm, over which ranks of a host exchange: containers have 64 MiB "
    "of it by themselves.")})  # fmt: skip
"""A volume of a pod."""
SHARED_AT: Final[Mapping[str, Any]] = MappingProxyType({"name": "shm", "mountPath": "/dev/shm"})
"""Where a container has it."""


@dataclass(frozen=True)
class Shape:
    """A job as pods, one a host.

    Attributes:
        pods: how many.
        each: ranks of a pod.
        within: the label of the smallest domain that all share, and which level it is; None where
            there is none.
        part: the label of smaller domains of which each has as many pods, one after another, how
            many these are, and which level it is; None where there are none.
    """

    pods: int
    each: int
    within: tuple[str, int] | None
    part: tuple[str, int, int] | None


def shape(job: Submission) -> Shape:
    """Which domains keep the exchange as cheap as it was found.

    Raises:
        RoundelayError: hosts have different numbers of ranks, or ranks that don't follow.
    """
    if job.each is None:
        raise RoundelayError(
            f"{job.name}: hosts have ranks that don't follow one another, or not "
            "as many each; expected pods that are alike. Give whole hosts by --free"
        )
    paths = [job.site.paths[host] for host in job.used]
    levels, within = job.site.levels, None
    for depth in range(len(levels) - 1, -1, -1):
        if len({path[: depth + 1] for path in paths}) == 1:
            within = (levels[depth], depth)
            break
    return Shape(len(paths), job.each, within, _part(job, within[1] if within else -1))


def _part(job: Submission, above: int) -> tuple[str, int, int] | None:
    paths = [job.site.paths[host] for host in job.used]
    for depth in range(len(job.site.levels) - 1, above, -1):
        runs = [len(list(run)) for _, run in groupby(path[: depth + 1] for path in paths)]
        once = len(runs) == len({path[: depth + 1] for path in paths})
        if once and len({*runs}) == 1 and runs[0] > 1:
            return job.site.levels[depth], runs[0], depth
    return None


def _network(job: Submission) -> list[str]:
    """What pods need beyond cards, if their exchange is to be as quick as was found."""
    if len(job.used) == 1 or not job.cards or not job.site.cluster.nics.count:
        return []
    offered = job.site.networks
    by = f"these nodes offer {', '.join(offered)}" if offered else (
        "a resource of a device plugin, or hostNetwork")  # fmt: skip
    return [f"Reckoned with RDMA. Pods get at network cards only by what the cluster has for it "
            f"({by}): add it below. Without it ranks exchange by TCP, and far more slowly."
            ]  # fmt: skip


def head(job: Submission, *more: str) -> list[str]:
    """What stands above a manifest: what was found, against what others choose."""
    found = job.placed
    return [
        f"{job.name}: {len(job.hosts)} ranks on {len(job.used)} hosts. Its exchange takes "
        f"{format_time(found.price.seconds)} a step on {', '.join(job.used[:8])}"
        f"{' and so on' if len(job.used) > 8 else ''}"
        f" ({job.others}).",
        *(f"- {why}" for why in job.because),
        *_network(job),
        *more,
    ]


def requests(job: Submission, each: int) -> dict[str, str]:
    """What a pod asks for."""
    return {resource(job.site.cluster): str(each)}


def running(job: Submission, found: Shape, rank: str, first: str) -> dict[str, Any]:
    """What of a pod's specification starts its ranks; see `_container`."""
    spec: dict[str, Any] = {"containers": [_container(job, found, rank, first)]}
    spec["volumes"] = [SHARED]
    if job.site.taints:
        spec["tolerations"] = Why(
            [{"key": key, "operator": "Exists"} for key in job.site.taints],
            "Taints that all nodes here have, or all with cards: only such pods get there.",
        )
    return spec


def _container(job: Submission, found: Shape, rank: str, first: str) -> dict[str, Any]:
    """The container of a pod, which starts its ranks.

    Args:
        job: the job.
        found: its shape.
        rank: shell's word for the number of the pod.
        first: shell's word for the name of the first pod.
    """
    words = " ".join(map(shlex.quote, job.words)).replace("$", "$$")  # kept by Kubernetes
    script = (f"exec torchrun --nnodes={found.pods} --nproc-per-node={found.each} \\\n"
              f"  --node-rank={rank} --master-addr={first} --master-port={PORT} \\\n"
              f"  {words}")  # fmt: skip
    if found.pods == 1:
        script = f"exec torchrun --standalone --nproc-per-node={found.each} {words}"
    resources = {"requests" if "cpu" in requests(job, 1) else "limits": requests(job, found.each)}
    return {
        "name": "worker",
        "image": job.image,
        "command": Why(["bash", "-c", script], "A static rendezvous: ranks follow the number of "
                       "the pod. torchrun's c10d would number them anew, and lose the order."),
        "resources": resources,
        "volumeMounts": [SHARED_AT],
    }  # fmt: skip


def service(name: str, selector: Mapping[str, str]) -> dict[str, Any]:
    """A headless service, by which pods have names."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {
            "clusterIP": Why("None", "Headless: a name for each pod, such as that of rank 0."),
            "publishNotReadyAddresses": True,
            "selector": dict(selector),
        },
    }
