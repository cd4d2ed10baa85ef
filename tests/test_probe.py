"""Measuring this machine: figures that can be, a cluster made of them, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from roundelay import RoundelayError, probe
from roundelay.algorithms import find
from roundelay.clusters import cluster, read, write
from roundelay.probe import Probed, as_cluster, probe_here
from roundelay.probe.figures import HOW, middle, per_byte, rates, times
from roundelay.simulate import Clock

built = pytest.mark.skipif(find_spec("roundelay._native") is None, reason="core is not built")
NAMES = {"latency", "rate", "all_rate", "copy", "reduce", "call"}
HERE = {"cores": 2, "cpu": "some CPU"}


def environment(folder):
    path = os.pathsep.join(filter(None, sys.path))
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("ROUNDELAY_RANK", "LC_", "LANG"))
    }
    return {**kept, "PYTHONPATH": path, "TMPDIR": str(folder), "XDG_CONFIG_HOME": str(folder)}


def figures(network=False):
    made = {
        "latency": times("latency", [1e-6, 2e-6, 3e-6]),
        "rate": rates("rate", 1e6, [1e-4, 2e-4, 1e-4], "B/s oneway"),
        "all_rate": rates("all_rate", 1e6, [5e-5] * 3, "B/s oneway"),
        "copy": rates("copy", 1e6, [5e-5] * 3, "B/s"),
        "reduce": per_byte("reduce", 1e6, [1e-4] * 3),
        "call": times("call", [3e-7] * 3),
    }
    if network:
        made["network_latency"] = times("network_latency", [2e-5] * 3)
        made["network_rate"] = rates("network_rate", 1e6, [1e-3] * 3, "B/s oneway")
    return made


def test_figures_are_medians_with_the_middle_half():
    found = times("latency", [5.0, 1.0, 2.0, 3.0, 4.0])
    assert (found.value, found.low, found.high) == (3.0, 2.0, 4.0)
    assert found.spread == pytest.approx(2 / 3)
    rate = rates("rate", 12.0, [1.0, 2.0, 3.0], "B/s oneway")
    assert (rate.value, rate.low, rate.high) == (6.0, 5.0, 9.0)
    both = middle([found, times("latency", [7.0] * 3)])
    assert (both.value, both.low, both.high) == (5.0, 2.0, 7.0)


def test_a_cluster_of_one_host():
    here = as_cluster(Probed(1, 8, {"cores": 8, "cpu": "some CPU"}, figures(), {}))
    assert (here.name, here.generation, here.nodes, here.cards) == ("here", "cpu", 1, 8)
    assert (here.inside.kind, here.inside.medium) == ("bus", "memory")
    assert (here.inside.rate, here.inside.uplink) == (1e10, 2e10)
    assert (here.inside.latency, here.launch) == (2e-6, 3e-7)
    assert here.nics.count == 0
    assert "roundelay probe" in here.sources["inside.rate"]
    assert read(write(here), "here.toml") == here


def test_a_cluster_of_several_hosts():
    here = as_cluster(Probed(4, 2, {"cores": 2, "cpu": "x"}, figures(network=True), {}))
    assert (here.nodes, here.size, here.fabric.kind) == (4, 8, "switch")
    assert (here.nics.medium, here.nics.rate, here.nics.latency) == ("tcp", 1e9, 2e-5)
    assert read(write(here), "here.toml") == here


def test_a_network_faster_than_one_rank_s_copy_is_believed():
    found = figures(network=True) | {"network_rate": rates("rate", 1e6, [2e-5] * 3, "B/s oneway")}
    here = as_cluster(Probed(2, 2, {"cores": 2, "cpu": "x"}, found, {}))
    assert here.nics.rate == here.nics.card_pcie == 5e10


def cached(rate):
    return {"cached": rates("cached", rate, [1.0] * 3, "B/s oneway")}


def test_adding_counts_as_far_as_it_takes_longer_than_copying():
    assert as_cluster(Probed(1, 2, HERE, figures(), {})).inside.reduce == 0.0
    slow = figures() | {"reduce": per_byte("reduce", 1e6, [3e-4] * 3)}
    here = as_cluster(Probed(1, 2, HERE, slow, {}))  # two ranks copy 20 GB/s: 0.1 ns a byte each
    assert here.inside.reduce == pytest.approx(0.2e-9)
    assert read(write(here), "here.toml") == here


def test_what_caches_make_of_it():
    here = as_cluster(Probed(1, 2, HERE, figures() | cached(3e10), {}, 1 << 20))
    assert (here.inside.cache, here.inside.cached) == (1 << 20, 3e10)
    assert 'cache = "1048576 B"' in write(here)
    assert read(write(here), "here.toml") == here
    slower = as_cluster(Probed(1, 2, HERE, figures() | cached(1e10), {}, 1 << 20))
    assert (slower.inside.cache, slower.inside.cached) == (0, None)


def test_the_clock_takes_what_was_probed():
    here = as_cluster(Probed(1, 2, HERE, figures() | cached(3e10), {}, 1 << 20))
    clock = Clock(find("all_gather/direct")(2), here)
    small, large = clock.time(1 << 20), clock.time(2 << 20)
    assert (small.protocol, large.protocol) == ("Cached", "Simple")
    # Each rank gets half of it; both share what is measured of all at once.
    assert small.time == pytest.approx(2e-6 + (1 << 20) / 3e10)
    assert large.time == pytest.approx(2e-6 + (2 << 20) / 2e10)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('cache = "1 MiB"\nmedium = "pcie"', "inside.cache is for memory; leave it out for pcie"),
        ('reduce = "1 ns"\nmedium = "pcie"', "inside.reduce is for memory"),
        ('cached = "30 GB/s oneway"\nmedium = "memory"', "inside.cached needs inside.cache"),
        ('cache = "1 MX"\nmedium = "memory"', "inside.cache: "),
        ('cache = 5\nmedium = "memory"', "in quotes with its unit"),
        ('cache = "1 MiB"\ncached = "1 GB/s oneway"\nmedium = "memory"', "no more than it"),
    ],
)
def test_figures_of_memory_that_cannot_be(line, says):
    text = 'generation = "cpu"\ncards = 2\nsockets = 1\n[inside]\nkind = "bus"\n'
    rest = 'rate = "12 GB/s oneway"\nuplink = "20 GB/s oneway"\n'
    with pytest.raises(RoundelayError, match=says):
        read(f"{text}{rest}{line}\n", "mine.toml")


def test_limits_of_measurements():
    room = [1 << 40, 2 << 20]
    assert probe._limits(2, 2, room) == (probe.LARGE, 1 << 20, False)
    assert probe._limits(3, 2, room) == (probe.LARGE, 1 << 19, True)
    assert probe._limits(8, 2, [1 << 20, 0]) == (1 << 20, 0, True)


@pytest.mark.parametrize("ranks", [1, 0, 100_000])
def test_ranks_that_cannot_be(ranks):
    with pytest.raises(RoundelayError, match=r"expected 2 to 256"):
        probe_here(ranks)


@built
def test_what_is_measured_can_be():
    found = probe_here(2)
    assert set(found.figures) - {"cached"} == NAMES
    assert ("cached" in found.figures) == bool(found.cache)
    assert set(HOW) == {*NAMES, "turn", "cached", "network_latency", "network_rate"}
    assert 50e-9 < found.figures["latency"].value < 1e-3
    assert 50e-9 < found.figures["call"].value < 1e-4
    assert 1e8 < found.figures["rate"].value < 1e12
    assert 1e-12 < found.figures["reduce"].value < 1e-7
    for figure in found.figures.values():
        assert 0 < figure.low <= figure.value <= figure.high


@built
def test_the_command_writes_the_cluster_called_here(tmp_path):
    done = run(tmp_path, "-n", "2", "--json")
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert set(value["figures"]) - {"cached"} == NAMES
    assert value["figures"]["rate"]["unit"] == "B/s oneway"
    file = tmp_path / "roundelay" / "here.toml"
    assert value["file"] == str(file)
    assert "--cluster here" in done.stderr
    here = cluster(str(file))
    assert (here.name, here.cards) == ("here", 2)
    assert list(tmp_path.iterdir()) == [tmp_path / "roundelay"]


def run(folder, *words, launched=()):
    code = "import sys; from roundelay.cli.probe import command; sys.exit(command())"
    if launched:
        program = folder / "program.py"
        program.write_text(
            "import os, sys\n"
            "os.environ['ROUNDELAY_NODE'] = str(int(os.environ['ROUNDELAY_RANK']) // 2)\n" + code
        )
        line = [sys.executable, "-m", "roundelay", "launch", *launched, str(program)]
    else:
        line = [sys.executable, "-c", code]
    return subprocess.run([*line, *words], capture_output=True, text=True, timeout=90,
                          env=environment(folder))  # fmt: skip


@built
def test_between_hosts_of_a_job(tmp_path):
    """Two hosts that this one plays: TCP between them."""
    file = tmp_path / "mine.toml"
    done = run(tmp_path, "--output", str(file), "--json", launched=("-n", "4"))
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert (value["nodes"], value["ranks_per_node"]) == (2, 2)
    assert [row["host"] for row in value["by_host"]] == [1]
    assert 1 < value["by_host"][0]["latency_us"] < 1e5
    mine = cluster(str(file))
    assert (mine.nodes, mine.cards, mine.nics.medium) == (2, 2, "tcp")
    assert f"--cluster {file}" in done.stderr


@built
def test_hosts_with_different_numbers_of_ranks_are_refused(tmp_path):
    done = run(tmp_path, launched=("-n", "3"))
    assert done.returncode != 0
    assert "hosts with 1 and 2 ranks; expected as many on each" in done.stderr


@built
def test_ranks_cannot_be_asked_for_inside_a_job(tmp_path):
    done = run(tmp_path, "-n", "2", launched=("-n", "2"))
    assert "-n 2 inside a job of 2 ranks" in done.stderr


@built
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_after_an_interrupt(tmp_path, number):
    code = (
        "import sys, roundelay.probe as p; p.ROUNDS = 10**6\n"
        "from roundelay.cli import base, run\n"
        "base.COMMANDS = ('probe',)\n"
        "sys.exit(run(['probe', '-n', '2']))"
    )
    line = [sys.executable, "-c", code]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment(tmp_path))  # fmt: skip
    with process:
        end = time.monotonic() + 30
        while len(running(tmp_path)) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(number)
        assert process.wait(20) == 130
        process.communicate()
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
