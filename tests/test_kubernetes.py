"""Hosts by labels of Kubernetes, manifests that its servers keep whole, and Kueue's answers."""

import contextlib
import json
import re
import shlex

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kubernetes_rules import check

from roundelay import cli
from roundelay.clusters import cluster
from roundelay.errors import RoundelayError
from roundelay.place import parallel, place, read_job
from roundelay.place.files import read_site
from roundelay.place.kubernetes import admitted, files
from roundelay.place.kubernetes.yaml import Why, documents, plain
from roundelay.place.slurm import files as slurm_files
from roundelay.place.submission import Submission

KINDS = ("jobset", "kai", "volcano", "core", "lws")
TIERS = ("fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0")


def node(name, labels, cards=8, **status):
    found = {"nvidia.com/gpu.present": "true", "kubernetes.io/hostname": name, **labels}
    return {"kind": "Node", "metadata": {"name": name, "labels": found}, "spec": {},
            "status": {"allocatable": {"nvidia.com/gpu": str(cards)}, **status,
                       "conditions": [{"type": "Ready", "status": "True"}]}}  # fmt: skip


def nodes(spines=2, leaves=2, each=4):
    """Nodes n0, n1 and so on under leaves of spines."""
    return [node(f"n{(s * leaves + leaf) * each + i}", dict(zip(TIERS, (f"s{s}", f"l{s}{leaf}"),
                                                               strict=True)))
            for s in range(spines) for leaf in range(leaves) for i in range(each)]  # fmt: skip


def site(items, machine="dgx-h100"):
    data = json.dumps({"kind": "List", "items": items}).encode()
    return read_site(data, cluster(machine), "nodes.json")


def submission(job, where, **more):
    job = read_job(job) if isinstance(job, str) else job
    return Submission(place(job, where.room), where, **more)


def manifests(job, kind):
    """The documents of each file, checked."""
    found = {name: list(yaml.safe_load_all(text)) for name, text in files(job, kind).items()}
    for values in found.values():
        for value in values:
            check(value)
    return found


def one(found, kind):
    return next(value for values in found.values() for value in values if value["kind"] == kind)


# Reading


def test_topographs_labels():
    found = site(nodes())
    assert found.levels == TIERS
    fabric = found.cluster.fabric
    assert (fabric.nodes_per_leaf, fabric.nodes_per_pod, found.cluster.nodes) == (4, 8, 16)
    assert found.paths["n5"] == ("s0", "l01")


def test_what_pods_use_and_who_takes_no_more():
    items = nodes(1, 1)
    items[1]["spec"]["unschedulable"] = True
    items[2]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    items[3]["metadata"]["labels"]["nvidia.com/gpu.sharing-strategy"] = "time-slicing"
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"},
           "spec": {"nodeName": "n0", "containers": [
               {"resources": {"limits": {"nvidia.com/gpu": "3"}}}]}}  # fmt: skip
    ended = {**pod, "status": {"phase": "Succeeded"}}
    found = site([*items, pod, ended])
    assert found.room.free.sum(axis=1).tolist() == [5, 0, 0, 0]
    assert found.room.sliced.sum(axis=1).tolist() == [0, 0, 0, 8]
    assert [str(note) for note in found.notes][:2] == [
        "n1 is cordoned or not ready: left out",
        "n2 is cordoned or not ready: left out",
    ]


def taint(key, effect="NoSchedule", **more):
    return {"key": key, "effect": effect, **more}


def test_a_taint_of_all_nodes_is_tolerated_and_others_keep_nodes_out():
    items = nodes(1, 1)
    for item in items:
        item["spec"]["taints"] = [taint("sku", value="gpu"), taint("soft", "PreferNoSchedule")]
    items[1]["spec"]["taints"].append(taint("repair", "NoExecute", value="fan"))
    items[3]["spec"]["taints"].append(taint("nvidia.com/gpu", value="present"))
    items[2]["spec"]["taints"].append(taint("node.kubernetes.io/unschedulable"))
    items[2]["spec"]["unschedulable"] = True
    found = site(items)
    assert found.taints == ("nvidia.com/gpu", "sku")
    assert found.room.free.sum(axis=1).tolist() == [8, 0, 0, 8]
    assert [str(note) for note in found.notes if "left out" in str(note)] == [
        "n1 has the taint repair=fan:NoExecute, and not all nodes here have it: left out, as pods "
        "don't tolerate it",
        "n2 is cordoned or not ready: left out",
    ]
    for kind in KINDS:
        made = manifests(submission("data=16,data_bytes=1G", found), kind)
        for spec in pod_specs(made):
            assert spec["tolerations"] == [
                {"key": key, "operator": "Exists"} for key in found.taints]  # fmt: skip


