"""Execution traces: what is read, written and read back, and what is said of them."""

import gzip
import json
import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay import RoundelayError
from roundelay.diagnose.given import Given
from roundelay.diagnose.recognise import kinds_of
from roundelay.diagnose.times import graph_time_findings
from roundelay.formats.chakra import (
    Attribute,
    Graph,
    Node,
    NodeKind,
    read_chakra,
    write_chakra,
)

SMALL = Graph(
    "chakra", "0.0.4",
    (Node(1, "gemm", NodeKind.COMPUTE, duration_us=40),
     Node(2, "all", NodeKind.COLLECTIVE, data=(1,), begin_us=50, duration_us=30,
          attributes={"comm_type": Attribute("int64", 0), "comm_size": Attribute("int64", 4096),
                      "involved_dim": Attribute("bool_list", (True, False))}),
     Node(3, "gemm", NodeKind.COMPUTE, control=(1, 300), duration_us=60,
          inputs=("[1]", "[[2]]", "[int]")),
     Node(4, "end", NodeKind.COMPUTE, data=(2, 3), duration_us=5)),
    attributes={"rank": Attribute("sint32", -3)},
)  # fmt: skip
BYTES = write_chakra(SMALL)


def kinds(findings):
    return {finding.kind: finding for finding in findings}


def test_bytes_are_those_of_the_schema():
    graph = Graph("chakra", "0.0.4", (Node(5, "a", NodeKind.COLLECTIVE, (1, 300), attributes={
        "s": Attribute("string", "x"), "d": Attribute("double", 1.0)}),))  # fmt: skip
    assert write_chakra(graph) == (
        b"\x07\x0a\x050.0.4"
        b"\x23" b"\x08\x05" b"\x12\x01a" b"\x18\x07" b"\x22\x03\x01\xac\x02"
        b"\x52\x07\x0a\x01s\xea\x01\x01x" b"\x52\x0c\x0a\x01d\x19\0\0\0\0\0\0\xf0\x3f"
    )  # fmt: skip


def test_what_is_written_is_read():
    assert read_chakra(BYTES) == SMALL
    assert read_chakra(gzip.compress(BYTES)) == SMALL
    assert read_chakra(BYTES).nodes[1].collective == "all_reduce"
    for data in (BYTES, gzip.compress(BYTES)):
        assert kinds_of(Given("x", data=data)) == ("execution_trace",)


def test_numbers_that_are_not_packed():
    assert read_chakra(b"\x07\x0a\x050.0.4\x09\x08\x02\x28\x01\x28\xac\x02\x18\x04").nodes[0] == (
        Node(2, "", NodeKind.COMPUTE, data=(1, 300)))  # fmt: skip


SIGNED, WHOLE = st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1)
BY_TYPE = {
    "double": st.floats(allow_nan=False), "float": st.floats(allow_nan=False, width=32),
    "int32": SIGNED, "sint32": SIGNED, "sfixed32": SIGNED, "uint32": WHOLE, "fixed32": WHOLE,
    "int64": st.integers(-(2**63), 2**63 - 1), "sint64": st.integers(-(2**63), 2**63 - 1),
    "sfixed64": st.integers(-(2**63), 2**63 - 1), "uint64": st.integers(0, 2**64 - 1),
    "fixed64": st.integers(0, 2**64 - 1), "bool": st.booleans(), "string": st.text(max_size=20),
    "bytes": st.binary(max_size=20),
}  # fmt: skip
ATTRIBUTE = st.sampled_from(sorted(BY_TYPE)).flatmap(
    lambda t: (
        st.builds(Attribute, st.just(t), BY_TYPE[t])
        | st.builds(Attribute, st.just(f"{t}_list"), st.lists(BY_TYPE[t]).map(tuple))
    )
)
IDS = st.lists(st.integers(0, 2**64 - 1), max_size=4).map(tuple)
TEXTS = st.tuples(st.text(max_size=9), st.text(max_size=9), st.text(max_size=9))
NODES = st.builds(
    Node, st.integers(0, 2**64 - 1), st.text(max_size=30), st.sampled_from(NodeKind), IDS, IDS,
    st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1),
    st.dictionaries(st.text(max_size=9), ATTRIBUTE, max_size=4), TEXTS, TEXTS,
)  # fmt: skip


@settings(deadline=None)
@given(st.text(min_size=1, max_size=9), st.lists(NODES, max_size=4).map(tuple),
       st.dictionaries(st.text(max_size=9), ATTRIBUTE, max_size=4))  # fmt: skip
def test_every_graph_is_read_as_it_was_written(version, nodes, attributes):
    graph = Graph("chakra", version, nodes, attributes=attributes)
    assert read_chakra(write_chakra(graph)) == graph


