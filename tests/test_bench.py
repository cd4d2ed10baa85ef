"""The benchmark: its figures, its workers and what happens when one of them fails."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from roundelay import RoundelayError, cli
from roundelay.algorithms import find
from roundelay.bench import controller, job, ours, rivals
from roundelay.bench.cells import Point, Request, count_of, sizes_between
from roundelay.bench.figures import Figure, Line, Summary, durations, geometric_mean
from roundelay.bench.job import Command, Job, SideLost
from roundelay.bench.predicted import Predictor
from roundelay.bench.table import Table
from roundelay.bench.worker import pattern
from roundelay.clusters import cluster, read
from roundelay.simulate import Clock

STAND_IN = Path(__file__).with_name("bench_stand_in.py")
NUMBER = {"type": ["number", "null"]}
ROW = {
    "collective": {"type": "string"},
    "algorithm": {"type": "string"},
    "ranks": {"type": "integer"},
    "bytes": {"type": "integer"},
    "dtype": {"type": "string"},
    "in_place": {"type": "boolean"},
    "time_us": NUMBER,
    "algbw_GBps": NUMBER,
    "busbw_GBps": NUMBER,
    "wrong": {"type": ["integer", "null"]},
    "ping_ns": NUMBER,
    "rivals": {"type": "object", "additionalProperties": NUMBER},
    "ratio": NUMBER,
    "predicted_us": NUMBER,
}
SCHEMA = {
    "type": "object",
    "required": ["machine", "ping_ns", "rows"],
    "properties": {
        "machine": {"type": "object", "required": ["cpu", "cores", "kernel"]},
        "ping_ns": NUMBER,
        "rows": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "required": list(ROW), "properties": ROW},
        },
    },
}


MACHINE = """
generation = "cpu"
nodes = 2
cards = 2
sockets = 1
[inside]
kind = "bus"
medium = "memory"
rate = "10 GB/s oneway"
latency = "1 us"
uplink = "16 GB/s oneway"
[nics]
count = 1
rate = "1 Gb/s oneway"
medium = "tcp"
card_pcie = "10 GB/s oneway"
latency = "10 us"
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    for name in list(os.environ):
        if name.startswith(("LC_", "LANG", "ROUNDELAY_RANK", "OMPI_", "PMI_", "SLURM_")):
            monkeypatch.delenv(name)


def stand_in(how, ranks=None):
    """A command that starts stand-ins, as many as asked for."""

    def command(n, address):
        memory = address.with_suffix(".memory")
        memory.write_bytes(bytes(n << 20))
        rest = [str(n), str(memory), how]
        lines = [[sys.executable, str(STAND_IN), str(address), str(r), *rest] for r in range(n)]
        return Command(lines[:ranks], [ours.environment()] * len(lines[:ranks]))

    return command


@pytest.fixture
def start(tmp_path):
    """Start a job of stand-ins that ends with the test."""
    started = []

    def run(how="well", n=2):
        address = tmp_path / f"{len(started)}.sock"
        started.append(Job("stand-in", n, stand_in(how)(n, address), tmp_path, address))
        return started[-1]

    yield run
    for each in started:
        each.close()


def test_sizes_counts_and_bus_factors():
    assert sizes_between(8, 1 << 20, 16) == [8, 128, 2048, 32768, 524288]
    with pytest.raises(RoundelayError, match="factor of 1"):
        sizes_between(8, 16, 1)
    assert count_of("all_reduce", 8, 4, "float32") == 2
    assert count_of("all_reduce", 1, 4, "float32") == 1
    assert count_of("all_gather", 8, 4, "float32") == 4  # one a rank at least
    assert count_of("all_to_all", 1000, 3, "bfloat16") == 498
    factors = {name: point(name, 64, n=4).bus_factor for name in ("all_reduce", "broadcast",
               "reduce", "all_gather", "reduce_scatter", "all_to_all")}  # fmt: skip
    assert factors == {"all_reduce": Fraction(3, 2), "broadcast": 1, "reduce": 1,
                       "all_gather": Fraction(3, 4), "reduce_scatter": Fraction(3, 4),
                       "all_to_all": Fraction(3, 4)}  # fmt: skip


def point(collective="all_reduce", nbytes=4096, n=2):
    count = count_of(collective, nbytes, n, "float32")
    return Point(collective, "auto", n, count, "float32", "sum", 0)


def test_the_time_of_a_call_is_over_all_ranks():
    spans = [[(0, 10), (100, 105)], [(3, 12), (99, 101)]]
    assert durations(spans) == [12, 6]
    assert geometric_mean([1, 4]) == pytest.approx(2)
    assert geometric_mean([]) is None


