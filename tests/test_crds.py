"""Manifests against the definitions of a user's own cluster: what it would drop is refused."""

import json
from pathlib import Path

import pytest
import yaml
from test_kubernetes import nodes, site, submission

from roundelay import cli
from roundelay.errors import RoundelayError
from roundelay.place.kubernetes import files, read_definitions

OWN = Path(__file__).parent / "files" / "crds.yaml"
JOB = "tensor=8,data=16,layers=4,hidden=1024,sequence=512"
KEPT = "x-kubernetes-preserve-unknown-fields"
SPEC = {"type": "object", "properties": {"a": {"type": "integer"}}}


def crd(api, schema, **more):
    """A definition as a cluster has it."""
    (group, version), kind = api.split()[0].split("/"), api.split()[1]
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.lower()}s.{group}"},
            "spec": {"group": group, "names": {"kind": kind}, "versions": [
                {"name": version, "served": True, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": schema}}}}], **more}}  # fmt: skip


def known():
    """Definitions of all kinds that are written; templates of pods keep everything."""
    text = OWN.read_text().replace("{$comment:", f"{{{KEPT}: true, $comment:")
    return [crd(api, schema) for api, schema in yaml.safe_load(text).items() if "/" in api]


def read(folder, *values):
    file = folder / "crds.json"
    file.write_text(json.dumps({"kind": "List", "items": values}))
    return read_definitions(file)


def versions(definition):
    return definition["spec"]["versions"]


def schema(definition):
    return versions(definition)[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def of(values, kind, group=""):
    return next(v for v in values if v["spec"]["names"]["kind"] == kind
                and group in v["spec"]["group"])  # fmt: skip


@pytest.mark.parametrize("kind", ["jobset", "kai", "volcano", "core", "lws"])
def test_what_the_definitions_have_is_written(tmp_path, kind):
    job = submission(JOB, site(nodes()), queue="" if kind == "core" else "team")
    assert files(job, kind, read(tmp_path, *known())) == files(job, kind)


@pytest.mark.parametrize(
    ("kind", "owner", "path"),
    [("jobset", "JobSet", "failurePolicy"),
     ("kai", "PodGroup", "subGroups[0].topologyConstraint"),
     ("volcano", "Job", "tasks[0].partitionPolicy"),
     ("volcano", "HyperNode", "members[0].selector"),
     ("lws", "LeaderWorkerSet", "leaderWorkerTemplate.size")],
)  # fmt: skip
def test_a_field_that_would_be_dropped_is_named(tmp_path, kind, owner, path):
    values = known()
    *above, last = path.replace("[0]", "").split(".")
    inner = schema(of(values, owner))
    for key in above:
        inner = inner["properties"][key]
        inner = inner.get("items", inner)
    del inner["properties"][last]
    with pytest.raises(RoundelayError) as caught:
        files(submission(JOB, site(nodes())), kind, read(tmp_path, *values))
    assert f"lacks spec.{path}" in str(caught.value)
    assert owner in str(caught.value)


def test_kinds_and_versions_that_are_not_there(tmp_path):
    job = submission(JOB, site(nodes()))
    values = known()
    topology = of(values, "Topology", "kueue")
    versions(topology)[0]["name"] = "v1beta1"
    versions(topology).append({"name": "v1beta2", "served": False})
    with pytest.raises(RoundelayError, match=r"kueue.yaml: Topology of kueue.x-k8s.io/v1beta2: the "
                       "cluster serves v1beta1; expected v1beta2"):  # fmt: skip
        files(job, "jobset", read(tmp_path, *values))
    values.remove(of(values, "JobSet"))
    with pytest.raises(RoundelayError, match=r"JobSet of jobset\.x-k8s\.io: the definitions"):
        files(job, "jobset", read(tmp_path, *values))


def lost(tmp_path, schema, spec, **more):
    """What an error says of a document of one kind."""
    definitions = read(tmp_path, crd("x.io/v1 A", schema, **more))
    try:
        definitions.check({"apiVersion": "x.io/v1", "kind": "A", "metadata": {"labels": {"a": "b"}},
                           "spec": spec}, "f")  # fmt: skip
    except RoundelayError as error:
        return str(error).partition("lacks ")[2].partition(", which")[0]
    return ""


def test_what_a_schema_keeps(tmp_path):
    """Fields of objects, of items, of maps; what keeps unknown ones, and what inside doesn't."""
    assert lost(tmp_path, SPEC, {"a": 1}) == ""
    assert lost(tmp_path, SPEC, {"a": 1, "b": 2, "c": {"d": 3}}) == "spec.b, spec.c"
    assert lost(tmp_path, {"type": "object"}, {"b": 2}) == "spec.b"
    assert lost(tmp_path, {KEPT: True}, {"b": {"c": [{"d": 1}]}}) == ""
    inside = {KEPT: True, "properties": {"own": SPEC, "any": {"type": "object"}}}
    assert lost(tmp_path, inside, {"own": {"b": 1}, "any": {"c": 1}, "d": 1}) == "spec.own.b"
    each = {"type": "array", "items": SPEC}
    assert lost(tmp_path, each, [{"a": 1}, {"b": 1}]) == "spec[1].b"
    assert lost(tmp_path, {"additionalProperties": SPEC}, {"k": {"b": 1}}) == "spec.k.b"
    assert lost(tmp_path, {"additionalProperties": True}, {"k": {"b": 1}}) == ""
    whole = {"x-kubernetes-embedded-resource": True, "properties": {"spec": SPEC}}
    assert lost(tmp_path, whole, {"metadata": {"name": "x"}, "spec": {"b": 1}}) == "spec.spec.b"
    assert lost(tmp_path, SPEC, {"b": 2}, preserveUnknownFields=True) == ""
    many = {f"f{i}": 1 for i in range(9)}
    assert lost(tmp_path, SPEC, many) == ", ".join(f"spec.f{i}" for i in range(5))


def test_files_and_folders_of_definitions(tmp_path):
    job = submission(JOB, site(nodes()))
    text = yaml.safe_dump({"kind": "List", "items": known()[:6]})
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yml").write_text(yaml.safe_dump_all(known()[6:]))
    (tmp_path / "notes.txt").write_text("no definitions")
    found = read_definitions(tmp_path)
    assert len(found.kinds) == len(known())
    assert files(job, "volcano", found)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [("a.json", "{", "neither JSON nor YAML"),
     ("a.yaml", "a: [", "neither JSON nor YAML"),
     ("a.yaml", "!!python/object:os.system x", "neither JSON nor YAML"),
     ("a.json", '{"items": [{"kind": "Pod"}, 3]}', "no CustomResourceDefinition"),
     ("a.yaml", "", "no CustomResourceDefinition")],
)  # fmt: skip
def test_what_is_no_definition(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(RoundelayError, match=said):
        read_definitions(tmp_path / name)


@pytest.mark.parametrize("part", [{}, {"spec": 3}, {"spec": {"versions": [3]}}, {"spec": {
    "group": "x.io", "names": {"kind": "A"}, "versions": [{"served": True, "name": "v1", "schema": {
        "openAPIV3Schema": {"properties": [1], "additionalProperties": "x"}}}]}}])  # fmt: skip
def test_odd_definitions_are_no_reason_to_fail(tmp_path, part):
    definitions = read(tmp_path, {"kind": "CustomResourceDefinition", **part})
    with pytest.raises(RoundelayError):
        definitions.check({"apiVersion": "x.io/v1", "kind": "A", "spec": {}}, "f")


def run(capsys, *words):
    status = cli.run([*map(str, words)])
    return status, *capsys.readouterr()


def test_the_commands_refuse_or_say_how(capsys, tmp_path):
    (tmp_path / "nodes.json").write_text(json.dumps({"items": nodes()}))
    values = known()
    (tmp_path / "crds.json").write_text(json.dumps({"items": values}))
    words = ("place", JOB, "--cluster", "dgx-h100", "--topology", tmp_path / "nodes.json",
             "--write", tmp_path / "job", "--for", "lws")  # fmt: skip
    status, _, err = run(capsys, *words)
    assert (status, "kubectl get crd -o json > crds.json" in err) == (0, True)
    status, _, err = run(capsys, *words, "--crds", tmp_path / "crds.json")
    assert (status, "kubectl get crd" in err) == (0, False)
    sim = ("inference-sim", "--cluster", "dgx-h100:2", "--policy", "queue", "--target", "0.5",
           "--write", tmp_path / "service", "--crds", tmp_path / "crds.json")  # fmt: skip
    assert run(capsys, *sim)[0] == 0
    del schema(of(values, "ScaledObject"))["properties"]["pollingInterval"]
    (tmp_path / "crds.json").write_text(json.dumps({"items": values}))
    for file in (tmp_path / "service").iterdir():
        file.unlink()
    status, _, err = run(capsys, *sim)
    assert (status, "inference.yaml: ScaledObject of keda.sh/v1alpha1" in err) == (2, True)
    assert "lacks spec.pollingInterval" in err
    assert not [*(tmp_path / "service").iterdir()]
