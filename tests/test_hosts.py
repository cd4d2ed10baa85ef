"""Ranks on several hosts: network namespaces of this machine, behind links of 1 Gbit/s."""

import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ranks import environment, finish
from testbed import Testbed

HALVES = (0, 0, 1, 1)
SCATTERED = (0, 1, 0, 1)
UNEVEN = (0, 1, 1, 1)
SILENCE = 10  # seconds from which a host that says nothing is lost, somewhat later


@pytest.fixture(scope="module")
def bed():
    with Testbed(2) as made:
        yield made


def start(bed, hosts, name, *arguments, version=4):
    """Processes that call `rank_programs.NAME(comm, *arguments)`, rank r on `hosts[r]`."""
    secret, first = secrets.token_hex(8), bed.address(hosts[0], version)
    where = f"[{first}]:29400" if version == 6 else f"{first}:29400"
    code = f"import rank_programs; rank_programs.main({name!r}, {arguments!r})"
    return [
        subprocess.Popen(
            [*bed.inside(host), sys.executable, "-W", "error", "-c", code],
            env={**environment(r, len(hosts), where, secret, f"host{host}"),
                 "ROUNDELAY_INTERFACE": bed.address(host, version)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for r, host in enumerate(hosts)
    ]  # fmt: skip


def run(bed, hosts, name, *arguments, version=4):
    codes, said = finish(start(bed, hosts, name, *arguments, version=version))
    assert codes == [0] * len(hosts), "\n".join(said)


def errors(said):
    """Kind, rank blamed, moment and text of what each rank met."""
    found = [text.strip().split(" ", 3) for text in said]
    return [(kind, int(blamed), float(when), text) for kind, blamed, when, text in found]


def until_ready(processes):
    for p in processes:
        assert p.stdout.readline() == "ready\n"
    time.sleep(0.3)


def test_every_algorithm(bed):
    run(bed, HALVES, "every_algorithm", (1, 1000))


@pytest.mark.parametrize("hosts", [HALVES, SCATTERED, UNEVEN])
def test_random_operations(bed, hosts):
    run(bed, hosts, "random_operations", 100, 5)


def test_ipv6(bed):
    run(bed, HALVES, "random_operations", 40, 6, version=6)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("hosts", [HALVES, SCATTERED, UNEVEN])
def test_many_random_operations(bed, hosts):
    run(bed, hosts, "random_operations", 3000, secrets.randbits(30))


@pytest.mark.parametrize(
    ("collective", "size"), [("all_reduce", 10), ("broadcast", 1_000_000), ("all_to_all", 10_000)]
)
def test_a_killed_rank_is_named_within_a_second(bed, collective, size):
    processes = start(bed, HALVES, "until_an_error", collective, size)
    until_ready(processes)
    killed = time.time()
    processes[3].kill()
    codes, said = finish(processes)
    assert codes == [0, 0, 0, -signal.SIGKILL], "\n".join(said)
    for kind, blamed, when, text in errors(said[:3]):
        assert (kind, blamed) == ("PeerLost", 3), text
        assert "has ended" in text
        assert when - killed < 1


@pytest.mark.parametrize("size", [pytest.param(10, marks=pytest.mark.soak), 1_000_000])
def test_a_host_that_falls_silent_is_lost(size):
    with Testbed(2) as bed:
        processes = start(bed, HALVES, "until_an_error", "all_reduce", size)
        until_ready(processes)
        cut = time.time()
        bed.cut(1)
        codes, said = finish(processes, 2 * SILENCE)
    assert codes == [0] * 4, "\n".join(said)
    for rank, (kind, blamed, when, text) in enumerate(errors(said)):
        assert kind == "PeerLost", text
        assert HALVES[blamed] != HALVES[rank]
        assert "no longer be reached" in text
        assert SILENCE - 1 < when - cut < SILENCE + 4


def test_a_short_interruption_is_waited_out():
    with Testbed(2) as bed:
        processes = start(bed, HALVES, "a_late_rank", 1)
        assert processes[0].stdout.readline() == "ready\n"
        bed.cut(0)
        time.sleep(2)
        bed.mend(0)
        codes, said = finish(processes)
    assert codes == [0] * 4, "\n".join(said)


@pytest.mark.soak
def test_a_busy_rank_is_waited_for(bed):
    """Its machine answers all the while, even when its buffers are full."""
    run(bed, HALVES, "a_late_rank", 2.5 * SILENCE)


def test_what_a_killed_run_left_is_removed_by_the_next():
    code = (
        "import time\nfrom testbed import Testbed\n"
        "with Testbed(2) as bed:\n    print(bed.inside(1)[-1], flush=True)\n    time.sleep(60)\n"
    )
    for number, left in ((signal.SIGKILL, True), (signal.SIGINT, False)):
        with subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=Path(__file__).parents[1] / "benchmarks", text=True,
        ) as process:  # fmt: skip
            name = process.stdout.readline().strip()
            process.send_signal(number)
        assert Path("/run/netns", name).exists() == left
        with Testbed(1):
            assert not Path("/run/netns", name).exists()
