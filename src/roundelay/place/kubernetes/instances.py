"""A service whose instances come and go: each is a gang, and what scales them.

A LeaderWorkerSet of LWS 0.10 has the instances. By use a HorizontalPodAutoscaler (autoscaling/v2)
says how many, which looks at leaders only (LWS, hpaPodSelector); by requests a ScaledObject of
KEDA 2 (v1alpha1, reference of ScaledObject and of the Prometheus scaler).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from ...errors import RoundelayError
from .crds import Definitions, checked
from .pods import SHARED, SHARED_AT
from .yaml import Manifest, Why, plain

PORT: Final = 8000
WINDOW: Final = 3600
"""Seconds of a stabilisation window at most (autoscaling/v2, HPAScalingRules)."""
TREND: Final = 300
"""Seconds from which a trend is read."""
LOOK: Final = 15
"""Seconds from one look to the next; that of Kubernetes' autoscaler."""
POLICIES: Final = ("fixed", "utilisation", "queue", "forecast")
_LWS: Final = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
_LABEL: Final = "leaderworkerset.sigs.k8s.io/"
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class Instances:
    """A service, and how it scales.

    Attributes:
        name: of all objects.
        policy: one of `POLICIES`.
        least, most: instances.
        target: part of the places of an instance that should be taken; None where it is fixed.
        places: requests that run at once in one.
        calm: seconds for which fewer must have been enough.
        start: seconds until an instance is ready.
        pods: of an instance, one a host.
        cards: of a pod.
        resource: what a pod asks for, as many as cards.
        image: of containers.
        program: of each pod, as one types it.
        prometheus: its address.
        notes: what stands above.
    """

    name: str
    policy: str
    least: int
    most: int
    target: float | None
    places: int
    calm: float
    start: float
    pods: int
    cards: int
    resource: str
    image: str
    program: str
    prometheus: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise RoundelayError(f"name {self.name!r:.80}; expected small letters, digits and -, "
                                 "40 at most, such as chat")  # fmt: skip
        if not re.fullmatch(r"\S+", self.image) or not self.image.isprintable():
            raise RoundelayError(f"image {self.image!r:.80}; expected such as registry.example/a:1")
        if not re.fullmatch(r"https?://[^\s\"]+", self.prometheus):
            raise RoundelayError(f"Prometheus at {self.prometheus!r:.80}; expected an address such "
                                 "as http://prometheus.monitoring:9090")  # fmt: skip
        if self.calm > WINDOW:
            raise RoundelayError(f"a calm of {self.calm:g} s; Kubernetes keeps {WINDOW} s at most")

    @property
    def share(self) -> float:
        """Requests of an instance that should be there."""
        return self.places * (self.target or 1.0)


def files(found: Instances, known: Definitions | None = None) -> dict[str, str]:
    """Manifests by name of the file.

    Args:
        found: the service.
        known: the custom kinds of a cluster, which must keep them whole.

    Raises:
        RoundelayError: a program that is none, or fields that the cluster would drop.
    """
    values = [_set(found), _door(found)]
    if found.policy != "fixed":
        values.append(_watched(found))
        values.append(_by_use(found) if found.policy == "utilisation" else _by_requests(found))
    manifest = Manifest([*found.notes, *_needs(found)], values)
    return checked({f"{found.name}.yaml": manifest}, known)


def _needs(found: Instances) -> list[str]:
    if found.policy == "fixed":
        return ["For LeaderWorkerSet 0.10."]
    by = "KEDA 2.12 or later"
    if found.policy == "utilisation":
        by = ("prometheus-adapter with a rule that gives pods the metric roundelay_llm_running "
              "(seriesQuery 'roundelay_llm_running{namespace!=\"\",pod!=\"\"}', metricsQuery "
              "'sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)')")  # fmt: skip
    return [f"For LeaderWorkerSet 0.10, the Prometheus Operator, and {by}."]


def _leaders(found: Instances) -> dict[str, str]:
    return {f"{_LABEL}name": found.name, f"{_LABEL}worker-index": "0"}


def _set(found: Instances) -> dict[str, Any]:
    leader, worker = (_pod(found, door=door) for door in (True, False))
    template: dict[str, Any] = {
        "size": Why(found.pods, "Pods of an instance, one a host: they come and go together."),
        "restartPolicy": Why("RecreateGroupOnPodRestart", "A lone rank can't go on."),
    }
    if found.pods > 1:
        template["leaderTemplate"] = leader
    template["workerTemplate"] = plain(worker) if found.pods > 1 else leader
    spec: dict[str, Any] = {}
    if found.policy == "fixed":
        spec["replicas"] = Why(found.most, "Always as many instances.")
    spec["startupPolicy"] = Why("LeaderCreated", "Ranks wait for one another by themselves." + (
        "" if found.policy == "fixed" else " There is no `replicas`: that is the autoscaler's, and "
        "would be set back by each `kubectl apply`."))  # fmt: skip
    spec["leaderWorkerTemplate"] = template
    return {**_LWS, "metadata": {"name": found.name}, "spec": spec}


