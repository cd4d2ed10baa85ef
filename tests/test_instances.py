"""Manifests of a service whose instances come and go."""

import shlex
from math import ceil

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes_rules import check

from roundelay.cli import run
from roundelay.errors import RoundelayError
from roundelay.place.kubernetes.instances import POLICIES, Instances, files

PLAIN = {"name": "chat", "policy": "queue", "least": 1, "most": 4, "target": 0.6, "places": 32,
         "calm": 300.0, "start": 60.0, "pods": 1, "cards": 8, "resource": "nvidia.com/gpu",
         "image": "a/b:1", "program": "serve", "prometheus": "http://p:9090"}  # fmt: skip


def manifests(**changed):
    """By kind, checked as an API server does."""
    found = Instances(**PLAIN | changed)
    (text,) = files(found).values()
    values = list(yaml.safe_load_all(text))
    for value in values:
        check(value)
    return {value["kind"]: value for value in values}


@settings(max_examples=40)
@given(
    st.sampled_from(POLICIES),
    st.tuples(st.integers(1, 9), st.integers(0, 99)),
    st.floats(0.01, 1),
    st.integers(1, 4096),
    st.tuples(st.floats(0, 3600), st.floats(0, 9999)),
    st.integers(1, 16),
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
             min_size=1, max_size=3),
)  # fmt: skip
def test_any_service_is_valid_in_strict_mode(policy, counts, target, places, times, pods, words):
    found = manifests(policy=policy, least=counts[0], most=sum(counts), target=target,
                      places=places, calm=times[0], start=times[1], pods=pods,
                      program=shlex.join(words))  # fmt: skip
    template = found["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    (container,) = template["workerTemplate"]["spec"]["containers"]
    assert [word.replace("$$", "$") for word in container["command"]] == words


def test_the_autoscaler_by_use():
    """Its rule is that of the policy: so many running requests an instance, in the mean."""
    found = manifests(policy="utilisation", least=2, most=5, calm=59.5)
    spec = found["HorizontalPodAutoscaler"]["spec"]
    assert spec["scaleTargetRef"]["kind"] == "LeaderWorkerSet"
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 5)
    (metric,) = spec["metrics"]
    assert metric["pods"]["target"] == {"type": "AverageValue", "averageValue": "19200m"}
    assert metric["pods"]["metric"]["name"] == "roundelay_llm_running"
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 60
    assert "replicas" not in found["LeaderWorkerSet"]["spec"]


@pytest.mark.parametrize("policy", ["queue", "forecast"])
def test_keda_by_requests(policy):
    spec = manifests(policy=policy, start=90.5)["ScaledObject"]["spec"]
    (trigger,) = spec["triggers"]
    there = 'sum(roundelay_llm_requests{pod=~"chat-[0-9]+"})'
    ahead = f"clamp_min(predict_linear({there}[300s:15s], {ceil(90.5)}), scalar({there}))"
    assert trigger["metadata"]["query"] == (ahead if policy == "forecast" else there)
    assert trigger["metadata"]["threshold"] == "19.2"
    behaviour = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behaviour["scaleDown"]["stabilizationWindowSeconds"] == 300


def test_only_leaders_have_a_door():
    """LWS makes a headless Service with its own name; the door must have another."""
    found = manifests(pods=2, policy="fixed", target=None)
    template = found["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    (leader,), (worker,) = (template[f"{who}Template"]["spec"]["containers"]
                            for who in ("leader", "worker"))  # fmt: skip
    assert "readinessProbe" in leader
    assert "readinessProbe" not in worker
    assert found["Service"]["metadata"]["name"] == "chat-leader"
    assert found["Service"]["spec"]["selector"] == {
        "leaderworkerset.sigs.k8s.io/name": "chat",
        "leaderworkerset.sigs.k8s.io/worker-index": "0"}  # fmt: skip
    assert found["LeaderWorkerSet"]["spec"]["replicas"] == 4
    assert {*found} == {"LeaderWorkerSet", "Service"}


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"name": "Chat"}, "small letters"),
        ({"name": "c" * 41}, "40 at most"),
        ({"image": "a b"}, "image 'a b'"),
        ({"prometheus": "prom:9090"}, "expected an address"),
        ({"calm": 3601.0}, "3600 s at most"),
        ({"program": "'"}, "No closing quotation"),
        ({"program": " "}, "no program"),
    ],
)
def test_what_kubernetes_does_not_take(changed, complaint):
    with pytest.raises(RoundelayError, match=complaint):
        files(Instances(**PLAIN | changed))


def test_the_command_writes(tmp_path, capsys):
    words = ["inference-sim", "--cluster", "dgx-h100:3", "--policy", "queue", "--target", "0.5",
             "--write", str(tmp_path)]  # fmt: skip
    assert run([*words, "--most", "3", "--batch", "16"]) == 0
    (text,) = [file.read_text() for file in tmp_path.iterdir()]
    for value in yaml.safe_load_all(text):
        check(value)
    assert 'threshold: "8"' in text
    assert "roundelay llm` serves a small model on processors" in " ".join(text.split())
    assert run([*words, "--tp", "16", "--program", "serve.sh", "--name", "large"]) == 0
    text = (tmp_path / "large.yaml").read_text()
    assert "size: 2" in text
    assert 'nvidia.com/gpu: "8"' in text
    assert "wrote" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--policy", "queue", "--policy", "fixed"], "2 of --policy"),
        ([], "0 of --policy"),
        (["--policy", "fixed", "--prometheus", "http://x"], "--prometheus changes nothing with"),
        (["--policy", "fixed", "--tp", "12", "--hidden", "1536"], "expected a multiple"),
        (["--policy", "fixed", "--tp", "16"], "expected --program"),
    ],
)
def test_the_command_refuses(words, complaint, capsys, tmp_path):
    folder = tmp_path / "none"
    assert run(["inference-sim", "--cluster", "dgx-h100:3", "--write", str(folder), *words]) == 2
    assert complaint in capsys.readouterr().err
    assert not folder.exists()
