"""Whether an API server keeps a manifest whole: strict schemas, and rules that they can't say."""

from functools import cache
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.37.0"
HOSTNAME = "kubernetes.io/hostname"


@cache
def _crds():
    return yaml.safe_load((Path(__file__).parent / "files" / "crds.yaml").read_text())


def check(value):
    """Raises where a manifest isn't valid in strict mode."""
    kind = f"{value['apiVersion']} {value['kind']}"
    if kind not in _crds():
        kubernetes_validate.validate(value, VERSION, strict=True)
        return
    assert {*value} <= {"apiVersion", "kind", "metadata", "spec"}, kind
    _object("v1", "ConfigMap", {"metadata": value["metadata"]})
    jsonschema.Draft202012Validator(_crds()[kind]).validate(value["spec"])
    for template in _found(value["spec"], "PodTemplate", _crds()[kind]):
        _object("v1", "PodTemplate", {"template": template, "metadata": {"name": "x"}})
    for template in _found(value["spec"], "JobTemplate", _crds()[kind]):
        job = {"spec": template["spec"], "metadata": {"name": "x", **template.get("metadata", {})}}
        assert {*template} <= {"spec", "metadata"}
        _object("batch/v1", "Job", job)
    for behaviour in _found(value["spec"], "Behaviour", _crds()[kind]):
        target = {"scaleTargetRef": {"kind": "a", "name": "a"}, "maxReplicas": 1}
        _object("autoscaling/v2", "HorizontalPodAutoscaler",
                {"metadata": {"name": "x"}, "spec": {**target, "behavior": behaviour}})  # fmt: skip
    _rules(value["kind"], value["spec"])


def _object(version, kind, rest):
    kubernetes_validate.validate(
        {"apiVersion": version, "kind": kind, **rest}, VERSION, strict=True
    )


def _found(value, comment, schema):
    """Parts of a value whose schema has a comment."""
    if schema.get("$comment") == comment:
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _found(one, comment, schema.get("properties", {}).get(key, {}))
    elif isinstance(value, list):
        for one in value:
            yield from _found(one, comment, schema.get("items", {}))


def _rules(kind, spec):
    """CEL rules and webhooks of these kinds, as far as the manifests here touch them."""
    if kind == "Topology":
        levels = [level["nodeLabel"] for level in spec["levels"]]
        assert len({*levels}) == len(levels)
        assert HOSTNAME not in levels[:-1]
    elif kind == "ResourceFlavor":
        assert "topologyName" not in spec or spec["nodeLabels"]
    elif kind == "ClusterQueue":
        for group in spec["resourceGroups"]:
            for flavor in group["flavors"]:
                assert [r["name"] for r in flavor["resources"]] == group["coveredResources"]
    elif kind == "PodGroup" and "subGroups" in spec:
        assert sum(group["minMember"] for group in spec["subGroups"]) == spec["minMember"]
        assert len({group["name"] for group in spec["subGroups"]}) == len(spec["subGroups"])
    elif kind == "Job":
        for task in spec["tasks"]:
            parts = task.get("partitionPolicy")
            if parts:
                assert parts["totalPartitions"] * parts["partitionSize"] == task["replicas"]
    elif kind == "LeaderWorkerSet":
        template = spec["leaderWorkerTemplate"]
        if "subGroupPolicy" in template:
            assert template["size"] % template["subGroupPolicy"]["subGroupSize"] == 0
        _topology(template["workerTemplate"].get("metadata", {}), template["size"])
    elif kind == "ScaledObject":
        assert spec.get("idleReplicaCount", 0) <= spec["minReplicaCount"] <= spec["maxReplicaCount"]
        assert all(float(t["metadata"]["threshold"]) > 0 for t in spec["triggers"])
    elif kind == "JobSet":
        for job in spec["replicatedJobs"]:
            inner = job["template"]["spec"]
            _topology(inner["template"]["metadata"], inner["parallelism"])


def _topology(metadata, pods):
    """Kueue's webhook: which annotations go together, and their bounds."""
    prefix = "kueue.x-k8s.io/podset-"
    given = {key.removeprefix(prefix): value for key, value in
             metadata.get("annotations", {}).items() if key.startswith(prefix)}  # fmt: skip
    known = {"required-topology", "preferred-topology", "unconstrained-topology",
             "slice-required-topology", "slice-size", "group-name"}  # fmt: skip
    assert {*given} <= known
    assert sum(f"{word}-topology" in given for word in ("required", "preferred",
                                                        "unconstrained")) <= 1  # fmt: skip
    assert ("slice-required-topology" in given) == ("slice-size" in given)
    if "slice-size" in given:
        assert 1 <= int(given["slice-size"]) <= pods
        assert "group-name" not in given
    if "group-name" in given:
        assert "required-topology" in given or "preferred-topology" in given
