"""Judging measurements: each rule by figures of its own, and what users ask."""

import csv
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay import RoundelayError, cli
from roundelay.cli import base
from roundelay.clusters import cluster
from roundelay.diagnose import check
from roundelay.diagnose.speed.facts_reader import read_facts
from roundelay.diagnose.speed.rules import RULES
from roundelay.formats.nccl_tests import bus_factor
from roundelay.i18n import translator
from roundelay.simulate.nccl import predict

HEAD = "# size count type redop root time algbw busbw #wrong\n# (B) (elements) (us) (GB/s) (GB/s)\n"


@dataclass(frozen=True)
class Flat:
    """A model for tests: 20 us and 100 GB/s, sure to 20 %."""

    time_s: float
    algorithm: str = "ring"
    protocol: str = "Simple"
    binding_link: str = "a link"
    band: tuple[float, float] = (0.8, 1.2)


def flat(where, collective, size, n):
    return Flat(20e-6 + size / 100e9)


def table(times, collective="all_reduce", ranks=8, wrong=0, title=True):
    """A printed table of sizes and microseconds."""
    factor = float(bus_factor(collective, ranks))
    lines = [f"# {collective}, n = {ranks}\n"] if title else []
    lines.append(HEAD)
    for size, time in times.items():
        algbw = size / time / 1e3
        lines.append(
            f"{size} {size // 4} float sum -1 {time:.2f} {algbw:.2f} {algbw * factor:.2f} {wrong}\n"
        )
    return "".join(lines).encode()


def sound(*sizes, floor=20.0, rate=100.0):
    return {size: floor + size / rate / 1e3 for size in sizes}


SIZES = tuple(1 << k for k in range(10, 34, 2))


def judged(data, where="dgx-h100", model=flat):
    place = cluster(where) if where else None
    return check(data, "file", place, model, cluster)


def facts(**known):
    return judged(json.dumps(known).encode(), None, predict)


def only(report, kind):
    (finding,) = (f for f in report.findings if f.kind == kind)
    return finding


def kinds(report):
    return [f.kind for f in report.findings]


# Tables beside the model.


def test_a_table_that_is_as_expected():
    report = judged(table(sound(*SIZES)))
    assert report.ok
    assert not report.findings
    assert {row.verdict for row in report.rows} == {"as expected"}
    row = report.rows[-1]
    assert row.ratio == pytest.approx(1.0, rel=1e-3)
    assert row.expected_busbw == pytest.approx(row.timing.busbw, rel=1e-3)
    assert (row.low_us, row.high_us) == (0.8 * row.expected_us, 1.2 * row.expected_us)


def test_without_a_cluster_rows_are_not_compared():
    report = judged(table(sound(*SIZES)), None)
    assert not report.rows
    assert "name the cluster" in str(report.notes[-1].what)


def test_ranks_are_taken_from_the_cluster_where_the_text_has_none():
    data = HEAD + "1073741824 268435456 float sum -1 10757.4 99.81 99.81 0\n"
    report = judged(data.encode(), "dgx-a100")
    assert len(report.rows) == 1
    assert "8 ranks, as the cluster has cards" in [str(note.what) for note in report.notes]


def test_a_collective_that_is_not_predicted_is_said():
    report = judged(table(sound(*SIZES), "gather"), model=predict)
    assert not report.rows
    assert "rows are not compared: unknown collective" in str(report.notes[-1].what)


def test_more_ranks_take_more_nodes():
    report = judged(table(sound(*SIZES), ranks=32), "dgx-h100")
    assert len(report.rows) == len(SIZES)


def test_hosts_with_fewer_cards_than_the_cluster_s():
    seen = []

    def model(where, collective, size, n):
        seen.append((where.nodes, where.cards, where.nics.count, n))
        return flat(where, collective, size, n)

    devices = "".join(
        f"# Rank {r} Group 0 Pid {r} on host-{r // 4} device {r % 4} [0x1] NVIDIA H100\n"
        for r in range(8)
    )
    judged(
        b"# Using devices\n" + devices.encode() + table(sound(1 << 20), title=False), model=model
    )
    assert set(seen) == {(2, 4, 4, 8)}