def test_ratios_compare_the_usual_form_with_the_best_rival():
    figures = {True: Figure(2.0, 9, 0), False: Figure(8.0, 9, 0)}
    line = Line(point(), figures, {"a": 4.0, "b": 1.0, "c": None}, 150.0)
    assert line.ratio == 2
    apart, within = line.rows()
    assert (apart["ratio"], apart["rivals"]["b"]) == (None, None)
    assert (within["ratio"], within["rivals"]["b"]) == (2, 1)
    assert within["algbw_GBps"] == pytest.approx(4096 / 2e-6 / 1e9)
    better = Line(point(nbytes=8), {True: Figure(1.0, 9, 0)}, {"a": 2.0})
    summary = Summary.of([line, better, Line(point(), figures)])
    assert summary.geometric_mean == pytest.approx(1)
    assert summary.worst is line


def test_the_table_looks_like_that_of_nccl_tests():
    request = Request(["all_to_all"], [2], [4096], against=["gloo", "mpich"])
    line = Line(point("all_to_all"), {False: Figure(2.0, 9, 0)}, {"gloo": 200, "mpich": None}, 150)
    *head, found = Table(request, ping=True).lines(line)
    assert [len(text) for text in (head[-2], head[-1])] == [len(found)] * 2
    assert found.split() == ["4096", "512", "float32", "none", "-1", "2.00", "2.05", "1.02", "0",
                             "n/a", "n/a", "n/a", "n/a", "200.0", "-", "0.01", "150"]  # fmt: skip


def test_what_the_clock_says_stands_in_the_last_column():
    request = Request(["all_reduce"], [2], [4096])
    figures = {True: Figure(2.0, 9, 0), False: Figure(3.0, 9, 0)}
    line = Line(point(), figures, {}, 150, 2.5)
    *head, found = Table(request, ping=True, predicted=True).lines(line)
    assert [len(text) for text in (head[-2], head[-1])] == [len(found)] * 2
    assert head[-2].split()[-2:] == ["ping", "predicted"]
    assert found.split()[-2:] == ["150", "2.50"]
    assert [row["predicted_us"] for row in line.rows()] == [None, 2.5]
    unknown = Line(point(), figures, {}, 150, None)
    assert Table(request, ping=True, predicted=True).lines(unknown)[-1].split()[-1] == "-"


def test_the_algorithm_that_is_taken_is_predicted():
    machine = read(MACHINE, "mine.toml")
    predict = Predictor(machine)
    clock = Clock(find("all_reduce/two_shot")(2), machine)
    assert predict(point(nbytes=1 << 20)) == clock.time(1 << 20).time * 1e6
    named = replace(point("broadcast", 4096), algorithm="chain", root=1)
    assert predict(named) == Clock(find("broadcast/chain")(2, 1), machine).time(4096).time * 1e6
    assert predict(point(n=3)) is None  # a node has two cards
    between = Predictor(machine, (2, 2))
    rails = Clock(find("all_gather/rails")(4, group=2), machine)
    assert between(point("all_gather", 1 << 20, 4)) == rails.time(1 << 20).time * 1e6
    assert Predictor(machine, (1, 3))(point(n=4)) is None
    assert Predictor(machine, (2, 2, 2))(point(n=6)) is None
    with pytest.raises(RoundelayError, match="cluster of hopper cards; expected one of CPUs"):
        Predictor(cluster("dgx-h100"))


def decoded(dtype, codes):
    """What the bits of a narrow type mean, from their definition."""
    fraction, bias = {"bfloat16": (7, 127), "float8_e4m3fn": (3, 7), "float8_e5m2": (2, 15)}[dtype]
    exponent, mantissa = codes.astype(int) >> fraction, codes.astype(int) % (1 << fraction)
    return np.where(codes == 0, 0, (1 + mantissa / (1 << fraction)) * 2.0 ** (exponent - bias))


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_data_and_sums_are_exact_in_narrow_types(dtype, ranks):
    total = pattern.combined(ranks, "sum", dtype)
    assert total.max() > 0
    assert np.array_equal(decoded(dtype, pattern.encode(dtype, total)), total)


def test_every_wrong_element_is_counted_once():
    table = pattern.encode("float32", pattern.numbers(1, 2, "sum", "float32"))
    data = np.empty(3 * pattern.PERIOD + 5, np.float32)
    pattern.lay(data, table, 77)
    assert pattern.wrong(data, table, 77) == 0
    assert pattern.wrong(data, table, 78) > len(data) / 2  # misplaced
    data[[0, 9000, -1]] += 1
    assert pattern.wrong(data, table, 77) == 3
    wide = np.zeros(4, np.complex128)
    wide[1] = 1j
    assert pattern.wrong(wide, np.zeros(pattern.PERIOD, np.complex128), 0) == 1


