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


def _table(*rows, ranks=2, hosts=1, card="NVIDIA A30"):
    """A table of all_gather: bytes and microseconds, out of place and in place."""
    lines = ["# all_gather_perf"]
    lines += [
        f"#  Rank {r:2d} Group  0 Pid {r} on host{r * hosts // ranks} device  0 [0x10] {card}"
        for r in range(ranks)
    ]
    lines += ["# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"]
    for size, *times in rows:
        forms = [
            f"{t:.1f} {size / t / 1e3:.2f} {size / t / 1e3 * (ranks - 1) / ranks:.2f} 0"
            for t in times
        ]
        lines.append(f" {size} {size // ranks // 4} float none -1 {' '.join(forms)}")
    return Given("f", data="\n".join(lines).encode())


def _kinds(given):
    return {f.kind: f for f in diagnose([given], None, predict, cluster).findings}


def test_one_form_alone_that_takes_less_time_is_noise():
    rows = ((1 << 24, 1500.0, 1510.0), (1 << 25, 1240.0, 1500.0), (1 << 26, 2400.0, 2500.0))
    assert "erratic" not in _kinds(_table(*rows))
    rows = ((1 << 24, 1500.0, 1610.0), (1 << 25, 1240.0, 1300.0), (1 << 26, 2400.0, 2500.0))
    assert "erratic" in _kinds(_table(*rows))


def test_small_sizes_whose_time_grows_with_them_are_no_latency():
    small = tuple((1 << k, 300.0 + (1 << k) / 1e6, 300.0) for k in (12, 14, 16, 18))
    grown = tuple((1 << k, (1 << k) / 800.0, (1 << k) / 800.0) for k in (16, 17, 18))
    assert "small_only" in _kinds(_table(*small))
    assert "small_only" not in _kinds(_table(*grown))


def test_network_cards_that_are_only_assumed_make_no_fault():
    def rows(rate):
        return tuple((1 << k, *2 * (60 + (1 << k) / rate / 1e3,)) for k in range(20, 34))

    h100 = {"ranks": 16, "hosts": 2, "card": "NVIDIA H100 80GB HBM3"}
    some, least = (_kinds(_table(*rows(rate), **h100))["far_below"] for rate in (200.0, 40.0))
    assert (some.fault, least.fault) == (False, True)
    assert "the text does not name them" in str(some.reason)


def test_a_rate_that_still_rises_is_called_no_peak():
    rows = tuple((1 << k, 4000.0 + 2 * k, 4000.0 + 2 * k) for k in range(20, 27))
    given = _table(*rows)
    given = Given("f", data=given.data + b"\n# Avg bus bandwidth : 2.5\n")
    assert "The peak" not in str(_kinds(given)["average"].reason)