def _pod(found: Instances, *, door: bool) -> dict[str, Any]:
    try:
        words = shlex.split(found.program)
    except ValueError as error:
        raise RoundelayError(f"program {found.program!r:.80}: {error}") from None
    if not words:
        raise RoundelayError("no program; expected such as 'roundelay llm --host 0.0.0.0'")
    cards = {found.resource: str(found.cards)}
    container: dict[str, Any] = {
        "name": "instance",
        "image": found.image,
        "command": [word.replace("$", "$$") for word in words],  # kept by Kubernetes
        "resources": {"requests" if found.resource == "cpu" else "limits": cards},
        "volumeMounts": [SHARED_AT],
    }
    if door:
        container["ports"] = [{"name": "http", "containerPort": PORT}]
        container["readinessProbe"] = Why(
            {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 5},
            f"No requests before the model is there; about {ceil(found.start)} s were reckoned.",
        )
    grace = Why(90, "An instance that goes finishes what it has: `roundelay llm` takes 60 s.")
    return {"spec": {"terminationGracePeriodSeconds": grace, "containers": [container],
                     "volumes": [SHARED]}}  # fmt: skip


def _door(found: Instances) -> dict[str, Any]:
    name = Why(f"{found.name}-leader", f"The LeaderWorkerSet makes a Service {found.name} itself.")
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
        "selector": Why(_leaders(found), "The leader of each instance takes its requests."),
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}  # fmt: skip


def _watched(found: Instances) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": found.name},
        "spec": {
            "selector": {"matchLabels": _leaders(found)},
            "podMetricsEndpoints": [{"port": "http", "path": "/metrics", "interval": Why(
                f"{LOOK}s", "As often as the autoscaler looks.")}]},
    }  # fmt: skip


def _behaviour(found: Instances) -> dict[str, Any]:
    return {"scaleDown": {"stabilizationWindowSeconds": Why(ceil(found.calm), (
        "Fewer instances only after so long a calm, as simulated: to start one again takes "
        f"about {ceil(found.start)} s."))}}  # fmt: skip


def _by_use(found: Instances) -> dict[str, Any]:
    share = Why(f"{max(1, round(found.share * 1000))}m",
                f"{found.target:g} of {found.places} requests that run at once; m is a "
                "thousandth.")  # fmt: skip
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": found.name},
        "spec": {
            "scaleTargetRef": Why({**_LWS, "name": found.name},
                                  "A step is a whole instance, never a pod of one."),
            "minReplicas": found.least,
            "maxReplicas": found.most,
            "metrics": [{"type": "Pods", "pods": {
                "metric": {"name": Why("roundelay_llm_running", (
                    "Of leaders, as workers have none. Not the use of cards: it is near 100 % "
                    "with one request as with many."))},
                "target": {"type": "AverageValue", "averageValue": share}}}],
            "behavior": _behaviour(found),
        },
    }  # fmt: skip


def _by_requests(found: Instances) -> dict[str, Any]:
    there = f'sum(roundelay_llm_requests{{pod=~"{found.name}-[0-9]+"}})'
    query = Why(there, "Running or waiting, of all instances: so it sees a queue. Add the label "
                "namespace where several have a service of this name.")  # fmt: skip
    if found.policy == "forecast":
        ahead = f"predict_linear({there}[{TREND}s:{LOOK}s], {ceil(found.start)})"
        query = Why(f"clamp_min({ahead}, scalar({there}))", (
            "No controller looks ahead by itself: a HorizontalPodAutoscaler and KEDA know what is "
            "there now, and KEDA's cron only the clock. This is what is nearest: the line through "
            f"{TREND} s of requests, {ceil(found.start)} s ahead, which is a start, and no fewer "
            "than there are. What was simulated weighs each request by its tokens and smooths "
            "(Holt), so the figures above are not those of this query."))  # fmt: skip
    trigger = {
        "type": "prometheus",
        "metricType": Why("AverageValue", "Requests over the threshold, rounded up."),
        "metadata": {
            "serverAddress": found.prometheus,
            "query": query,
            "threshold": Why(f"{found.share:g}", (
                f"{found.target:g} of the {found.places} requests that an instance runs at "
                "once.")),
            "ignoreNullValues": Why("false", "Where nothing is measured, nothing is changed."),
        },
    }  # fmt: skip
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": found.name},
        "spec": {
            "scaleTargetRef": Why({**_LWS, "name": found.name},
                                  "A step is a whole instance, never a pod of one."),
            "pollingInterval": LOOK,
            "minReplicaCount": Why(found.least, "Never 0, so KEDA's cooldownPeriod, which is for "
                                   "the way to 0, has no say."),
            "maxReplicaCount": found.most,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _behaviour(found)}},
            "triggers": [trigger],
        },
    }  # fmt: skip