def test_far_below_names_how_few_network_cards_would_do():
    report = judged(table(sound(*SIZES, rate=40.0), ranks=32), "dgx-h100:4")
    finding = only(report, "far_below")
    assert finding.fault
    assert finding.confidence == 0.9
    assert finding.figures["share"] == pytest.approx(0.4, rel=0.03)
    assert (finding.figures["used_nics"], finding.figures["nics"]) == (2, 8)
    assert "GDRDMA" in str(finding.advice)
    assert finding.evidence[0].text.startswith(str(finding.figures["at_bytes"]))


def test_far_below_inside_a_node_may_be_pcie():
    finding = only(judged(table(sound(*SIZES, rate=12.0))), "far_below")
    assert "PCIe" in str(finding.reason)
    assert "NVLink" in str(finding.advice)


def test_a_launch_floor_is_found_and_excuses_small_sizes():
    slow = {size: max(60.0, time) for size, time in sound(*SIZES).items()}
    report = judged(table(slow))
    finding = only(report, "launch_floor")
    assert report.ok
    assert finding.figures["floor_us"] == 60.0
    assert 'launch = "60 us"' in str(finding.advice)


def test_slower_in_the_middle():
    times = sound(*SIZES)
    for size in SIZES:
        if 1 << 20 <= size < 1 << 26:
            times[size] *= 3
    finding = only(judged(table(times)), "slower_in_the_middle")
    assert finding.fault
    assert finding.figures["times"] == pytest.approx(3.0, rel=0.01)
    assert (finding.figures["from_bytes"], finding.figures["to_bytes"]) == (1 << 20, 1 << 24)


# Tables by themselves.


def test_wrong_elements_come_first():
    report = judged(table(sound(*SIZES, rate=40.0), wrong=3))
    assert kinds(report)[:2] == ["wrong_results", "far_below"]
    assert report.findings[0].figures["wrong"] == 3 * len(SIZES)


def test_bandwidth_that_falls_with_size():
    times = sound(*SIZES)
    times |= {size: 10 * times[size] for size in SIZES[-4:]}
    finding = only(judged(table(times), None), "falls_with_size")
    assert finding.fault
    assert finding.figures["after_bytes"] == SIZES[-4]
    assert "flow control" in str(finding.reason)


def test_a_larger_size_that_takes_less_time():
    times = sound(*SIZES) | {1 << 26: 90_000.0}
    finding = only(judged(table(times), None), "erratic")
    assert finding.figures["smaller_bytes"] == 1 << 26
    assert "host's memory" in str(finding.reason)


def test_a_curve_that_still_rises():
    data = table(sound(1 << 20, 1 << 24, 1 << 26, floor=200.0), title=False)
    finding = only(judged(data, None), "not_flat")
    assert not finding.fault
    assert "-e 8G" in str(finding.advice)


def test_one_rank():
    data = HEAD.replace("wrong", "wrong time algbw busbw #wrong", 1)
    data += "1048576 262144 float none -1 5.00 209.72 0.00 0 0.80 1310.72 0.00 N/A\n"
    report = judged(data.encode())
    finding = only(report, "one_rank")
    assert not report.ok
    assert "One rank, nothing measured" in str(finding.reason)
    assert not report.rows


# Facts.


def test_both_directions():
    report = facts(gpu="A100", advertised_GBps=600, busbw_GBps=235, gpus=8)
    finding = only(report, "both_directions")
    assert report.ok
    assert finding.figures["line_GBps"] == 300.0
    assert finding.figures["share"] == pytest.approx(235 / 300, rel=1e-3)
    low = facts(nvlink_advertised_GBps_duplex=600, measured_GBps=20)
    assert only(low, "both_directions").fault


def test_units_are_told_apart():
    report = facts(nic="200 Gb/s", note="we get 193.5 GB/s with ib_write_bw")
    assert only(report, "units").figures["meant_GBps"] == pytest.approx(24.19, rel=1e-3)
    assert not kinds(facts(nic="200 Gb/s", note="we get 24 GB/s with ib_write_bw"))


def test_a_tree_on_two_nodes():
    report = facts(nodes=2, gpus_per_node=4, nics_per_node=1, nic_Gbps=100, busbw_GBps=20)
    finding = only(report, "tree_on_two_nodes")
    assert report.ok
    assert finding.figures["most_busbw_GBps"] == 12.5 * 1.75
    too_much = facts(nodes=2, gpus_per_node=4, nics_per_node=1, nic_Gbps=100, busbw_GBps=30)
    assert not too_much.ok


