"""`roundelay simulate` as a user meets it: the table, its JSON, sweeps, and what it refuses."""

import io
import json
import math
import re
import sys
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay import cli
from roundelay.algorithms import algorithms
from roundelay.cli import progress, sweep
from roundelay.cli.points import Point, answer
from roundelay.clusters import cluster, names, write
from roundelay.formats.nccl_tests import bus_factor, read_nccl_tests
from roundelay.simulate import Clock
from roundelay.simulate.nccl import predict

PIECES = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
"""Collectives whose ranks have a piece each."""
PARTS = ("latency_us", "wire_us", "reduce_us", "wait_us", "host_us")
SHAPE = {
    "bytes", "algorithm", "protocol", "channels", "time_us", "p50_us", "p99_us", "p999_us",
    "mean_us", "max_us", "expected_max_us", "algbw_GBps", "busbw_GBps", *PARTS, "binding_link",
    "error_band",
}  # fmt: skip
HEAD = """\
#                                                              out-of-place
#       size         count      type   redop    root     time   algbw   busbw #wrong  algorithm
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
"""
"""As nccl-tests 2.13 and later print it, but for the last column."""
SWEEP = ("all_reduce", "--cluster", "dgx-h100", "--sizes", "1M,1G")
OWN = """
from roundelay import Schedule, algorithm, build


@algorithm("all_reduce", messages="2*(n-1)", bytes_sent="2*S*(n-1)/n", steps="2*(n-1)")
def mine(n: int) -> Schedule:
    return build("all_reduce/ring", n)


@algorithm("all_reduce", messages="log2(n)", bytes_sent="S*log2(n)", steps="log2(n)")
def yours(n: int) -> Schedule:
    return build("all_reduce/recursive_doubling", n)
"""


