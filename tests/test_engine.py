"""The engine between real processes: every algorithm, type, shape and fault, on both transports.

Ranks of one node share memory. Where ROUNDELAY_NODE names different nodes they go over TCP.
"""

import os
import signal
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import HERE, finish, run, start

import roundelay as rl

PATH = os.environ.get("PYTHONPATH", "")


def ident(value):
    return str(value) if value else "one_node"


@pytest.mark.parametrize("ranks", range(1, 10))
def test_every_algorithm_at_every_size_on_one_node(ranks):
    run("every_algorithm", ranks, (0, 1, 3, 1000) if ranks > 5 else (0, 1, 3, 17, 1000, 70_001))


@pytest.mark.parametrize("nodes", ["ab", "aab", "abab", "abcd"])
def test_every_algorithm_between_nodes(nodes):
    run("every_algorithm", len(nodes), (0, 1, 17, 70_001), nodes=nodes)


@pytest.mark.parametrize("nodes", [None, "abab"], ids=ident)
@pytest.mark.parametrize("program", ["every_type", "narrow_floats", "kept_shapes", "shared_buffers",
                                     "overlapping", "groups", "fixed_order",
                                     "switch_in_the_background"])  # fmt: skip
def test_programs(program, nodes):
    run(program, len(nodes or "123"), nodes=nodes)


@pytest.mark.parametrize("nodes", [None, "aabab"], ids=ident)
def test_random_operations(nodes):
    run("random_operations", len(nodes or "1234"), 400, 1, nodes=nodes)


@pytest.mark.soak
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("nodes", [None, "aabab"], ids=ident)
def test_ten_thousand_random_operations(nodes):
    run("random_operations", len(nodes or "1234"), 10_000, 7, nodes=nodes, timeout=2900)


