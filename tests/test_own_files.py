"""Files that Roundelay itself writes: each is known by what stands in it, and told of."""

import json

import pytest
from fuzzing import seeds
from test_timeline import sample

import roundelay as rl
from roundelay import RoundelayError, cli
from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.own import TOLD
from roundelay.diagnose.recognise import kinds_of
from roundelay.diagnose.together import diagnose
from roundelay.formats.chrome import write_chrome
from roundelay.formats.schedule import write_schedule
from roundelay.formats.timeline import write_timeline
from roundelay.formats.tuner import COLLECTIVES, MOST
from roundelay.simulate.nccl import predict

SEEDS = seeds()
HEAD = "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks\n"
ALL = "".join(f"{name},0,{MOST},ring,simple,16,-1,-1\n" for name in COLLECTIVES.values())


def look(data):
    found = diagnose([Given("x", data=data)], None, predict, cluster)
    return {f.kind: f for f in found.findings}, found


@pytest.mark.parametrize(
    ("name", "kind", "finding", "words"),
    [
        ("tuner.conf", "tuner", "tuner", "9 legal rows"),
        ("cluster.toml", "cluster", "cluster_file", "1 node of 8 cards (hopper), 8 cards in all"),
        ("job.toml", "job", "job_file", "16 ranks (8 x 2 x 1)"),
        ("job.json", "job", "job_file", "a (chain, 1 GiB, 1 call, 2 groups of 2)"),
        ("arrivals.csv", "arrivals", "arrivals", "6 jobs within 600 s, of 4 to 64 cards"),
        ("jobs.json", "jobs_log", "jobs_over_time", "1 job on x (2 nodes)"),
        ("algorithms.toml", "algorithms", "algorithm_table", "1 rule: all_reduce 1"),
        ("schedule.json", "schedule", "plan", "all_reduce of 4 ranks, 4 chunks"),
        ("x.timeline", "timeline", "timeline", "5 events of 4 participants"),
        ("bench.json", "bench", "measured", "all_reduce/ring, n = 2, float32: 10 GB/s"),
        ("walk.json", "walk", "walk", "4 tokens, of 9 ms each"),
    ],
)  # fmt: skip
def test_each_kind(name, kind, finding, words):
    data = SEEDS[name]
    assert kinds_of(Given("x", data=data)) == (kind,)
    found, whole = look(data)
    assert whole.ok
    assert words in str(found[finding].reason)
    assert found[finding].evidence[0].file == "x"


def test_every_kind_is_tried():
    assert {kinds_of(Given("x", data=data))[:1] for data in SEEDS.values()} >= {
        (kind,) for kind in TOLD if kind != "report"}  # fmt: skip


def test_a_report_of_its_own(tmp_path, capsys):
    (tmp_path / "t.conf").write_text(HEAD + ALL)
    cli.run(["diagnose", str(tmp_path / "t.conf"), "--json"])
    found, whole = look(capsys.readouterr().out.encode())
    assert whole.files == [("x", ("report",))]
    assert "1 finding: tuner" in str(found["report"].reason)


@pytest.mark.parametrize("kind", TOLD)
def test_what_is_none_is_refused(kind):
    for data in (b"", b"\x00\xff", b"{", b"[inside]\n", b"arrival_s,gpus,steps\n"):
        with pytest.raises(RoundelayError):
            TOLD[kind]("x", data)


# Tables of NCCL's tuner plugin.


def tuner(*rows, rest=ALL):
    return look((HEAD + "".join(f"{row}\n" for row in rows) + rest).encode())[0]


def test_what_a_tuner_table_chooses():
    found = tuner("allreduce,0,65535,tree,ll,8,2,16", "allreduce,65536,1048575,tree,ll,8,2,16")
    assert set(found) == {"tuner"}
    told = str(found["tuner"].reason)
    assert "all_reduce, 2 nodes, 16 ranks: 0 B - 1 MiB tree/LL (8 channels)" in told
    assert "all_gather: * ring/Simple (16 channels)" in told
    assert "all_gather, 2 nodes" not in told  # it is treated as any other


def test_rows_that_are_not_legal():
    found = tuner("allreduce,0,10,nvls,ll,8,-1,-1", "sum,0,10,ring,ll,8,-1,-1",
                  "allreduce,0,10,ring,ll,-1,-1,-1")  # fmt: skip
    assert found["tuner_wrong"].figures["count"] == 3
    assert [e.line for e in found["tuner_wrong"].evidence] == [2, 3, 4]
    assert "line 2" in str(found["tuner_wrong"].reason)
    only = look(b"allreduce,0,10,nvls,ll,8,-1,-1\n")[0]
    assert {"tuner_wrong", "one_channel"} == set(only)


def test_calls_that_fall_to_one_channel():
    found = tuner(
        "allreduce,0,65535,tree,ll,8,2,16", rest="allreduce,131072,1048575,ring,ll,4,2,16\n"
    )
    told = str(found["one_channel"].reason)
    assert found["one_channel"].fault
    assert "all_reduce: *" in told
    assert "all_reduce, 2 nodes, 16 ranks: 64 KiB - 128 KiB" in told
    assert "broadcast: *" in told


def test_rows_that_come_too_late():
    found = tuner(rest=ALL + "allreduce,0,10,tree,ll,2,-1,-1\n")
    assert found["row_never_taken"].figures["lines"] == "7"


# Others.


def test_schedules_are_proved():
    ring = rl.build("all_reduce/ring", 4)
    found, _ = look(write_schedule(ring))
    assert "It is proved" in str(found["plan"].reason)
    wrong = json.loads(write_schedule(ring))
    wrong["rounds"] = wrong["rounds"][:1]
    found, _ = look(json.dumps(wrong).encode())
    assert found["plan_wrong"].fault


def test_a_trace_of_ours_is_a_timeline():
    found, _ = look(write_chrome(sample()))
    assert "timeline" in found
    assert "traced" not in found


def test_times_that_run_backwards():
    timeline = sample()
    timeline.end[1] = -90
    found, _ = look(write_timeline(timeline))
    assert "a time, found" in str(found["impossible"].reason)
    assert found["timeline"].figures["events"] == 4


def test_a_walk_that_cannot_be():
    walk = json.loads(SEEDS["walk.json"])
    found, _ = look(json.dumps(walk | {"token_us": -3.0}).encode())
    assert "a time, found -3 us" in str(found["impossible"].reason)
    with pytest.raises(RoundelayError, match=r"exchange_share, found 1\.7, at most 1"):
        look(json.dumps(walk | {"exchange_share": 1.7}).encode())


def test_wrong_and_impossible_rows_of_a_bench():
    row = json.loads(SEEDS["bench.json"])["rows"][0]
    rows = [row | {"wrong": 3}, row | {"time_us": -1.0}, row | {"algbw_GBps": 99.0},
            row | {"time_us": None}]  # fmt: skip
    found, _ = look(json.dumps({"ping_ns": None, "rows": rows}).encode())
    assert found["wrong_results"].figures["wrong"] == 3
    assert found["impossible"].fault
    assert found["measured"].figures["rows"] == 1
