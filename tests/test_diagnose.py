"""Any mixture of files: what is found, in which order, and how it is told."""

import ast
import gzip
import json
import os
import pickle
import re
import signal
from pathlib import Path

import pytest
from cases import WANTED, answer, cases, lacks

import roundelay.diagnose as package
from roundelay import RoundelayError, cli
from roundelay.clusters import cluster
from roundelay.diagnose import read_text
from roundelay.diagnose.anonymous import Anonymous
from roundelay.diagnose.diagnosis import AREAS, BROKEN
from roundelay.diagnose.given import HEAD, Given
from roundelay.diagnose.hang.calls import call_findings
from roundelay.diagnose.hang.watched import watched_findings
from roundelay.diagnose.machine.machines import machine_findings
from roundelay.diagnose.nccl.logs import log_findings
from roundelay.diagnose.recognise import kinds_of
from roundelay.diagnose.together import diagnose
from roundelay.formats.flight import read_flight
from roundelay.formats.nccl_log import read_nccl_log
from roundelay.formats.nccl_topology import read_nccl_topology
from roundelay.formats.topo_matrix import read_topo_matrix
from roundelay.formats.watchdog import read_watchdog
from roundelay.i18n import translator
from roundelay.simulate.nccl import predict

FILES = Path(__file__).parent / "files"
TABLE = b"""# all_reduce, n = 8
# size count type redop root time algbw busbw #wrong
# (B) (elements) (us) (GB/s) (GB/s)
1073741824 268435456 float sum -1 8200.0 130.94 229.15 0
"""


def look(*files):
    return diagnose(
        [Given(*f) if isinstance(f, tuple) else f for f in files], None, predict, cluster
    )


def given(name, data):
    return Given(name, data=data)


def kinds(findings):
    return {finding.kind: finding for finding in findings}


# What a file is.


@pytest.mark.parametrize("start", [b"", b"switches:\n", b"GPU0 GPU1\n", b"dispatch"])
@pytest.mark.parametrize(
    "part", [b"[", b"\n", b" \n", b"GPU1 GPU2 ", b"dispatchbandwidth", b"1[]==(", b"ProcessGroup"]
)
def test_what_a_file_is_takes_no_longer_than_its_length(start, part):
    signal.alarm(60)  # where marks ran over the same bytes again and again, it took hours
    try:
        kinds_of(given("x", start + part * (HEAD // len(part))))
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("command", ["diagnose", "topology", "convert"])
def test_a_pipe_or_a_device_is_not_read(command, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path / "pipe"), "/dev/zero"):
        out = [str(tmp_path / "out.xml")] if command == "convert" else []
        assert cli.run([command, name, *out]) == 2
        assert capsys.readouterr().err.startswith(f"error: {name}: no regular file")


def test_dumps_of_several_jobs_are_not_mixed():
    def dump(folder, rank, name):
        entry = {"profiling_name": f"nccl:{name}", "collective_seq_id": 1, "state": "started",
                 "process_group": ["0", "default_pg"], "input_sizes": [[8]]}  # fmt: skip
        value = {"version": "2.9", "pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": [entry]}
        return given(f"{folder}/rank{rank}", json.dumps(value).encode())

    first = [dump("first", rank, "all_reduce") for rank in (0, 1)]
    second = [dump("second", rank, "all_gather") for rank in (0, 1)]
    assert [f.kind for f in look(*first, *second).findings] == ["stuck_together"] * 2
    assert "calls_differ" in kinds(look(first[0], second[1]).findings)  # one job, two folders


def test_what_a_terminal_would_obey_is_not_passed_on(tmp_path, capsys):
    log = tmp_path / os.fsdecode(b"bad\xff\x1b[31m.log")
    log.write_bytes(b"n1:1:1 [0] NCCL WARN \x1b]0;mine\x07 Cuda failure 2 out of memory\r\n")
    for save in ("r.md", "r.html"):
        assert cli.run(["diagnose", str(log), "--save", str(tmp_path / save)]) == 1
        told = (tmp_path / save).read_text("utf-8") + "".join(capsys.readouterr())
        assert "out of memory" in told
        assert "bad\ufffd" in told
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", told)


def test_a_file_that_is_given_twice_is_read_once(tmp_path, capsys):
    (tmp_path / "topology.xml").write_bytes((FILES / "topology.xml").read_bytes())
    cli.run(["diagnose", str(tmp_path), str(tmp_path / "topology.xml"), "--json"])
    assert len(json.loads(capsys.readouterr().out)["files"]) == 1


def test_switches_without_hosts_say_nothing():
    found = look(given("x", b"SwitchName=a Switches=b\nSwitchName=b Switches=a\n"))
    assert "fabric" not in kinds(found.findings)


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path):
    gone = Given("gone.log", tmp_path / "gone.log")
    found = look(gone, ("topology.xml", FILES / "topology.xml"))
    assert "linkless" in kinds(found.findings)
    assert ("gone.log", ()) in found.files


@pytest.mark.parametrize(
    ("name", "kind"),
    [("topology.xml", ("nccl_topology",)), ("graph.xml", ("nccl_graph",)),
     ("topo_m.txt", ("topo_matrix",)), ("showtopo.txt", ("rocm_topo",)),
     ("nccl.log", ("nccl_log", "nccl_tests")), ("watchdog.log", ("watchdog", "ended")),
     ("flight1", ("flight",)), ("flight2.json", ("flight",)), ("trace.json", ("trace",)),
     ("graph.et", ("execution_trace",)), ("ras.txt", ("ras",)),
     ("inspector.jsonl", ("inspector",)),
     ("iblinkinfo.txt", ("iblinkinfo",)), ("ibnet_flat.txt", ("ibnet_flat",)),
     ("topology.yaml", ("topology_yaml",)), ("topograph.yaml", ("topograph",)),
     ("kueue.yaml", ("kueue",)), ("msccl.xml", ("msccl",)), ("mscclpp.json", ("mscclpp",))],
)  # fmt: skip
def test_files_are_told_by_what_stands_in_them(name, kind, tmp_path):
    data = (FILES / name).read_bytes()
    assert kinds_of(given("x", data)) == kind
    assert kinds_of(given("x", gzip.compress(data))) == kind
    file = tmp_path / "y"
    file.write_bytes(data)
    assert kinds_of(Given("y", file)) == kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b'{"traceEvents": []}', "trace"), (b'{"gpus": 8}', "facts"), (TABLE, "nccl_tests"),
     (b'<algo name="x"/>', "msccl"), (b'{"gpus": [{"threadblocks": []}]}', "mscclpp"),
     (pickle.dumps({"entries": []}, 0), "flight"), (b"hello\n", ""), (b"", "")],
)  # fmt: skip
def test_other_kinds(data, kind):
    assert "".join(kinds_of(given("x", data))[:1]) == (kind or "")