@pytest.mark.parametrize("settings", [{"ROUNDELAY_ARENA": "65536"}, {"ROUNDELAY_ATTACH": "0"},
                                      {"ROUNDELAY_CONNECTIONS": "5"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("nodes", [None, "abab"], ids=ident)
def test_settings(settings, nodes):
    """A small arena, no reading of other processes' memory, more connections."""
    run("every_algorithm", 4, (3, 70_001), nodes=nodes, environ=settings)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_more_than_two_to_the_31_elements():
    run("huge", 2, timeout=590)


@pytest.mark.skipif(not find_spec("torch"), reason="torch is not installed")
@pytest.mark.parametrize("nodes", [None, "ab"], ids=ident)
def test_torch_tensors(nodes):
    run("torch_tensors", 2, nodes=nodes)


def test_little_shared_memory_is_used_and_said(tmp_path):
    """A limit on the size of files stands for a container that has little memory."""
    limit = tmp_path / "sitecustomize.py"
    limit.write_text("import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20,) * 2)\n")
    said = run("little_memory", 3, environ={"PYTHONPATH": f"{tmp_path}:{HERE}:{PATH}"})
    assert "of shared memory" in said[0]


def errors(processes, timeout=30):
    """(kind, rank, when, text) that each rank printed; those killed say nothing."""
    codes, said = finish(processes, timeout)
    assert all(c in (0, -signal.SIGKILL) for c in codes), (codes, said)
    return [s.strip().split(" ", 3) for c, s in zip(codes, said, strict=True) if c == 0]


def ready(processes):
    for p in processes:
        assert p.stdout.readline() == "ready\n", p.stdout.read()
    time.sleep(0.2)


@pytest.mark.parametrize("nodes", [None, "abab"], ids=ident)
@pytest.mark.parametrize(
    ("collective", "size"),
    [("all_reduce", 2), ("all_reduce", 2_000_000), ("broadcast", 2), ("broadcast", 2_000_000),
     ("all_gather", 30_000), ("all_to_all", 500_000), ("barrier", 1)],
)  # fmt: skip
def test_a_killed_rank_is_named_within_a_second(collective, size, nodes):
    processes = start("until_an_error", len(nodes or "123"), collective, size, nodes=nodes)
    ready(processes)
    killed = time.time()
    processes[1].kill()
    found = errors(processes)
    assert [(kind, rank) for kind, rank, *_ in found] == [("PeerLost", "1")] * (len(processes) - 1)
    assert max(float(when) for _, _, when, _ in found) - killed < 1


@pytest.mark.parametrize("nodes", [None, "abab"], ids=ident)
@pytest.mark.parametrize("how", ["size", "type", "collective", "root", "op", "algorithm"])
def test_ranks_asked_for_different_things_are_all_told(how, nodes):
    processes = start("differ", len(nodes or "123"), how, nodes=nodes)
    begun = time.time()
    found = errors(processes)
    assert len(found) == len(processes)
    for kind, when, *text in found:
        assert kind == "CallsDiffer"
        assert " was asked for " in " ".join(text)
        assert float(when) - begun < 10  # start-up included


@pytest.mark.parametrize("handles", [False, True], ids=["calls", "handles"])
@pytest.mark.parametrize("nodes", [None, "abab"], ids=ident)
def test_an_interrupted_rank_raises_keyboard_interrupt_and_the_others_are_told(nodes, handles):
    processes = start("interrupted", len(nodes or "123"), handles, nodes=nodes)
    ready(processes)
    processes[0].send_signal(signal.SIGINT)
    found = errors(processes)
    assert found[0][0] == "KeyboardInterrupt"
    assert {kind for kind, *_ in found[1:]} == {"Interrupted"}


def test_ranks_that_share_processors_keep_their_affinity():
    run("crowded", 2 * len(os.sched_getaffinity(0)))


def test_a_closed_communicator_is_freed_at_once():
    run("closed_is_freed", 2)


def test_shared_memory_of_a_closed_communicator_is_freed():
    run("shared_is_freed", 2)


def test_growing_shared_arrays_reuse_memory():
    run("grown", 1)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_timeout_is_checked(timeout):
    with pytest.raises(rl.RoundelayError, match="expected seconds, more than 0"):
        rl.init(timeout=timeout)


def test_a_rank_that_never_comes_is_named():
    processes = start("one_stays_away", 3)
    for kind, rank, _, text in errors(processes):
        assert (kind, rank) == ("TooLate", "1") or "has ended" in text or "closed" in text, text


@pytest.mark.parametrize("size", [9, 300_000])
@pytest.mark.parametrize("nodes", [None, "aba"], ids=ident)
def test_a_rank_that_leaves_is_named(nodes, size):
    run("leaves", 3, size, nodes=nodes)


@pytest.mark.parametrize("nodes", [None, "ab"], ids=ident)
def test_counts_that_differ_are_noticed(nodes):
    run("wrong_counts", 2, nodes=nodes)


def test_threads_are_told_to_take_turns():
    run("threads", 1)


@pytest.mark.parametrize("nodes", [None, "ab"], ids=ident)
def test_a_closed_communicator_is_refused(nodes):
    run("closed", 2, nodes=nodes)


def test_schedules_of_ones_own_between_scattered_nodes():
    run("own_after_named", 6, nodes="abcabc")


@pytest.mark.parametrize("nodes", [None, "ab"], ids=ident)
def test_a_killed_rank_is_noticed_though_its_forked_child_lives(nodes):
    [(kind, rank, seconds, _)] = errors(start("killed_parent", 2, nodes=nodes))
    assert (kind, rank) == ("PeerLost", "1")
    assert float(seconds) < 1


def test_a_forked_child_is_refused():
    run("forked", 2)


def test_bad_input_is_refused_before_anything_is_exchanged():
    run("refused", 2)


def test_nothing_is_left_behind():
    before = set(os.listdir("/dev/shm"))
    processes = start("until_an_error", 3, "all_reduce", 300_000)
    ready(processes)
    for p in processes:
        p.kill()
    finish(processes)
    assert set(os.listdir("/dev/shm")) == before
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not {str(p.pid) for p in processes} & set(children)