def test_rings_between_more_nodes():
    known = {"nics_per_node": 4, "nic_Gbps": 200}
    fine = facts(busbw={"2 nodes": 130, "8 nodes": 92}, **known)
    assert only(fine, "rings_between_nodes").figures["share"] == 0.92
    low = facts(busbw={"2 nodes": 130, "8 nodes": 30}, **known)
    assert only(low, "rings_between_nodes").fault


def test_a_version_that_lost_its_way():
    report = facts(busbw_by_version={"2.20.5": 180, "2.9.1": 182, "2.21.5": 20.5})
    finding = only(report, "version_regression")
    assert (finding.figures["before"], finding.figures["after"]) == ("2.20.5", "2.21.5")
    assert not kinds(facts(busbw_by_version={"2.20": 180, "2.21": 178}))


def test_a_fixed_time_a_step():
    report = facts(nic_Gbps=200, per_connection_GBps=6.5536, chunk_bytes=65536,
                   with_chunk_256KiB_GBps=20)  # fmt: skip
    finding = only(report, "fixed_step")
    assert finding.figures["step_us"] == pytest.approx(10.0)
    assert finding.figures["larger_step_us"] == pytest.approx(13.1, rel=1e-2)
    assert not kinds(facts(nic_Gbps=200, per_connection_GBps=24, chunk_bytes=65536))


@pytest.mark.parametrize(
    ("pairs", "nodes"),
    [
        ({"a,b": 10, "a,c": 10, "b,c": 90, "c,d": 90}, "a"),
        ({"a,b": 10, "c,d": 90, "a,c": 91}, "b"),
        ({"a,b": 10, "c,d": 90, "e,f": 91}, "a / b"),
        ({"a,b": 10, "a,c": 10, "a,d": 10, "e,f": 91}, "a"),
        ({"a,b": 10, "a,c": 10, "b,c": 90, "e,c": 10, "e,b": 12}, "a, e"),
    ],
)
def test_slow_nodes_are_found_from_pairs(pairs, nodes):
    finding = only(facts(pairs_GBps=pairs), "slow_nodes")
    assert finding.subject == nodes


def test_pairs_that_are_alike_say_nothing():
    assert not kinds(facts(pairs={"a,b": 90, "c,d": 91, "a,c": 89}))


def test_all_to_all_crosses_the_network_in_part():
    known = {"op": "alltoall", "nodes": 4, "gpus_per_node": 8, "nic_per_gpu_Gbps": 400}
    report = facts(busbw_GBps=45, **known)
    finding = only(report, "two_levels")
    assert finding.figures["network_card_GBps"] == pytest.approx(45 * 32 / 31 * 0.75, rel=1e-3)
    assert not finding.fault
    assert only(facts(busbw_GBps=5, **known), "two_levels").fault


def test_experts():
    report = facts(printed_rdma_GBps=50, printed_nvl_GBps=90, nodes=4, nic_Gbps=400)
    assert only(report, "own_node_counted").figures["network_GBps"] == 37.5
    assert report.ok
    idle = facts(printed_rdma_GBps=12, printed_nvl_GBps=24, nodes=4, nic_Gbps=400)
    assert only(idle, "own_node_counted").fault


def test_experts_by_their_printed_lines():
    text = (
        "[tuning] Best dispatch (FP8): SMs 24, NVL chunk 16, RDMA chunk 12: 40.50 GB/s (RDMA), "
        "131.20 GB/s (NVL)\n"
        "[rank 3] Dispatch + combine bandwidth: 39.50 GB/s, avg_t=500.00 us\n"
        "[rank 3] Dispatch bandwidth: 2.50 GB/s, avg_t=90000 us | Combine bandwidth: 3.50 GB/s\n"
    )
    report = judged(text.encode(), "h800:2")
    assert set(kinds(report)) == {"own_node_counted", "waiting_counted"}
    assert only(report, "own_node_counted").figures["network_GBps"] == 20.25
    waiting = only(report, "waiting_counted")
    assert waiting.figures["together_GBps"] == 39.5
    assert [e.line for e in waiting.evidence] == [3, 2]


def test_an_average_is_no_verdict():
    report = facts(average_busbw_GBps=60, peak_busbw_GBps=185, nodes=4, nics=8, nic_Gbps=200,
                   gpus_per_node=8)  # fmt: skip
    finding = only(report, "average")
    assert (finding.figures["share"], finding.fault) == (0.925, False)