def test_a_text_is_gone_through_once():
    asked = []

    def lines():
        asked.append(None)
        return iter([*(FILES / "nccl.log").read_bytes().splitlines(keepends=True), TABLE])

    assert read_text(lines).measured
    assert len(asked) == 1


def test_a_log_that_begins_with_much_else():
    data = b"step 1 loss 2.0\n" * 80000 + (FILES / "nccl.log").read_bytes()
    assert kinds_of(given("x", data)) == ("nccl_log",)


# What is found.


def test_a_machine():
    machine = read_nccl_topology((FILES / "topology.xml").read_bytes())
    found = kinds(machine_findings("f", machine))
    assert found["linkless"].fault
    assert found["linkless"].subject == "GPU3 (rank 3, device 3, 0000:40:00.0)"
    assert found["virtual_pcie"].figures["figure_GBps"] == 0.1875
    assert found["virtual_pcie"].fault
    assert found["connected"].figures["usable_GBps"] == 370.8
    assert "GPU0-NIC0" in found["nic_layout"].figures["map"]


def test_a_table_of_ways():
    found = kinds(machine_findings("f", read_topo_matrix((FILES / "topo_m.txt").read_bytes())))
    assert set(found) == {"nic_layout", "connected"}
    assert "mesh" in str(found["connected"].reason)
    assert found["connected"].figures["line_GBps"] == 200


def test_half_the_links_of_a_card():
    text = (FILES / "topology.xml").read_bytes().replace(
        b'target="fffffff:ff:ff.0" count="9"', b'target="fffffff:ff:ff.0" count="0"')  # fmt: skip
    found = kinds(machine_findings("f", read_nccl_topology(text)))
    assert found["few_links"].figures["share"] == 0.5
    assert "GPU1" in found["few_links"].subject


def test_a_log():
    found = kinds(log_findings("f", read_nccl_log((FILES / "nccl.log").read_bytes())))
    assert {"no_route", "too_many_nodes", "virtual_pcie", "chosen", "built", "cliques"} <= set(
        found
    )
    assert found["no_route"].figures["times"] == 2
    assert found["no_route"].evidence[0].line == 34
    assert "stuck_in_start" in found
    assert found["stuck_in_start"].figures["missing"] == "2, 3"