@pytest.fixture(autouse=True)
def _english(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def simulate(capsys):
    """Exit status, stdout and stderr of `simulate` with these words."""

    def run(*words):
        status = cli.run(["simulate", *words])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def found(simulate):
    """The JSON of `simulate` with these words."""

    def run(*words):
        status, out, err = simulate(*words, "--json")
        assert (status, err) == (0, "")
        assert "NaN" not in out
        assert "Infinity" not in out
        return json.loads(out)

    return run


# The table.


def test_the_head_is_that_of_nccl_tests(simulate):
    status, out, err = simulate("all_reduce", "--cluster", "dgx-h100", "--algorithm", "nccl")
    assert (status, err) == (0, "")
    title, where, _, rest = out.split("\n", 3)
    assert title == "# all_reduce, n = 8"
    assert where == "# dgx-h100, nodes: 1, cards: 8; predicted, not measured"
    assert rest.startswith(HEAD)
    rows = [line for line in rest.splitlines() if not line.startswith("#")]
    assert len(rows) == 32  # 8 to 16 GiB
    for line in rows:  # %12s %13s %9s %7s %7s %8s %7s %7s %6s
        assert re.fullmatch(r"[ \d]{12} [ \d]{13} {5}float {5}sum {6}-1 .{8} .{7} .{7} {4}N/A  .+",
                            line)  # fmt: skip


@pytest.mark.parametrize("collective", [*PIECES, "all_reduce", "broadcast", "reduce", "send_recv"])
def test_the_table_is_read_again(simulate, found, collective):
    asked = (collective, "--cluster", "dgx-h100:2", "--sizes", "8,1000,64K,1M,3M,1G")
    _, out, _ = simulate(*asked)
    [table] = read_nccl_tests(out).tables
    assert (table.collective, table.ranks) == (collective, 16)
    rows = found(*asked)["rows"]
    assert len(table.rows) == len(rows)
    for row, line in zip(rows, table.rows, strict=True):
        timing = line.out_of_place
        assert line.in_place is None
        assert line.size == row["bytes"]
        assert timing.time_us == pytest.approx(row["time_us"], rel=1e-3)
        assert timing.algbw == pytest.approx(row["algbw_GBps"], abs=0.006)
        assert timing.busbw == pytest.approx(row["busbw_GBps"], abs=0.006)
        assert timing.wrong is None
    assert table.rows[3].count == 2**20 // 4 // (16 if collective in PIECES else 1)


def test_a_predicted_table_is_as_expected(simulate, capsys, monkeypatch):
    """What `simulate` says NCCL does, `check` finds as expected."""
    _, out, _ = simulate("all_reduce", "--cluster", "dgx-a100:2", "--algorithm", "nccl", "-b", "8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
    assert cli.run(["check", "-", "--cluster", "dgx-a100:2"]) == 0
    said, _ = capsys.readouterr()
    assert "32 of 32 are as expected; the median time is 1.00 times the expected one" in said


def test_counts_of_sizes_that_hold_no_floats(simulate):
    _, out, _ = simulate("all_reduce", "--cluster", "dgx-h100", "--sizes", "0,1,7,12")
    cells = [line.split()[:3] for line in out.splitlines() if not line.startswith("#")]
    assert cells == [["0", "0", "float"], ["1", "1", "uint8"], ["7", "7", "uint8"],
                     ["12", "3", "float"]]  # fmt: skip


def test_a_root_and_an_operation_are_shown(simulate):
    _, out, _ = simulate(
        "broadcast/binomial", "--cluster", "dgx-h100", "--sizes", "1K", "--root", "3"
    )
    assert " float    none       3 " in out
    _, out, _ = simulate("reduce/binomial", "--cluster", "dgx-h100", "--sizes", "1K")
    assert " float     sum       0 " in out


def test_the_notes_tell_the_parts_the_link_and_the_error(simulate):
    _, out, _ = simulate("all_reduce/ring", "--cluster", "dgx-h100:2", "--sizes", "8,1G")
    notes = out[out.rindex("#\n") :].splitlines()[1:]
    assert notes[0].startswith("# the last line: latency 141 us, wire 42.27 ms")
    assert "copying and adding" in notes[0]
    assert notes[0].endswith("the busiest link: NIC 7 of node 0, out")
    assert notes[1].startswith("# measured times of 8 B are expected between 0.9 and 1.8 times")
    assert notes[2].startswith("# measured times of 1 GiB are expected between")


def test_powers_of_1000_are_pointed_out(simulate):
    said = "nccl-tests' 1G is 1 GiB"
    assert said in simulate("all_reduce", "--cluster", "dgx-h100", "--sizes", "1GB")[1]
    assert said not in simulate("all_reduce", "--cluster", "dgx-h100", "--sizes", "1G,1GiB,0")[1]


def test_a_barrier_moves_nothing(found):
    [row] = found("barrier", "--cluster", "dgx-h100:2")["rows"]
    assert (row["bytes"], row["algbw_GBps"], row["wire_us"]) == (0, 0, 0)
    assert row["time_us"] > 0


def test_chinese(simulate):
    _, out, _ = simulate("all_reduce", "--cluster", "dgx-h100", "--sizes", "1M", "--lang", "zh")
    assert "为预测，不是实测" in out
    assert read_nccl_tests(out).tables[0].ranks == 8


# JSON, and what it says.


def test_json_shape(found):
    value = found("all_reduce", "--cluster", "dgx-h100:2", "-b", "8", "-e", "16G", "-f", "16")
    assert set(value) == {"cluster", "ranks", "rows"}
    assert (value["cluster"], value["ranks"]) == ("dgx-h100", 16)
    assert [row["bytes"] for row in value["rows"]] == [8 * 16**i for i in range(8)]
    for row in value["rows"]:
        assert set(row) == SHAPE
        assert sum(row[part] for part in PARTS) == pytest.approx(row["time_us"], abs=1e-6)
        assert row["algbw_GBps"] == pytest.approx(row["bytes"] / row["time_us"] / 1e3)
        low, high = row["error_band"]
        assert low < row["time_us"] < high


@pytest.mark.parametrize("machine", names())
@pytest.mark.parametrize("by", ["all_reduce/ring", "all_to_all/direct", "nccl"])
def test_parts_add_up_on_every_machine(machine, by):
    collective = "all_reduce" if by == "nccl" else by.partition("/")[0]
    n = 2 if machine.endswith("pcie") else cluster(machine).size
    for size in (0, 1, 1000, 2**20, 2**34):
        row = answer(Point(collective=collective, by=by, cluster=write(cluster(machine)), ranks=n,
                           size=size))  # fmt: skip
        assert set(row) == SHAPE
        assert all(math.isfinite(v) for v in row.values() if isinstance(v, float))
        assert sum(row[part] for part in PARTS) == pytest.approx(row["time_us"], abs=1e-6)
        assert all(row[part] >= 0 for part in PARTS)
        assert row["busbw_GBps"] == pytest.approx(
            row["algbw_GBps"] * float(bus_factor(collective, n))
        )


def test_nccl_is_its_model(found):
    where = cluster("dgx-h100:4")
    rows = found("all_gather", "--cluster", "dgx-h100:4", "--algorithm", "nccl", "--sizes", "8,1G")
    for row in rows["rows"]:
        p = predict(where, "all_gather", row["bytes"])
        assert (row["algorithm"], row["protocol"], row["channels"]) == (p.algorithm, p.protocol,
                                                                        p.channels)  # fmt: skip
        assert row["time_us"] == pytest.approx(p.time_s * 1e6)
    [row] = found("all_gather", "--cluster", "dgx-h100", "--algorithm", "nccl", "--sizes", "8",
                  "--protocol", "Simple")["rows"]  # fmt: skip
    assert row["protocol"] == "Simple"


def test_auto_is_the_quickest_of_all(found):
    asked = ("all_reduce", "--cluster", "dgx-h100:2", "--sizes", "64K,64M")
    auto = found(*asked)["rows"]
    every = found(*asked, "--algorithm", "all")
    for row in auto:
        same = [r["time_us"] for r in every["rows"] if r["bytes"] == row["bytes"]]
        assert row["time_us"] <= min(same) * (1 + 1e-9)


def test_all_is_each_and_says_why_some_are_not(found, simulate):
    asked = ("all_reduce", "--cluster", "dgx-h100:2", "--algorithm", "all", "--sizes", "64K,64M")
    value = found(*asked)
    timed = [row["algorithm"].partition(",")[0] for row in value["rows"]]
    missing = {row["swept"]["algorithm"] for row in value["left_out"]}
    assert set(timed) | missing == {a.name for a in algorithms("all_reduce")}
    assert all(timed.count(name) == 2 for name in set(timed))
    _, out, _ = simulate(*asked)
    assert re.search(r"# no answer for leader_switch, .*needs switches between the nodes", out)


def test_a_named_algorithm_is_the_clock(found):
    schedule = algorithms("all_reduce")
    ring = next(a for a in schedule if a.name == "ring")(16)
    timing = Clock(ring, cluster("dgx-h100:2")).time(2**20)
    for words in (["all_reduce/ring"], ["all_reduce", "--algorithm", "ring"]):
        [row] = found(*words, "--cluster", "dgx-h100:2", "--sizes", "1M")["rows"]
        assert row["time_us"] == pytest.approx(timing.time * 1e6)
    [row] = found("all_reduce/rails", "--cluster", "dgx-h100:2", "--sizes", "1M", "-p",
                  "outer=double_tree")["rows"]  # fmt: skip
    assert row["algorithm"] == "rails, outer=double_tree, group=8"


def test_cards_that_take_part(found):
    value = found("all_reduce/ring", "--cluster", "dgx-h100:2", "-n", "3", "--sizes", "1M")
    assert value["ranks"] == 3


def test_a_schedule_file(found, tmp_path):
    file = tmp_path / "ring.json"
    assert cli.run(["export", "all_reduce/ring", "-n", "8", "-o", str(file)]) == 0
    value = found(str(file), "--cluster", "dgx-h100:2", "--sizes", "1M")
    assert value["ranks"] == 8
    assert value["rows"][0]["algorithm"] == "ring"


def test_algorithms_of_a_file(found, simulate, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    value = found(str(file), "--cluster", "dgx-h100:2", "--sizes", "1M,1G")
    assert [row["algorithm"] for row in value["rows"]] == ["mine", "mine", "yours", "yours"]
    [row] = found(f"{file}:all_reduce/yours", "--cluster", "dgx-h100", "--sizes", "1M")["rows"]
    assert row["algorithm"] == "yours"
    [row] = found(str(file), "--algorithm", "yours", "--cluster", "dgx-h100", "--sizes",
                  "1M")["rows"]  # fmt: skip
    assert row["algorithm"] == "yours"
    status, _, err = simulate(str(file), "--algorithm", "theirs", "--cluster", "dgx-h100")
    assert status == 2
    assert "unknown algorithm" in err
    assert "known: mine, yours" in err


# What is slow, and what differs.


def test_a_straggler_makes_it_slower(found):
    asked = ("all_reduce/ring", "--cluster", "dgx-h100", "--sizes", "1G")
    usual, slow, link = (
        found(*asked, *more)["rows"][0]["time_us"]
        for more in (
            (),
            ("--straggler", "rank=3:2"),
            ("--straggler", "link=card 3 of node 0, out:2"),
        )
    )
    assert usual < slow <= 2.01 * usual
    assert usual < link <= 2.01 * usual
    both = ("--straggler", "rank=3:1.5", "--straggler", "rank=4:2")
    assert found(*asked, *both)["rows"][0]["time_us"] == pytest.approx(slow)


def test_jitter_draws_a_distribution(found, simulate):
    asked = ("all_reduce/ring", "--cluster", "dgx-h100", "--sizes", "64K", "--jitter",
             "step=normal:0.1,card=lognormal:0.05", "--samples", "400")  # fmt: skip
    [row] = found(*asked)["rows"]
    assert row["time_us"] < row["p50_us"] < row["p99_us"] <= row["p999_us"] <= row["max_us"]
    assert row["p99_us"] < row["expected_max_us"] <= row["max_us"]
    assert found(*asked)["rows"] == [row]
    assert found(*asked, "--seed", "2")["rows"] != [row]
    _, out, _ = simulate(*asked)
    assert "#wrong       p50       p99     p99.9    E[max]  algorithm" in out
    assert len(read_nccl_tests(out).tables[0].rows) == 1


# What it refuses.


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--sizes", "-8"], "is negative"),
        (["--sizes", "1M elements"], "unknown unit"),
        (["--sizes", "1Gb"], "looks like bits"),
        (["--sizes", "1GB/s"], "is a rate"),
        (["--sizes", "1.5"], "not a whole number of bytes"),
        (["--sizes", "9000000000000000000000"], "below 2^63"),
        (["-b", "1G", "-e", "1M"], "expected 1 byte or more, an end no smaller"),
        (["-b", "0"], "expected 1 byte or more"),
        (["-f", "1"], "x>=2"),
        (["-n", "9"], "9 ranks, and dgx-h100 has 8 cards"),
        (["-n", "0"], "has '0', which is no count"),
        (["-n", "2,4"], "names 2 numbers of ranks"),
        (["--algorithm", "rign"], "did you mean ring"),
        (["--algorithm", "ring", "--protocol", "LL12"], "no protocol 'LL12'"),
        (["--algorithm", "nccl", "--protocol", "LL12"], "NCCL has no all_reduce by LL12"),
        (["--algorithm", "ring", "-p", "pieces=3"], "unknown parameter"),
        (["-p", "pieces=3"], "-p with the quickest of all algorithms; name an algorithm"),
        (["--protocol", "LL"], "--protocol with the quickest"),
        (["--root", "1"], "--root with the quickest"),
        (["--algorithm", "nccl", "--straggler", "rank=1:2"], "--straggler with NCCL's choice"),
        (["--algorithm", "nccl", "--jitter", "step=normal:0.1"], "--jitter with NCCL's choice"),
        (["--algorithm", "nccl", "-n", "1"], "1 cards; expected 2 to 8"),
        (["--sizes", "1M", "--straggler", "rank=8:2"], "rank 8; expected 0 to 7"),
        (["--sizes", "1M", "--straggler", "rank=x:2"], "'x' is no rank"),
        (["--straggler", "rank=1"], "no straggler"),
        (["--sizes", "1M", "--straggler", "rank=1:0.5"], "0.5 times slower; expected 1 to"),
        (["--sizes", "1M", "--straggler", "rank=1:nan"], "nan times slower"),
        (["--sizes", "1M", "--straggler", "rank=1:inf"], "inf times slower"),
        (["--straggler", "card=1:2"], "no straggler"),
        (["--sizes", "1M", "--straggler", "link=NIC 9 of node 0, out:2"],
         "has no link 'NIC 9 of node 0, out'"),
        (["--sizes", "1M", "--straggler", "link=99999:2"], "link 99999; expected 0 to"),
        (["--jitter", "step=normal"], "no jitter"),
        (["--jitter", "step=normal:nan"], "no jitter"),
        (["--jitter", "step=normal:-1"], "above 0"),
        (["--jitter", "step=gauss:0.1"], "unknown distribution"),
        (["--jitter", ","], "lets nothing differ"),
        (["--algorithm", "ring", "--jitter", "step=normal:0.1", "--samples", "10000001"],
         "expected 1 to 10,000,000"),
        (["--seed", "-1"], "not in the range"),
        (["--sweep", "straggler=1,2"], "needs one --straggler that says who is slow"),
        (["--sweep", "nodes=1,2", "--sweep", "nodes=4"], "nodes is swept twice"),
        (["--sweep", "cluster=dgx-h1000"], "did you mean"),
        (["--sweep", "nodes=0"], "no count"),
        (["--plot", "a.pdf"], "expected one of .svg, .png, .html"),
        (["--plot", "a.svg", "--sweep", "algorithm=ring,nccl", "--sweep", "nodes=1,2,4..64"],
         "a picture of 64 lines; expected at most 40"),
        (["--jobs", "0"], "x>=1"),
    ],
)  # fmt: skip
def test_what_is_refused(simulate, words, complaint):
    status, out, err = simulate("all_reduce", "--cluster", "dgx-h100", *words)
    assert (status, out) == (2, "")
    assert complaint in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["all_reduce"], "on which cluster? Add --cluster"),
        (["all_reduce", "--cluster", "dgx-h1000"], "did you mean dgx-h100"),
        (["all_reduce", "--cluster", "dgx-h100:0"], "dgx-h100:0"),
        (["all_reduc", "--cluster", "dgx-h100"], "did you mean all_reduce"),
        (["all_reduce/ring", "--algorithm", "tree", "--cluster", "dgx-h100"],
         "all_reduce/ring names an algorithm already"),
        (["all_reduce/switch", "--cluster", "dgx-a100"], "needs switches"),
        (["all_reduce/halving_doubling", "--cluster", "dgx-h100", "-n", "6", "-p", "x=1"],
         "unknown parameter"),
        (["gather", "--algorithm", "nccl", "--cluster", "dgx-h100"], "unknown collective of NCCL"),
        (["all_reduce", "--algorithm", "nccl", "--cluster", "l40s-pcie"], "share PCIe"),
    ],
)  # fmt: skip
def test_what_goes_nowhere(simulate, words, complaint):
    status, out, err = simulate(*words)
    assert (status, out) == (2, "")
    assert complaint in err