def pod_specs(value):
    """Specifications of pods, wherever they stand."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for one in value.values():
            yield from pod_specs(one)
    elif isinstance(value, list):
        for one in value:
            yield from pod_specs(one)


@pytest.mark.parametrize("kind", KINDS)
def test_pods_have_what_an_exchange_takes(kind):
    """Shared memory in a host; between hosts the network cards, of which the text tells."""
    items = nodes(1, 1)
    items[0]["status"]["allocatable"]["rdma/hca_shared_a"] = "63"
    job = submission("data=16,data_bytes=1G", site(items))
    specs = list(pod_specs(manifests(job, kind)))
    assert specs
    for spec in specs:
        (mount,) = spec["containers"][0]["volumeMounts"]
        assert mount["mountPath"] == "/dev/shm"
        assert {"name": mount["name"], "emptyDir": {"medium": "Memory"}} in spec["volumes"]
        assert "tolerations" not in spec
    (text,) = [text for name, text in files(job, kind).items() if name.startswith("the-job")]
    assert "these nodes offer rdma/hca_shared_a" in " ".join(text.split("\n# "))
    alone = submission("data=8,data_bytes=1G", site(nodes(1, 1)))
    assert "RDMA" not in "".join(files(alone, kind).values())


def test_levels_of_kueues_topology():
    topology = {
        "kind": "Topology",
        "metadata": {"name": "t"},
        "spec": {
            "levels": [
                {"nodeLabel": "block"},
                {"nodeLabel": "rack"},
                {"nodeLabel": "kubernetes.io/hostname"},
            ]
        },
    }
    items = [node(f"n{i}", {"block": f"b{i // 2}", "rack": f"r{i}"}) for i in range(4)]
    assert site([*items, topology]).levels == ("block", "rack")
    with pytest.raises(RoundelayError, match="2 Topologies: t, t"):
        site([*items, topology, topology])
    topology["spec"]["levels"][0]["nodeLabel"] = "a b"
    with pytest.raises(RoundelayError, match="level 'a b'; expected the key of a label"):
        site([*items, topology])
    topology["spec"]["levels"][0]["nodeLabel"] = "block"
    topology["spec"]["levels"].reverse()
    with pytest.raises(RoundelayError, match=r"kubernetes.io/hostname is not the last level"):
        site([*items, topology])


def test_hosts_that_share_an_nvlink():
    items = [node(f"n{i}", {"nvidia.com/gpu.clique": f"uuid.{i // 18}",
                            "accelerator.topograph.run/domain": f"d{i // 18}", TIERS[1]: "l"}, 4)
             for i in range(36)]  # fmt: skip
    found = site(items, "gb200-nvl72")
    assert found.cluster.nodes == 2
    assert found.levels == (TIERS[1], "accelerator.topograph.run/domain")
    items[20]["metadata"]["labels"]["nvidia.com/gpu.clique"] = "uuid.0"
    with pytest.raises(RoundelayError, match=r"n18 and n20 share accelerator.*uuid.1 and uuid.0"):
        site(items, "gb200-nvl72")


def test_labels_missing_or_contradicting():
    items = nodes()
    del items[3]["metadata"]["labels"][TIERS[0]]
    found = site(items)
    assert "n3" not in found.paths
    assert f"n3 lacks the label {TIERS[0]}" in str(found.notes[0])
    items[5]["metadata"]["labels"][TIERS[0]] = "s1"
    with pytest.raises(
        RoundelayError, match=r"tier-0=l01 is in .*tier-1=s0 by n4, and in s1 by n5"
    ):
        site(items)
    with pytest.raises(RoundelayError, match="n0 has 4 cards, and a host of dgx-h100 8"):
        site([node("n0", {}, 4)])
    with pytest.raises(RoundelayError, match=r"no node has nvidia\.com/gpu"):
        site([node("n0", {}, 0)])
    with pytest.raises(RoundelayError, match="no node has the labels block; there are"):
        site([node("n0", {}), {"kind": "Topology", "metadata": {"name": "t"},
                               "spec": {"levels": [{"nodeLabel": "block"}]}}])  # fmt: skip


def test_what_is_no_label_or_no_level():
    assert "no node has a label of a level" in str(site([node("a", {}), node("b", {})]).notes[0])
    for value in ("s\n- x: y", "a b", '"', "x" * 64, "-a"):
        with pytest.raises(RoundelayError, match=r"n0: label .*tier-0 is .*63 at most"):
            site([node("n0", {TIERS[0]: "s", TIERS[1]: value})])
    with pytest.raises(RoundelayError, match=r"host 'n\\n- rm'"):
        site([node("n\n- rm", {})])
    tiers = {f"fabric.topograph.run/tier-{i}": "s" for i in range(17)}
    with pytest.raises(RoundelayError, match="expected 1 to 16 different labels"):
        site([node("n0", tiers)])


@pytest.mark.parametrize("kind", ["jobset", "kai"])
def test_a_topology_has_no_more_levels_than_its_definition_takes(kind):
    tiers = {f"fabric.topograph.run/tier-{i}": "s" for i in range(16)}
    found = submission("tensor=8,data=2,data_bytes=1", site([node(f"n{i}", tiers) for i in (0, 1)]))
    assert len(one(manifests(found, kind), "Topology")["spec"]["levels"]) == 16


KEYS = st.sampled_from(["kind", "metadata", "name", "labels", "status", "allocatable", "conditions",
                        "nvidia.com/gpu", "spec", "levels", "containers", TIERS[1]])  # fmt: skip
ODD = st.recursive(
    st.none() | st.integers(0, 9) | st.sampled_from(["Node", "Pod", "Topology", "8", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=5),
)


@given(st.lists(ODD, max_size=3))
def test_any_objects_are_read_or_refused(items):
    whole = [*nodes(1, 1, 1), *(one for one in items if isinstance(one, dict))]
    for some in (items, whole):
        with contextlib.suppress(RoundelayError):
            assert site(some).paths


@pytest.mark.parametrize("text", ["{", "{}", '{"items": 3}', '{"items": [{}]}',
                                  '{"items": [{"kind": "Node", "metadata": {"name": "a"}, '
                                  '"status": 3}]}'])  # fmt: skip
def test_no_list_of_nodes(text):
    with pytest.raises(RoundelayError, match=r"nodes\.json: "):
        read_site(text.encode(), cluster("dgx-h100"), "nodes.json")


# Manifests


@pytest.mark.parametrize("kind", KINDS)
def test_manifests_ask_for_the_domains_that_were_found(kind):
    """Two groups of four hosts, as tensors exchange most: a leaf for each, a spine for both."""
    model = "tensor=32,data=2,layers=8,hidden=1024,sequence=512"
    found = manifests(submission(model, site(nodes()), queue="team-a"), kind)
    within, part = TIERS
    if kind == "jobset":
        template = one(found, "JobSet")["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert template["metadata"]["annotations"] == {
            "kueue.x-k8s.io/podset-required-topology": within,
            "kueue.x-k8s.io/podset-slice-required-topology": part,
            "kueue.x-k8s.io/podset-slice-size": "4"}  # fmt: skip
        levels = one(found, "Topology")["spec"]["levels"]
        assert [level["nodeLabel"] for level in levels] == [*TIERS, "kubernetes.io/hostname"]
    elif kind == "kai":
        group = one(found, "PodGroup")["spec"]
        assert group["topologyConstraint"]["requiredTopologyLevel"] == within
        assert [g["topologyConstraint"]["requiredTopologyLevel"] for g in group["subGroups"]] == [
            part, part]  # fmt: skip
        pods = [value for value in found["the-job.kai.yaml"] if value["kind"] == "Pod"]
        labels = [pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] for pod in pods]
        assert labels == ["part-0"] * 4 + ["part-1"] * 4
    elif kind == "volcano":
        spec = one(found, "Job")["spec"]
        assert spec["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
        assert spec["tasks"][0]["partitionPolicy"] == {
            "totalPartitions": 2, "partitionSize": 4,
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}  # fmt: skip
        tiers = [value["spec"]["tier"] for value in found["hypernodes.yaml"]]
        assert sorted(tiers) == [1] * 4 + [2] * 2
    elif kind == "core":
        groups = [v["spec"] for v in found["the-job.core.yaml"] if v["kind"] == "PodGroup"]
        assert [g["schedulingConstraints"]["topology"] for g in groups] == [[{"key": part}]] * 2
        above = one(found, "CompositePodGroup")["spec"]
        assert above["schedulingConstraints"]["topology"] == [{"key": within}]
    else:
        spec = one(found, "LeaderWorkerSet")["spec"]
        assert spec["leaderWorkerTemplate"]["size"] == 8


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(
    degrees=st.sampled_from([(8, 1, 4), (16, 2, 2), (8, 3, 2), (1, 1, 24), (32, 2, 1), (8, 1, 1),
                             (1, 1, 3)]),
    heavy=st.sampled_from(["tensor", "data", "pipeline"]),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(3, 5)),
    name=st.text(max_size=60),
    program=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
                     min_size=1, max_size=3),
    queue=st.sampled_from(["", "team-a"]),
)  # fmt: skip
def test_any_job_is_valid_in_strict_mode(kind, degrees, heavy, shape, name, program, queue):
    t, p, d = degrees
    volumes = dict.fromkeys(("tensor", "data", "pipeline"), 1e6) | {heavy: 1e9}
    job = parallel(name, {"tensor": t, "pipeline": p, "data": d}, volumes=volumes)
    where = site(nodes(*shape))
    if job.ranks > where.room.free.sum():
        return
    found = submission(job, where, program=shlex.join(program), queue=queue)
    if found.each is None:
        with pytest.raises(RoundelayError, match="expected pods that are alike"):
            files(found, kind)
        return
    manifests(found, kind)


def test_a_field_that_would_be_pruned_is_found():
    """The check itself: what the docs of KAI write is not what its CRD keeps."""
    group = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
             "metadata": {"name": "a"}, "spec": {"minMember": 1, "subgroups": []}}  # fmt: skip
    with pytest.raises(Exception, match="subgroups"):
        check(group)
    topology = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology",
                "metadata": {"name": "a"}, "spec": {"levels": [
                    {"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "rack"}]}}  # fmt: skip
    with pytest.raises(AssertionError):
        check(topology)


def test_versions_that_lack_a_field():
    items = nodes(1, 1)
    for item, version in zip(items, ("v1.37.1", "v1.36.12", "v1.37.0", "v1.37.1"), strict=True):
        item["status"]["nodeInfo"] = {"kubeletVersion": version}
    found = submission("data=8,data_bytes=1G", site(items))
    assert found.site.version == "1.36.12"
    with pytest.raises(RoundelayError, match=r"nodes are of Kubernetes 1\.36\.12"):
        files(found, "core")
    assert files(found, "jobset")
    with pytest.raises(RoundelayError, match="a script for Slurm needs Slurm's hosts"):
        slurm_files(found)


def test_what_pods_cannot_have():
    where = site(nodes())
    uneven = where.narrowed("n0 0-1\nn1 0-3\n", "free")
    with pytest.raises(RoundelayError, match="expected pods that are alike"):
        files(submission("data=6,data_bytes=1G", uneven), "kai")
    with pytest.raises(RoundelayError, match="queue Team_A; expected small letters"):
        files(submission("data=8,data_bytes=1G", where, queue="Team_A"), "kai")


def test_sliced_cards_are_not_asked_for():
    items = nodes(1, 1)
    for item in items[:2]:
        item["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
    found = submission("data=16,data_bytes=1G", site(items))
    assert {*found.used} == {"n2", "n3"}
    with pytest.raises(RoundelayError, match="16 more are sliced"):
        place(read_job("data=24,data_bytes=1G"), found.site.room)
    for kind in KINDS:
        with pytest.raises(RoundelayError, match="has parts of cards"):
            files(submission(parallel("j", {"data": 24}, volumes={"data": 1e9}, sliced=True),
                             found.site), kind)  # fmt: skip


def test_a_leader_and_its_workers_have_no_slices_and_it_is_said():
    """Two spines, so no domain holds all; the parts that tensors make would each fit a leaf."""
    model = "tensor=64,data=2,layers=8,hidden=1024,sequence=512"
    where = site(nodes(2, 2, 4)[:8] + [
        node(f"m{i}", dict(zip(TIERS, (f"t{i // 8}", f"u{i // 8}"), strict=True)))
        for i in range(8)])  # fmt: skip
    text = files(submission(model, where, queue="a"), "lws")["the-job.lws.yaml"]
    assert 'kueue.x-k8s.io/podset-unconstrained-topology: "true"' in text
    assert "Kueue can't be asked for that here" in " ".join(re.split(r"\s*\n\s*# ", text))


def test_shells_words_reach_the_program():
    job = submission("data=8,data_bytes=1G", site(nodes()), program="a.py '$(HOME)' \"x y\" $$")
    (container,) = one(manifests(job, "lws"), "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"][
        "workerTemplate"]["spec"]["containers"]  # fmt: skip
    assert container["command"][2].endswith("a.py '$$(HOME)' 'x y' '$$$$'")  # $$ is Kubernetes' $


# YAML

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), PLAIN, min_size=1, max_size=4), st.text(max_size=200))
def test_any_value_is_read_back(value, reason):
    said = {key: Why(one, reason) for key, one in value.items()}
    assert yaml.safe_load(documents([reason], [said])) == value == plain(said)


def test_reasons_stand_above():
    text = documents(["Head."], [{"a": Why([{"b": Why("yes", "because")}], "so"), "c": "x\ny"}])
    assert text == ('# Head.\n---\n# so\na:\n  # because\n- b: "yes"\nc: |-\n  x\n  y\n')


# What Kueue answers


def workload(*slices, levels=("kubernetes.io/hostname",)):
    return json.dumps({"kind": "Workload", "status": {"admission": {"podSetAssignments": [
        {"name": "workers", "topologyAssignment": {"levels": [*levels],
                                                   "slices": [*slices]}}]}}}).encode()  # fmt: skip


def test_compressed_assignments():
    both = {
        "domainCount": 2,
        "podCounts": {"individual": [1, 3]},
        "valuesPerLevel": [
            {"universal": "b1"},
            {"individual": {"prefix": "gpu-", "suffix": ".x", "roots": ["1", "7"]}},
        ],
    }
    lone = {"domainCount": 1, "podCounts": {"universal": 2}, "valuesPerLevel": [
        {"universal": "b2"}, {"universal": "gpu-9.x"}]}  # fmt: skip
    assert admitted(workload(both, lone, levels=("block", "kubernetes.io/hostname"))) == [
        (("b1", "gpu-1.x"), 1), (("b1", "gpu-7.x"), 3), (("b2", "gpu-9.x"), 2)]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "no JSON"),
        (b'{"kind": "Job"}', "no Workload"),
        (b'{"kind": "Workload"}', "not admitted yet"),
        (workload({"domainCount": 0}), "slice 0 of workers: domainCount 0"),
        (workload({"domainCount": 1, "valuesPerLevel": []}), "values of 0 levels; expected 1"),
        (workload({"domainCount": 2, "valuesPerLevel": [{"individual": {"roots": ["a"]}}]}),
         "individual with 2 roots"),
        (workload({"domainCount": 1, "valuesPerLevel": [{"universal": "a"}],
                   "podCounts": {"individual": [0]}}), "1 or more each"),
        (workload({"domainCount": 1, "valuesPerLevel": [], "podCounts": {"universal": 1}},
                  levels=()), "expected one at least"),
        (workload(*[{"domainCount": 1 << 19, "valuesPerLevel": [{"universal": "a"}],
                     "podCounts": {"universal": 1}}] * 3), "more than 1,048,576 domains"),
    ],
)  # fmt: skip
def test_assignments_that_are_none(data, said):
    with pytest.raises(RoundelayError, match=said):
        admitted(data)


def test_ranks_are_ordered_where_kueue_put_them(capsys, tmp_path):
    (tmp_path / "nodes.json").write_text(json.dumps({"items": nodes()}))
    part = {"domainCount": 2, "podCounts": {"universal": 1},
            "valuesPerLevel": [{"individual": {"prefix": "n", "roots": ["9", "2"]}}]}  # fmt: skip
    (tmp_path / "workload.json").write_bytes(workload(part))
    assert cli.run(["order", "tensor=8,data=2,data_bytes=1G", "--cluster", "dgx-h100", "--topology",
                    str(tmp_path / "nodes.json"), "--nodes", str(tmp_path / "workload.json"),
                    "--json"]) == 0  # fmt: skip
    assert {*json.loads(capsys.readouterr().out)["hosts"]} == {"n2", "n9"}