def test_a_log_over_sockets_only():
    log = b"a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0\n"
    assert kinds(log_findings("f", read_nccl_log(log)))["sockets_only"].fault
    log += log.replace(b"Socket", b"IB")
    assert "sockets_only" not in kinds(log_findings("f", read_nccl_log(log)))


def test_an_unknown_warning_is_told_as_it_stands():
    log = b"a:1:2 [0] x.cc:1 NCCL WARN the moon is in the way\n"
    found = kinds(log_findings("f", read_nccl_log(log)))
    assert "the moon is in the way" in str(found["nccl_warns"].reason)


def test_watchdogs():
    found = kinds(watched_findings("f", read_watchdog((FILES / "watchdog.log").read_bytes())))
    assert found["counts_differ"].figures["behind"] == "3"
    assert found["sizes_differ"].figures["sequence"] == 4
    assert "Rank 0, 2 never enqueued call 12" in str(found["never_called"].reason)
    assert "192.0.2.7:4000" in str(found["peer_lost"].reason)


def dump(rank, *calls, ranks=3):
    """A dump of a rank with calls (operation, shape, done)."""
    entries = [
        {"process_group": ["0", "default_pg"], "collective_seq_id": i, "record_id": i,
         "profiling_name": f"nccl:{name}", "input_sizes": [shape], "input_dtypes": [dtype],
         "state": "completed" if done else "scheduled", "retired": done}
        for i, (name, shape, done, dtype) in enumerate(calls, 1)
    ]  # fmt: skip
    value = {"entries": entries, "pg_config": {"0": {"ranks": str(list(range(ranks)))}}}
    return read_flight(json.dumps(value).encode(), f"rank{rank}")[0]


SUM = ("all_reduce", [4], True, "Float")
OPEN = ("all_reduce", [4], False, "Float")


@pytest.mark.parametrize(
    ("last", "kind", "words"),
    [
        ((SUM, SUM, SUM), "matched", "All 3 ranks made the same 2 call"),
        ((OPEN, OPEN, OPEN), "stuck_together", "sequence 2 of all_reduce"),
        ((OPEN, ("broadcast", [4], False, "Float"), OPEN), "calls_differ", "broadcast on rank 1"),
        ((OPEN, OPEN, ("all_reduce", [5], False, "Float")), "sizes_differ", r"\[5\] on rank 2"),
        ((OPEN, OPEN, ("all_reduce", [4], False, "Half")), "types_differ", "Half on rank 2"),
        ((OPEN, None, OPEN), "never_called", "Rank 1 holds up rank 0, 2: it never called"),
        ((OPEN, OPEN), "missing_dump", "Rank 2 has left no dump"),
        ((("broadcast", [4], True, "Float"), ("broadcast", [5], True, "Float"), SUM[:0] or
          ("broadcast", [4], True, "Float")), "matched", "same 2 call"),
    ],
)  # fmt: skip
def test_dumps(last, kind, words):
    dumps = [dump(rank, SUM, *([call] if call else [])) for rank, call in enumerate(last)]
    found = kinds(call_findings(dumps))
    assert kind in found
    assert re.search(words, str(found[kind].reason))
    assert found[kind].fault == (kind != "matched")


def test_a_ring_buffer_that_has_forgotten_the_beginning():
    early = dump(0, *[SUM] * 9, OPEN, ranks=2)
    late = dump(1, *[SUM] * 9, OPEN, ranks=2)
    kept = tuple(call for call in late.calls if call.sequence > 7)
    late = type(late)(**{**vars(late), "calls": kept})
    assert set(kinds(call_findings([early, late]))) == {"stuck_together"}


def only(name, data=None):
    found = diagnose([given(name, data or (FILES / name).read_bytes())], None, predict, cluster)
    return {finding.kind: finding for finding in found.findings}


def test_plans_are_proved():
    found = only("msccl.xml")
    assert not found["plan"].fault
    assert "3 ranks by LL, in place, with 1 to 2 thread blocks a rank" in str(found["plan"].reason)
    assert "minBytes" in str(found["plan_refused"].reason)
    found = only("mscclpp.json")
    assert "It is proved" in str(found["plan"].reason)