def test_a_rate_above_what_carries_it(simulate, tmp_path):
    file = tmp_path / "mine.toml"
    text = write(cluster("dgx-h100:2"))
    file.write_text(re.sub(r'(\[nics\](?:.|\n)*?rate = )"[^"]*"', r'\1"1600 Gb/s oneway"', text))
    status, _, err = simulate("all_reduce", "--cluster", str(file))
    assert status == 2
    assert "nics.rate" in err
    file.write_text(re.sub(r'(\[nics\](?:.|\n)*?rate = )"[^"]*"', r'\1"50 GB/s"', text))
    status, _, err = simulate("all_reduce", "--cluster", str(file))
    assert status == 2
    assert "oneway" in err


@given(st.lists(st.text("0123456789KMGTiB.-+e ,x", max_size=8), max_size=3).map(",".join))
def test_any_sizes_are_times_or_a_complaint(text):
    stop = ["all_reduce/ring", "--cluster", "dgx-h100", f"--sizes={text}"]
    assert cli.run(["simulate", *stop]) in (0, 2)


# Sweeps.


def test_a_sweep_is_a_line_a_point(simulate, found):
    words = (*SWEEP, "--sweep", "nodes=1,2..8", "--sweep", "algorithm=ring,nccl")
    value = found(*words)
    assert value["cluster"] == "dgx-h100"
    assert value["ranks"] is None
    assert value["swept"] == {"nodes": [1, 2, 4, 8], "algorithm": ["ring", "nccl"]}
    points = [(r["swept"]["nodes"], r["swept"]["algorithm"], r["bytes"]) for r in value["rows"]]
    assert points == [(n, a, s) for n in (1, 2, 4, 8) for a in ("ring", "nccl")
                      for s in (2**20, 2**30)]  # fmt: skip
    for row in value["rows"]:
        assert set(row) == {*SHAPE, "cluster", "nodes", "ranks", "swept"}
        assert row["ranks"] == 8 * row["nodes"]
    status, out, _ = simulate(*words)
    lines = out.splitlines()
    assert status == 0
    assert lines[0].split()[:4] == ["nodes", "algorithm", "size", "us"]
    assert len(lines) == 2 + 16