CELL = {"collective": "all_reduce", "algorithm": "auto", "op": "sum", "dtype": "float32",
        "root": 0, "elements": 1000, "in_place": True}  # fmt: skip


def test_workers_obey_and_tell_when_each_call_was(start):
    side = start(n=3)
    side.wait()
    assert side.version == "stand-in 1"
    assert side.ask(9, "prepare", form="a", cell=CELL, warmup=1) == [{}, {}, {}]
    assert [r["wrong"] for r in side.ask(9, "check", form="a")] == [0, 0, 0]
    before = time.monotonic_ns()
    spans = [r["spans"] for r in side.ask(9, "run", form="a", calls=4, lead=2)]
    assert [len(s) for s in spans] == [4, 4, 4]
    assert all(before < begin <= end < time.monotonic_ns() for s in spans for begin, end in s)
    begins = [[begin for begin, _ in s] for s in spans]
    ends = [[end for _, end in s] for s in spans]
    assert all(max(e) < min(b) for e, b in zip(zip(*ends, strict=True), list(
        zip(*begins, strict=True))[1:], strict=False))  # fmt: skip
    assert side.ask(9, "free") == [{}, {}, {}]


@pytest.mark.parametrize(
    "collective", ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"]
)
def test_wrong_results_are_counted(start, collective):
    side = start("wrong")
    side.wait()
    in_place = point(collective).usually_in_place
    cell = {**CELL, "collective": collective, "in_place": in_place}
    side.ask(9, "prepare", form="a", cell=cell, warmup=1)
    assert [r["wrong"] for r in side.ask(9, "check", form="a")] == [1, 0]


@pytest.mark.parametrize(
    ("how", "says"),
    [("dies", "worker 1 ended"), ("fails", "worker 1: ValueError: nothing works"),
     ("hangs", "no reply in 1 s")],
)  # fmt: skip
def test_a_worker_that_fails_is_noticed_and_nothing_is_left(start, how, says):
    side = start(how)
    side.wait()
    pids = [process.pid for process in side._processes]
    with pytest.raises(SideLost, match=says):
        side.ask(1, "prepare", form="a", cell=CELL, warmup=1)
    begun = time.monotonic()
    side.close()
    assert time.monotonic() - begun < 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_side_that_does_not_start(start, monkeypatch):
    monkeypatch.setattr(job, "START_SECONDS", 0.7)
    with pytest.raises(SideLost, match=r"no reply|did not start"):
        start("late").wait()
    side = start("well", n=2)
    side._processes[0].kill()
    with pytest.raises(SideLost, match="ended"):
        side.wait()


class Bad(rivals.Rival):
    """A rival whose second worker fails."""

    def python(self):
        return sys.executable

    def command(self, ranks, address):
        return stand_in(self.package)(ranks, address)


def test_rivals_that_fail_are_named_and_left_out(monkeypatch):
    sides = {name: Bad(name, "stand-in", name) for name in ("dies", "well")}
    sides["other"] = Bad("other", "another library", "well")
    monkeypatch.setattr(controller, "RIVALS", sides)
    monkeypatch.setattr(ours, "command", stand_in("well"))
    told = []
    request = Request(["all_reduce", "broadcast"], [2], [64], iters=6, against=list(sides))
    bench = controller.Bench(request, told.append)
    shown = []
    bench.run(shown.append)
    assert len(told) == 2
    assert "going on without dies worker" in "".join(told)
    assert "going on without other: found 'stand-in 1'" in "".join(told)
    assert [set(line.rivals) for line in shown] == [set(sides)] * 2
    assert [line.rivals["dies"] for line in shown] == [None, None]
    assert all(line.rivals["well"] > 0 and line.ratio > 0 for line in shown)
    assert [f.calls for line in shown for f in line.ours.values()] == [6, 6, 6]
    jsonschema.validate(json.loads(json.dumps(bench.as_json())), SCHEMA)


def test_wrong_results_of_ours_fail_the_command(monkeypatch, capsys):
    monkeypatch.setattr(ours, "command", stand_in("wrong"))
    status = cli.run(["bench", "all_reduce", "-n", "2", "--sizes", "64", "--iters", "6"])
    assert status == 1
    assert "# wrong elements: 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("all_reduces", "did you mean all_reduce"),
        ("all_reduce --against glu", "did you mean gloo"),
        ("all_reduce -d flaot", "unknown type"),
        ("all_reduce -o band", "integers"),
        ("all_reduce -r 2", "expected 0 to 1"),
        ("all_reduce --algorithm rung", "did you mean ring"),
        ("all_reduce -e 64T", "Try a smaller -e"),
        ("all_reduce -f 1", "from 2 up"),
        ("all_reduce --sizes 0", "1 byte or more"),
        ("all_reduce --seconds never", "number above 0"),
    ],
)
def test_bad_input(capsys, words, says):
    assert cli.run(["bench", *words.split()]) == 2
    assert says in capsys.readouterr().err