def test_plans_that_are_wrong_or_too_large_are_told_apart():
    data = (FILES / "msccl.xml").read_bytes()
    found = only("msccl.xml", data.replace(b'hasdep="1"', b'hasdep="0"'))
    assert found["plan_wrong"].fault
    assert "it would never be told" in str(found["plan_wrong"].reason)
    found = only("msccl.xml", data.replace(b'type="rrs"', b'type="rcs"'))
    assert "lacks" in str(found["plan_wrong"].reason)
    found = only("msccl.xml", data.replace(b'_chunks="1"', b'_chunks="2000000"'))
    assert not found["plan"].fault
    assert "too many to prove" in str(found["plan"].reason)
    found = only("msccl.xml", data.replace(b'cnt="1"', b'cnt="80"').replace(b'="1" o', b'="99" o'))
    assert "80 chunks; at most 71" in str(found["plan_refused"].reason)


def test_levels_placements_and_lists_of_nodes():
    found = only("kueue.yaml")
    assert "2 levels" in str(found["levels"].reason)
    assert "4 pods of 8 cards each (preferred)" in str(found["placement_asked"].reason)
    found = only("x", b"a SLURM_JOB_NODELIST=n[1-3]\nb SLURM_JOB_NODELIST=n[3,1-2]\n")
    assert "in another order" in str(found["order_differs"].reason)
    found = only("x", b"SLURM_JOB_NODELIST=n[1-3]\n")
    assert "A job of 3 nodes" in str(found["nodes"].reason)


def test_several_topologies_of_a_file():
    found = diagnose([given("t", (FILES / "topology.yaml").read_bytes())], None, predict, cluster)
    assert [f.evidence[0].file for f in found.findings if f.evidence] == [
        "t: pods", "t: racks", "t: cube",
    ]  # fmt: skip


def test_a_mixture_in_the_order_of_what_matters():
    names = ("topology.xml", "watchdog.log", "flight1", "flight2.json", "nccl.log")
    found = look(*[Given(name, FILES / name) for name in names], given("t", TABLE))
    order = [(not f.fault, AREAS.index(f.area)) for f in found.findings]
    assert order == sorted(order)
    machine = [f.kind for f in found.findings if f.fault and f.area == "machine"]
    broken = [kind in BROKEN for kind in machine]
    assert broken == sorted(broken, reverse=True)
    assert {True, False} == {*broken}
    assert found.findings[0].area == "hang"
    assert not found.ok
    assert "measured" in kinds(found.findings)
    assert [file for file, _ in found.files] == [*names, "t"]


def test_one_bad_file_among_others_is_named_and_one_alone_is_an_error():
    bad = given("bad", b"nothing at all\n")
    found = look(bad, given("t", TABLE))
    assert found.files[0] == ("bad", ())
    assert "nothing known is in them: bad" in str(found.notes[-1][1].what)
    with pytest.raises(RoundelayError, match="bad: nothing known"):
        look(bad)
    with pytest.raises(RoundelayError, match="none of 2 files can be read"):
        look(bad, given("worse", b""))


def test_a_table_is_judged_by_the_cards_that_it_names():
    head = b"".join(b"#  Rank  %d Group  0 Pid 1 on h device %d [0x0%d] NVIDIA H100\n" % (i, i, i)
                    for i in range(8))  # fmt: skip
    found = look(given("t", head + TABLE))
    assert any("judged as dgx-h100:1" in str(note.what) for _, note in found.notes)
    assert "far_below" in kinds(found.findings) or "both_directions" in kinds(found.findings) or (
        any(f.fault for f in found.findings))  # fmt: skip