def test_a_sweep_says_what_simulate_says(found):
    rows = found(*SWEEP, "--sweep", "nodes=2,4", "--algorithm", "ring")["rows"]
    alone = found("all_reduce", "--cluster", "dgx-h100:4", "--sizes", "1M,1G", "--algorithm",
                  "ring")["rows"]  # fmt: skip
    assert [{key: row[key] for key in SHAPE} for row in rows[2:]] == alone


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("cluster=dgx-a100,dgx-h100:2", ["dgx-a100", "dgx-h100"]),
        ("ranks=2,4,8", [2, 4, 8]),
        ("size=1K,2K..8K", [1024, 2048, 4096, 8192]),
        ("protocol=LL,Simple", ["LL", "Simple"]),
    ],
)
def test_every_key_is_swept(found, axis, values):
    key = axis.partition("=")[0]
    rows = found("all_reduce/ring", "--cluster", "dgx-h100", "--sizes", "64K", "--sweep",
                 axis)["rows"]  # fmt: skip
    assert [row["bytes" if key == "size" else key] for row in rows] == values


def test_a_swept_straggler(found):
    words = ("all_reduce/ring", "--cluster", "dgx-h100", "--sizes", "1G", "--straggler", "rank=3:9",
             "--sweep", "straggler=1,1.1,2")  # fmt: skip
    times = [row["time_us"] for row in found(*words)["rows"]]
    [usual] = found(*words[:5])["rows"]
    assert times[0] == pytest.approx(usual["time_us"])
    assert times[0] < times[1] < times[2]