def test_what_no_rule_explains_is_compared_with_the_line():
    low = facts(gpu="H100", nodes=4, busbw_GBps=90)
    assert (kinds(low), low.ok) == (["far_below"], False)
    fine = facts(gpu="H100", nodes=4, busbw_GBps=350)
    assert (kinds(fine), fine.ok) == (["share_of_line"], True)


def test_an_interface_that_was_named():
    known = {"before_ms": 900, "after_ms": 30, "change": {"NCCL_SOCKET_IFNAME": "eth0"}}
    found = only(facts(**known), "other_interface")
    assert found.figures["times"] == 30
    assert "NCCL_SOCKET_IFNAME=eth0" in str(found.reason)
    assert facts(**known | {"after_ms": 800}).findings == ()
    assert facts(**known | {"change": {"NCCL_DEBUG": "INFO"}}).findings == ()


def test_sizes_that_32_bits_cannot_count():
    found = only(facts(tensor_bytes=2**31, error="does not fit int32"), "count_of_32_bits")
    assert found.figures["pieces"] == 2
    assert facts(tensor_bytes=2**31 - 1, error="does not fit int32").findings == ()
    assert facts(tensor_bytes=2**31, error="out of memory").findings == ()


def test_one_connection_over_a_bond():
    assert only(facts(nics=4, bonded=True), "bond_of_one_connection").figures["share"] == 0.25
    assert facts(nics=4, bonded=False).findings == ()
    assert facts(nics=4, bonded=True, connections=8).findings == ()


def test_names_that_are_not_understood_are_named():
    report = facts(gpu="H100", favourite_colour=3, flags=[1], nodes=4, busbw_GBps=350)
    assert [str(note.what).split(": ")[1] for note in report.notes] == ["favourite_colour", "flags"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"nodes": 0}', "nodes = 0 cannot be"),
        ('{"nodes": "some"}', 'nodes = "some" cannot be'),
        ('{"busbw_GBps": -1}', "busbw_GBps = -1 cannot be"),
        ('{"pairs": {"a,b": "slow", "b,c": 9}}', 'pairs.a,b = "slow" cannot be'),
        ('{"colour": 3}', "left out: colour"),
    ],
)
def test_a_fact_that_cannot_be_is_left_out_alone(text, says):
    report = judged(text.encode()[:-1] + b', "measured_GBps": 400}', None)
    assert [says in str(note.what) for note in report.notes] == [True]
    assert report.facts.measured == 400


def test_no_object_of_facts():
    with pytest.raises(RoundelayError, match="no JSON object"):
        judged(b"{", None)


NAMES = st.sampled_from(
    ["op", "gpu", "gpus", "nodes", "gpus_per_node", "nics_per_node", "nic_Gbps", "nic", "busbw",
     "busbw_GBps", "advertised_GBps", "links", "link_GBps", "line_per_link_each_way_GBps",
     "average", "peak_busbw", "printed_rdma_GBps", "printed_nvl_GBps", "per_connection_GBps",
     "chunk_bytes", "chunk_1MiB_GBps", "max_bytes", "note", "ranks_per_table", "paper_GBps",
     "ib_GBps", "expected_GBps", "nvlink_each_way_GBps", "x"]
)  # fmt: skip
VALUES = st.one_of(
    st.integers(-1, 2**63), st.floats(), st.booleans(), st.none(),
    st.sampled_from(["H100", "B300", "all_reduce", "alltoall", "400 Gb/s", "> 12 GB/s", "rising"]),
    st.dictionaries(st.sampled_from(["a,b", "b,c", "c,d", "1 node", "2 nodes", "2.1", "2.9"]),
                    st.floats(0, 1e6), max_size=3),
)  # fmt: skip


@given(st.dictionaries(NAMES, VALUES, max_size=8))
def test_whatever_is_said_it_is_judged_or_refused(known):
    try:
        report = judged(json.dumps(known).encode(), None, predict)
    except RoundelayError:
        return
    json.dumps(report.as_json(translator("zh")), allow_nan=False)


def test_each_rule_stands_for_one_thing():
    assert len({rule.__name__ for rule in RULES}) == len(RULES)


def test_a_rate_in_a_name_and_in_a_text_are_read_alike():
    text = read_facts(b'{"nic": "400 Gb/s", "wire_test_perftest_Gbps": 392}', "x")
    assert (text.nic, text.wire_test) == (50.0, 49.0)