def test_every_sentence_has_its_translation():
    tell = translator("zh")
    for file in Path(package.__file__).parent.rglob("*.py"):
        tree = ast.parse(file.read_text("utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in docs:
                text = node.value
                if isinstance(text, str) and text.endswith(".") and " " in text.strip():
                    assert tell(text) != text, text
                    assert set(re.findall(r"{(\w+)", text)) == set(
                        re.findall(r"{(\w+)", tell(text))
                    )


# The command.


@pytest.fixture
def run(capsys):
    def words(*words):
        status = cli.run(["diagnose", *map(str, words), "--lang", "en"])
        return status, *capsys.readouterr()

    return words


def test_the_command(run, tmp_path):
    status, out, err = run(FILES / "watchdog.log", FILES / "topology.xml")
    assert status == 1
    assert out.startswith("off: ")
    assert f"{FILES / 'watchdog.log'}:2: [E ProcessGroupNCCL" in out
    status, out, err = run(FILES / "topo_m.txt")
    assert (status, err) == (0, "")
    assert "Nothing that is looked for is off." in out


def test_the_command_s_json(run):
    status, out, _ = run(FILES / "flight1", FILES / "flight2.json", "--json")
    value = json.loads(out)
    assert (status, value["ok"]) == (1, False)
    assert [file["kinds"] for file in value["files"]] == [["flight"], ["flight"]]
    first = value["findings"][0]
    assert (first["kind"], first["area"]) == ("sizes_differ", "hang")
    assert {"kind", "area", "fault", "subject", "figures", "confidence"} < set(first)
    assert {"evidence", "reason", "try"} < set(first)
    assert value["notes"][0]["text"] == "not understood, and left out: odd"


def test_a_folder_and_standard_input(run, monkeypatch, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes((FILES / "topo_m.txt").read_bytes())
    assert run(tmp_path)[0] == 0
    assert run(tmp_path / "missing")[0] == 2
    (tmp_path / "empty").mkdir()
    assert run(tmp_path / "empty")[0] == 2


@pytest.mark.parametrize("name", ["r.md", "r.html"])
def test_a_report(run, tmp_path, name):
    log = tmp_path / "x.log"
    log.write_bytes(b"<b>:1:2 [0] x.cc:1 NCCL WARN <script>alert(1)</script>\n"
                    + (FILES / "nccl.log").read_bytes())  # fmt: skip
    run(log, "--save", tmp_path / name, "--anonymise")
    text = (tmp_path / name).read_text("utf-8")
    assert "no_route" in text
    assert "192.0.2.4" not in text
    assert "node-a" not in text
    assert name != "r.html" or "<script>" not in text
    assert run(log, "--save", tmp_path / "r.pdf")[0] == 2


def test_names_are_replaced_the_same_everywhere():
    hide = Anonymous(["gpu7"])
    value = hide.value({"host": ["gpu7:1:2 [0] NCCL", "to 10.1.2.3<5> from 10.1.2.3", "xgpu7"],
                        "n": 3, "p": "/home/eve/x 127.0.0.1 0xa000000000000001"})  # fmt: skip
    assert value == {"host": ["host-1:1:2 [0] NCCL", "to address-1<5> from address-1", "xgpu7"],
                     "n": 3, "p": "/home/user-1/x 127.0.0.1 guid-1"}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpu-7: lost gpu-12.ib.corp.example and gpu-[3,8-9]", "host-1: lost host-2 and host-3"),
        ("logs/gpu-7.log", "logs/host-1.log"),
        ("Connect to storage.corp.example<4000> failed", "Connect to host-2<4000> failed"),
        ("process 1 on node a17 exited on signal 9", "process 1 on node host-2 exited on signal 9"),
        ("fe80::1a2b:3cff:fe4d:5e6f, ::1 and fd00:1::5", "address-1, ::1 and address-2"),
        ("c10d::Work at 01:02:03 on 0000:1a:00.0", "c10d::Work at 01:02:03 on 0000:1a:00.0"),
        ("eve@login2 ran /lustre/eve/a.py", "user-1@host-2 ran /lustre/user-1/a.py"),
        ("all_reduce of 8 ranks, n = 16, GPU7-NIC7", "all_reduce of 8 ranks, n = 16, GPU7-NIC7"),
    ],
)
def test_names_that_look_like_a_known_one_are_replaced(text, told):
    assert Anonymous(["gpu-7"]).text(text) == told


if DATA := os.environ.get("ROUNDELAY_DATA"):
    CASES = dict(cases(Path(DATA, "cases")))

    @pytest.mark.parametrize("name", WANTED)
    def test_case(name):
        assert lacks(answer(CASES[name]), WANTED[name]) == []


# Drawing a machine.


@pytest.mark.parametrize(
    ("name", "words"),
    [("topology.xml", "GPU0  sm90  0000:11:00.0  NVLink x18 -> NVSwitch  PIX -> NIC0"),
     ("topo_m.txt", "NIC1  bnxt_re1"), ("showtopo.txt", "GPU1  xGMI x1 -> 1 other")],
)  # fmt: skip
def test_a_machine_is_drawn(capsys, name, words):
    assert cli.run(["topology", str(FILES / name), "--lang", "en"]) == 0
    out, err = capsys.readouterr()
    assert words in out
    assert not err
    cli.run(["topology", str(FILES / name), "--json"])
    value = json.loads(capsys.readouterr().out)
    assert len(value["cards"]) >= 3
    assert {"from", "to", "way"} == set(value["ways"][0])


def test_what_is_no_machine_is_not_drawn(capsys):
    assert cli.run(["topology", str(FILES / "graph.xml")]) == 2
    assert "no topology" in capsys.readouterr().err