def test_points_without_an_answer_are_told(simulate, found):
    words = (*SWEEP, "--algorithm", "switch", "--sweep", "nodes=1,2")
    value = found(*words)
    assert [row["nodes"] for row in value["rows"]] == [1, 1]
    assert [row["swept"] for row in value["left_out"]] == [{"nodes": 2}] * 2
    status, out, _ = simulate(*words)
    assert status == 0
    assert "no answer for 2: needs switches between the nodes that add" in out
    status, out, err = simulate(*SWEEP, "--algorithm", "switch", "--sweep", "nodes=2,4")
    assert (status, out) == (2, "")
    assert "needs switches between the nodes" in err


def test_what_a_file_has_is_not_asked_again(found, monkeypatch, tmp_path):
    asked = []
    real = sweep.answer

    def counted(point, threads=1):
        asked.append((point.ranks, point.size))
        return real(point, threads)

    monkeypatch.setattr(sweep, "answer", counted)
    file = tmp_path / "rows.jsonl"
    words = (*SWEEP, "--algorithm", "ring", "--out", str(file), "--jobs", "1", "--sweep")
    first = found(*words, "nodes=1,2,4")
    assert len(asked) == 6
    assert found(*words, "nodes=1,2,4") == first
    assert len(asked) == 6
    more = found(*words, "nodes=1,2..8")
    assert more["rows"][:6] == first["rows"]
    assert asked[6:] == [(64, 2**20), (64, 2**30)]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 8
    assert {*SHAPE, "key", "cluster", "nodes", "ranks", "swept"} == set(lines[0])
    file.write_bytes(file.read_bytes()[:-30])  # as if it had ended in the middle of a line
    assert found(*words, "nodes=1,2..8") == more
    assert asked[8:] == [(64, 2**30)]