def test_json_in_any_spelling():
    value = {"workload_graph": [
        {"Id": "7", "Name": "c10d::broadcast_(0)", "NodeType": 7, "ctrlDeps": [3], "runtime": 8},
        {"id": 3, "name": "voId f(int)", "type": "COMP_NODE", "data_deps": [], "is_cpu_op": True,
         "start_time_micros": 2, "duration_micros": 4.0}, {"name": "none"}, 5],
        "ngpus": 8}  # fmt: skip
    graph = read_chakra(json.dumps(value).encode())
    assert [node[:7] for node in graph.nodes] == [
        (7, "c10d::broadcast_(0)", NodeKind.COLLECTIVE, (3,), (), 0, 8),
        (3, "voId f(int)", NodeKind.COMPUTE, (), (), 2, 4)]  # fmt: skip
    assert graph.nodes[0].collective == "broadcast"
    assert graph.nodes[1].get("is_cpu_op") is True
    notes = " ".join(str(note.what) for note in graph.notes)
    assert "spelt in more than one way" in notes
    assert "replaced by Id" in notes
    assert "node 2 has no sound id" in notes
    again = read_chakra(write_chakra(graph))
    assert again.attributes["ngpus"] == Attribute("int64", 8)
    assert again.nodes[1].get("is_cpu_op") is True


def observed(schema):
    attrs = [{"name": "op_schema", "type": "string", "value": "aten::add(...)"}]
    new = schema.startswith("1.1")
    plain = {"op_schema": "aten::add(...)", "tid": 1}
    nodes = [{"id": 1, "name": "process", "parent": 1, "ctrl_deps": 1},
             {"id": 2, "name": "aten::add", **({"ctrl_deps": 1, "attrs": attrs} if new else
                                               {"parent": 1, **plain})},
             {"id": 3, "name": "nccl:all_reduce", "parent": 1, "ctrl_deps": 1}]  # fmt: skip
    return json.dumps({"schema": schema, "pid": 1, "nodes": nodes}).encode()


@pytest.mark.parametrize("schema", ["1.0.1", "1.1.1-chakra.0.0.4"])
def test_what_pytorch_observes(schema):
    graph = read_chakra(observed(schema))
    assert [node.kind for node in graph.nodes] == [NodeKind.METADATA, NodeKind.COMPUTE,
                                                   NodeKind.COLLECTIVE]  # fmt: skip
    assert [node.control for node in graph.nodes] == [(), (1,), (1,)]
    assert graph.nodes[2].collective == "all_reduce"
    (found,) = graph_time_findings("f", graph)
    assert found.figures["kinds"] == "metadata 1, compute 1, collective 1"
    with pytest.raises(RoundelayError, match="what waits for what"):
        write_chakra(graph)


def test_a_call_that_is_not_named_is_a_collective():
    data = observed("1.0.1").replace(b"nccl:all_reduce", b"nccl:all_reduce: ")
    assert read_chakra(data).nodes[2].kind == NodeKind.COLLECTIVE


def test_the_longest_path_with_and_without_communication():
    whole = Graph("chakra", "0.0.4", tuple(
        node._replace(control=()) if node.id == 3 else node for node in SMALL.nodes))  # fmt: skip
    found = kinds(graph_time_findings("f", whole))
    assert set(found) == {"longest_path", "execution_trace"}
    assert found["longest_path"].figures["path_ms"] == 0.075
    assert found["longest_path"].figures["without_ms"] == 0.065
    assert found["execution_trace"].figures["total"] == "4 KiB"


def test_graphs_that_cannot_run():
    found = kinds(graph_time_findings("f", SMALL))
    assert found["incomplete"].figures["examples"] == "300"
    ring = Graph("chakra", "1", (Node(1, "", NodeKind.COMPUTE, (2,)),
                                 Node(2, "", NodeKind.COMPUTE, (1,)),
                                 Node(2, "", NodeKind.COMPUTE, (1,))))  # fmt: skip
    found = kinds(graph_time_findings("f", ring))
    assert found["circular"].figures["count"] == 2
    assert found["ids_twice"].figures["examples"] == "2"


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "no version and no node"), (b"{", "no sound JSON"), (b"{}", "expected Chakra's"),
     (b"\xff" * 20, "no number at byte"), (b"\x03\x0a\x09a", "are left"),
     (b"\x02\x0b\x00", "wire type 3"), (b"hello, world", "no execution trace"),
     (b'{"workload_graph": ' + b"[" * 10**5, "no sound JSON")],
)  # fmt: skip
def test_what_is_no_execution_trace(data, words):
    with pytest.raises(RoundelayError, match=words):
        read_chakra(data)


def test_a_file_that_is_cut_off():
    graph = read_chakra(BYTES[:-3])
    assert graph.nodes == SMALL.nodes[:-1]
    assert "node 4 is not whole" in str(graph.notes[0].what)


@pytest.mark.parametrize("value", [None, object(), [1, "a"], [[1]], [], {}])
def test_what_cannot_be_written(value):
    with pytest.raises(RoundelayError, match="attribute x = "):
        write_chakra(Graph("chakra", "1", (), attributes={"x": Attribute("", value)}))
    with pytest.raises(RoundelayError, match="attribute x"):
        write_chakra(Graph("chakra", "1", (), attributes={"x": Attribute("int32_list", [value])}))


def test_changed_bytes_are_read_or_refused():
    chance = random.Random(3)
    for _ in range(4000):
        data = bytearray(BYTES)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with suppress(RoundelayError):
            graph_time_findings("f", read_chakra(bytes(data[: chance.randint(1, len(data))])))