# The command.


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setattr(base, "COMMANDS", tuple(dict.fromkeys((*base.COMMANDS, "check"))))

    def words(*words):
        status = cli.run(["check", *map(str, words)])
        return status, *capsys.readouterr()

    return words


def test_the_command_says_off_and_fails(run, tmp_path):
    file = tmp_path / "slow.txt"
    file.write_bytes(table({1 << 26: 50_000.0, 1 << 28: 200_000.0, 1 << 30: 800_000.0}))
    status, out, err = run(file, "--cluster", "dgx-h100", "--lang", "en")
    assert status == 1
    assert "off: far_below (all_reduce, n = 8)" in out
    assert f"{file}:5: 268435456" in out
    assert not err
    status, out, _ = run(file, "--cluster", "dgx-h100", "--lang", "zh")
    assert "异常: far_below" in out


def test_the_command_s_json(run, tmp_path):
    file = tmp_path / "facts.json"
    file.write_text('{"nic": "400 Gb/s", "said": "380 GB/s", "odd": null}')
    status, out, err = run(file, "--json")
    value = json.loads(out)
    assert (status, err, value["ok"]) == (0, "", True)
    (finding,) = value["findings"]
    assert set(finding) == {"kind", "area", "fault", "subject", "figures", "evidence", "reason",
                            "try", "confidence"}  # fmt: skip
    assert finding["evidence"][0] == {"file": str(file), "line": 1, "text": '"said": "380 GB/s"'}
    assert value["notes"] == [{"line": 0, "text": "not understood, and left out: odd"}]
    file.write_bytes(table(sound(*SIZES)))
    _, out, _ = run(file, "--cluster", "dgx-a100", "--json")
    row = json.loads(out)["rows"][0]
    assert (row["collective"], row["ranks"], row["bytes"]) == ("all_reduce", 8, SIZES[0])
    low, high = row["error_band"]
    assert low < row["expected_us"] < high


def test_standard_input(run, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(table(sound(*SIZES))))
    monkeypatch.setattr("sys.stdin", stdin)
    status, out, err = run("-", "--lang", "en")
    assert (status, "name the cluster" in err) == (0, True)
    assert out == "There is nothing to say of these figures by themselves.\n"


def test_bad_input(run, tmp_path):
    file = tmp_path / "nothing.txt"
    file.write_text("all_reduce_perf: command not found\n")
    assert run(file)[0] == 2
    assert run(tmp_path / "missing.txt")[0] == 2
    status, _, err = run(file, "--cluster", "dgx-h10")
    assert (status, "did you mean" in err) == (2, True)