def test_another_question_is_asked(found, monkeypatch, tmp_path):
    """Whatever an answer hangs on is in its key."""
    where = write(cluster("dgx-h100"))
    point = Point(collective="all_reduce", by="all_reduce/ring", cluster=where, ranks=8, size=8)
    others = [
        {"by": "nccl"}, {"ranks": 4}, {"size": 16}, {"protocol": "LL"}, {"params": (("a", 1),)},
        {"root": 1}, {"stragglers": (("rank", "1", 2.0),)}, {"jitter": "step=normal:0.1"},
        {"samples": 7}, {"seed": 2}, {"cluster": where.replace("3.33 us", "3.34 us")},
    ]  # fmt: skip
    fields = {name: getattr(point, name) for name in point.__struct_fields__}
    keys = {point.key(), point.key(b"file"), *(Point(**fields | o).key() for o in others)}
    assert len(keys) == len(others) + 2
    monkeypatch.setattr("roundelay.__version__", "99", raising=False)
    assert point.key() not in keys


def test_several_processes_give_the_same(found, monkeypatch):
    monkeypatch.setattr("roundelay.sweep.processes.PATIENCE", -1.0)
    words = (*SWEEP, "--algorithm", "ring", "--sweep", "nodes=1,2..16")
    assert found(*words, "--jobs", "2") == found(*words, "--jobs", "1")