def test_only_rivals_that_are_missing(capsys, monkeypatch):
    monkeypatch.setattr(rivals.Rival, "_here", lambda self: False)
    monkeypatch.delenv("ROUNDELAY_BENCH_GLOO", raising=False)
    assert cli.run(["bench", "all_reduce", "--against", "gloo"]) == 2
    assert "pip install torch" in capsys.readouterr().err
    monkeypatch.setenv("ROUNDELAY_BENCH_GLOO", "/nowhere/python")
    assert cli.run(["bench", "all_reduce", "--against", "gloo"]) == 2
    assert "ROUNDELAY_BENCH_GLOO=/nowhere/python is no program" in capsys.readouterr().err


SMALL = ("--sizes", "8,64K", "--seconds", "0.02")


def test_ours_through_the_command_line(capsys):
    status = cli.run(["bench", "all_reduce", "-n", "2", *SMALL, "--json"])
    value = json.loads(capsys.readouterr().out)
    assert status == 0
    jsonschema.validate(value, SCHEMA)
    assert [(r["bytes"], r["in_place"]) for r in value["rows"]] == [
        (8, False), (8, True), (65536, False), (65536, True),
    ]  # fmt: skip
    assert all(r["wrong"] == 0 and r["time_us"] > 0 for r in value["rows"])


def test_predicted_beside_measured(capsys, monkeypatch, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(MACHINE)
    words = ["bench", "all_reduce", "-n", "2", *SMALL]
    assert cli.run([*words, "--cluster", str(file), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [bool(row["predicted_us"]) for row in rows] == [False, True, False, True]
    (tmp_path / "roundelay").mkdir()
    file.rename(tmp_path / "roundelay" / "here.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert cli.run(words) == 0
    assert "predicted" in capsys.readouterr().out
    assert cli.run([*words, "--cluster", "dgx-h100"]) == 2
    assert "expected one of CPUs" in capsys.readouterr().err


def test_every_algorithm_in_turn(capsys):
    words = ["scatter", "-n", "2", "-r", "1", "--sizes", "64", "--iters", "6"]
    assert cli.run(["bench", *words, "--algorithm", "all"]) == 0
    out = capsys.readouterr().out
    assert "  binomial\n" in out
    assert "  direct\n" in out


def installed():
    for name, rival in rivals.RIVALS.items():
        with contextlib.suppress(RoundelayError):
            if rival.python() is not None:
                yield name


@pytest.mark.parametrize("name", list(installed()) or [None])
def test_rival(capsys, name):
    if name is None:
        return  # conftest says so
    status = cli.run(["bench", "all_gather", "-n", "2", *SMALL, "--against", name, "--json"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    rows = [r for r in json.loads(out)["rows"] if not r["in_place"]]
    assert all(r["rivals"][name] > 0 and r["ratio"] > 0 for r in rows)


def environment(folder):
    path = os.pathsep.join(filter(None, sys.path))
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder)}


def test_within_a_job_that_runs_already(tmp_path):
    command = [sys.executable, "-m", "roundelay", "launch", "-n", "2", "-m", "roundelay", "bench"]

    def run(*words):
        return subprocess.run([*command, *words], capture_output=True, text=True, timeout=60,
                              env=environment(tmp_path))  # fmt: skip

    done = run("reduce_scatter", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    jsonschema.validate(value, SCHEMA)
    assert {r["ranks"] for r in value["rows"]} == {2}
    assert all(r["wrong"] == 0 for r in value["rows"])
    request = Request(["all_reduce"], [4], [8], against=["gloo"])
    with pytest.raises(RoundelayError, match="--against inside a job of 2 ranks"):
        request.within(2, "torchrun", given=False)
    with pytest.raises(RoundelayError, match="-n 4 inside a job of 2 ranks"):
        Request(["all_reduce"], [4], [8]).within(2, "torchrun", given=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_after_an_interrupt(tmp_path, number):
    sizes = ",".join(["8"] * 1000)
    command = [sys.executable, "-m", "roundelay", "bench", "all_reduce", "--sizes", sizes]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=environment(tmp_path))  # fmt: skip
    with process:
        for _ in range(6):
            process.stdout.readline()
        assert running(tmp_path)
        process.send_signal(number)
        process.stdout.read()
        assert process.wait(20) == 130
    assert not running(tmp_path)
    assert list(tmp_path.iterdir()) == []


def running(folder):
    """Processes whose command line names the folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in file.read_bytes():
                found.append(file)
        except OSError:
            continue
    return found
