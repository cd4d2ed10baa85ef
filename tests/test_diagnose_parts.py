"""Parts of files, as people cut them out and paste them: what is in them is told, and no more."""

import re
import tomllib
from pathlib import Path

import pytest

from roundelay import RoundelayError
from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.formats.pieces import loose_json, read_pieces
from roundelay.simulate.nccl import predict

PARTS = tomllib.loads((Path(__file__).parent / "files/parts.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("case", PARTS, ids=[case["name"] for case in PARTS])
def test_a_part_is_understood(case):
    given = Given("f", data=case["text"].encode())
    found = diagnose([given], None, predict, cluster).findings[:3]
    told = [(f.kind, f.fault, str(f.reason)) for f in found]
    assert any(
        (kind, fault) == (case["kind"], case["fault"]) and re.search(case["words"], reason, re.S)
        for kind, fault, reason in told
    ), told


def test_the_file_of_another_tool_is_named():
    given = Given("f", data=b'<topology version="2.0">\n<object type="Machine"/></topology>')
    with pytest.raises(RoundelayError, match=r"hwloc \(lstopo\).*NCCL_TOPO_DUMP_FILE"):
        diagnose([given], None, predict, cluster)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}, {"a": 2},', [{"a": 1}, {"a": 2}]),
        ('{"a": {"b": 1, "c": [1, 2', [{"a": {"b": 1, "c": [1]}}]),
        ('{"a": "x\\"y', [{"a": 'x"y'}]),
        ('{"nodes": [\n...\n{"id": 1,}, {"id"', [{"id": 1}]),
        ("}]", []),
        ("[" * 1000, []),
    ],
)
def test_objects_are_found_by_their_brackets(text, found):
    assert read_pieces(text.encode())[0] == found


def test_a_value_that_is_cut_off_is_told_of():
    assert [str(note.what) for note in read_pieces(b'[{"a": 1}, {"b"')[1]]
    assert not read_pieces(b'[{"a": 1}]')[1]
    assert loose_json("no value") is None