def test_a_ray_cluster_is_asked(found, monkeypatch):
    monkeypatch.setattr(sweep, "over_ray", lambda answer, points: (
        (i, answer(point)) for i, point in reversed(list(enumerate(points)))))  # fmt: skip
    words = (*SWEEP, "--algorithm", "ring", "--sweep", "nodes=1,2,4")
    assert found(*words, "--ray") == found(*words)


def test_progress_where_somebody_watches(monkeypatch, capsys):
    with progress.progress(3, 1) as step:
        step({"nodes": 4})
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    with progress.progress(3, 3) as step:
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with progress.progress(3, 1) as step:
        step({"nodes": 4})
    err = capsys.readouterr().err
    assert "2 of 3" in err
    assert "nodes=4" in err
    assert err.endswith("\r")


def test_progress_with_rich(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(progress, "on_terminal", lambda: True)
    with progress.progress(3, 1) as step:
        step({"nodes": 4})
    assert capsys.readouterr().out == ""


# Charts.


def _texts(file):
    return [n.text for n in ET.parse(file).iter() if n.tag.endswith("text")]


def test_busbw_against_size(simulate, tmp_path):
    file = tmp_path / "a.svg"
    words = ("--cluster", "dgx-h100", "--algorithm", "nccl", "-b", "1K", "--plot", str(file))
    status, _, _ = simulate("all_reduce", *words)
    assert status == 0
    texts = _texts(file)
    assert {"all_reduce, dgx-h100, 8 cards", "busbw, GB/s one way", "size", "1 KiB"} <= set(texts)
    assert "predicted; measured ones are expected where it is shaded" in texts
    assert "rl-band" in file.read_text()


def test_time_against_nodes(simulate, tmp_path):
    file = tmp_path / "a.svg"
    words = ("--sweep", "nodes=1,2,4..16", "--sweep", "algorithm=ring,nccl", "--plot", str(file))
    status, _, _ = simulate(*SWEEP, *words)
    assert status == 0
    assert {"time of a call", "nodes", "16", "ring, 1 MiB", "nccl, 1 GiB"} <= set(_texts(file))


def test_lines_of_all_algorithms(simulate, tmp_path):
    file = tmp_path / "a.svg"
    words = ("--cluster", "dgx-h100:2", "--sizes", "1M,1G", "--algorithm", "all")
    simulate("all_reduce", *words, "--plot", str(file))
    assert {"ring", "one_shot", "rails", "busbw, GB/s one way"} <= set(_texts(file))
    assert "leader_switch" not in _texts(file)  # no switch adds between these nodes


def test_median_and_tail_against_a_straggler(simulate, tmp_path):
    file = tmp_path / "a.svg"
    simulate("all_reduce/ring", "--cluster", "dgx-h100", "--sizes", "1M", "--straggler", "rank=1:1",
             "--sweep", "straggler=1,1.1,1.2", "--jitter", "step=normal:0.1", "--samples", "50",
             "--plot", str(file))  # fmt: skip
    texts = _texts(file)
    assert {"times slower", "1.1", "predicted: the median, shaded up to p99"} <= set(texts)


def test_nothing_to_draw(simulate, tmp_path):
    status, _, err = simulate("all_reduce", "--cluster", "dgx-h100", "--sizes", "0", "--plot",
                              str(tmp_path / "a.svg"))  # fmt: skip
    assert status == 2
    assert "nothing to draw" in err