if DATA := os.environ.get("ROUNDELAY_DATA"):
    BANDWIDTH = Path(DATA, "cases", "bandwidth")
    PRINTED = Path(DATA, "cases", "nccl-tests")
    # file: kind, whether something is off, figures, words of the reason
    ANSWERS = {
        "01-": ("both_directions", False, {"line_GBps": 450, "share": 0.8}, "both directions"),
        "03-": ("not_flat", False, {"rerun_bytes": 1 << 33, "expected_busbw_GBps": 230}, "flat"),
        "05-": ("adds_in_switch", False, {"usable_GBps": 721.8, "line_GBps": 900}, "no wire rate"),
        "07-": ("tree_on_two_nodes", False, {"most_algbw_GBps": 12.5, "most_busbw_GBps": 23.4},
                "once each way"),
        "09-": ("average", False, {"peak_GBps": 96, "share": 0.96}, "mean over all sizes"),
        "11-": ("two_levels", True, {"algbw_GBps": 4.18, "network_card_GBps": 2.09,
                "network_node_GBps": 16.7}, "no wire rate on two levels"),
        "13-": ("adds_in_switch", False, {"wire_GBps": 543, "share": 0.6, "off_share": 0.77}, ""),
        "15-": ("version_regression", True, {"before_GBps": 57.06, "after_GBps": 7.05},
                "fast path"),
        "17-": ("fixed_step", True, {"step_us": 10.0, "rate_GBps": 13.1, "larger_GBps": 87.6},
                "128 KiB"),
        "19-": ("own_node_counted", False, {"network_GBps": 21.5}, "NVLink"),
        "21-": ("both_directions", False, {"line_GBps": 200, "share": 0.8}, "both directions"),
        "23-": ("units", False, {"meant_GBps": 49.5}, "Gb/s"),
        "25-": ("ran_alone", True, {"ranks": 1, "busbw_factor": 0}, "without MPI"),
        "27-": ("link_usable", False, {"link_line_GBps": 64, "link_usable_GBps": 48}, "one way"),
        "29-": ("rings_between_nodes", False, {"node_rate_GBps": 400, "share": 0.91}, "NVLSTree"),
        "31-": ("slow_nodes", True, {"slow_GBps": 49.3, "usual_GBps": 88.4}, "single nodes"),
    }  # fmt: skip

    @pytest.mark.parametrize("case", ANSWERS)
    def test_case(case):
        (path,) = BANDWIDTH.glob(f"{case}*")
        kind, off, figures, words = ANSWERS[case]
        report = check(path.read_bytes(), path.name, None, predict, cluster)
        finding = only(report, kind)
        assert report.ok != off
        assert not report.notes
        for name, value in figures.items():
            near = 0.05 if name.startswith("expected") else 0.01
            assert finding.figures[name] == pytest.approx(value, rel=near), name
        assert words in str(finding.reason)

    def test_case_more_than_one_finding():
        (links,) = BANDWIDTH.glob("03-*")
        report = check(links.read_bytes(), links.name, None, predict, cluster)
        assert only(report, "link_usable").figures["usable_GBps"] == 240
        (network,) = BANDWIDTH.glob("21-*")
        report = check(network.read_bytes(), network.name, None, predict, cluster)
        assert only(report, "line_rate").figures["line_GBps"] == 50
        (nodes,) = BANDWIDTH.glob("31-*")
        report = check(nodes.read_bytes(), nodes.name, None, predict, cluster)
        assert {"a", "f"} <= set(only(report, "slow_nodes").subject.replace(",", "").split())

    # file: cluster, whether something is off, kinds
    TABLES = {
        "01-": ("dgx-a100", False, {"launch_floor"}),
        "03-": ("dgx-a100", False, {"launch_floor"}),
        "05-": ("hgx-h200:2", True, {"far_below", "erratic"}),
        "07-": ("dgx-h100:2", False, {"tree_on_two_nodes", "average"}),
        "09-": ("dgx-h100:3", True, {"falls_with_size", "far_below"}),
        "11-": ("l40s-pcie", True, {"one_rank"}),
        "17-": ("dgx-a100", False, set()),
        "19-": ("dgx-a100:32", True, {"far_below"}),
        "21-": ("h800:2", False, {"waiting_counted"}),
    }

    @pytest.mark.parametrize("case", TABLES)
    def test_case_printed(case):
        (path,) = PRINTED.glob(f"{case}*")
        where, off, expected = TABLES[case]
        report = check(path.read_bytes(), path.name, cluster(where), predict, cluster)
        assert report.ok != off
        assert expected <= set(kinds(report))

    # Words of a published machine, and the machine that it is.
    MACHINES = {"p4de": "aws-p4de", "p5.": "aws-p5", "A100 SXM4": "dgx-a100",
                "H100 SXM": "dgx-h100", "L40S": "l40s-pcie",
                "GB200 tray": "gb200-nvl72"}  # fmt: skip

    def published():
        """Sweeps over sizes that nobody has called bad: microseconds by size."""
        sweeps = {}
        with Path(DATA, "published", "calibrate.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                where = next((m for w, m in MACHINES.items() if w in row["cluster"]), None)
                times = row["unit"] == "us" and row["metric"].startswith("time")
                if where and times and not row["status"]:
                    ranks = int(row["nodes"]) * int(row["gpus_per_node"])
                    key = (where, row["collective"], ranks, row["metric"])
                    sweeps.setdefault(key, {})[int(row["size_bytes"])] = float(row["value"])
        return {key: sweep for key, sweep in sweeps.items() if len(sweep) > 10}

    SWEEPS = published()

    @pytest.mark.parametrize("key", SWEEPS, ids=str)
    def test_nothing_is_off_in_sound_measurements(key):
        where, collective, ranks, _ = key
        sweep = {size: time for size, time in sorted(SWEEPS[key].items()) if size}
        report = judged(table(sweep, collective, ranks), where, predict)
        assert report.ok, report.findings
        assert len(report.rows) == len(sweep)


@pytest.mark.parametrize("name", ["GBps", "Gbps_duplex", "", "_"])
def test_a_fact_whose_name_is_only_a_unit_is_left_out(name):
    found = read_facts(json.dumps({"op": "all_reduce", name: 360, "advertised": 1}).encode(), "x")
    assert found.unknown == (name,)
