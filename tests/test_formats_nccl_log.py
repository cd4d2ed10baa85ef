"""The log of NCCL: every shape of line, and what is between them."""

import os
from io import BytesIO
from pathlib import Path

import pytest

from roundelay import RoundelayError
from roundelay.formats.nccl_log import last_of, lines_of, read_nccl_lines, read_nccl_log
from roundelay.formats.nccl_log.reader import LONGEST

DATA_FILE = Path(__file__).parent / "files" / "nccl.log"
TEXT = DATA_FILE.read_bytes()


@pytest.fixture(scope="module")
def log():
    return read_nccl_log(TEXT)


def thread(log, device):
    return next(t for t in log.threads.values() if t.device == device and t.rank is not None)


def test_ranks_and_start_up(log):
    first, second = thread(log, 0), thread(log, 1)
    assert (first.rank, first.ranks, first.host) == (0, 4, "node-a")
    assert (second.rank, second.nodes, second.local) == (1, 2, 2)
    assert first.complete is not None
    assert second.started is not None
    assert second.complete is None
    assert log.size == 4
    assert list(log.versions) == ["NCCL 2.27.3+cuda12.9"]


def test_rings_and_trees_in_three_grammars(log):
    assert thread(log, 0).rings == {0: (3, 0, 1)}
    assert thread(log, 0).trees == {0: (0, 2, (1,)), 1: (0, -1, (1,))}  # below->rank->above
    assert thread(log, 1).trees == {0: (1, 0, (3,)),  # above->rank->below, as in 2.4
                                    1: (1, 0, ())}  # fmt: skip


def test_the_tree_of_the_system_is_of_the_first_thread_that_prints_it(log):
    (edges,) = log.systems.values()
    assert [(e.depth, e.medium, e.rate, e.end, e.detail) for e in edges] == [
        (0, "", None, "CPU/0-0", "1/1/2"),
        (1, "PCI", 0.2, "PCI/0-1a000", "1000c0301000"),
        (14, "PCI", 48.0, "GPU/0-1b000", "0"),
        (28, "NVL", 370.8, "NVS/0-0", ""),
    ]
    assert [(r.target, r.hops, r.rate, r.way) for r in log.paths][1] == (
        "GPU/0-1c000", 2, 370.8, "NVL")  # fmt: skip


def test_transports_and_gpudirect(log):
    assert log.transports == {"P2P/CUMEM": 1, "NET/IB": 2, "NET/Socket": 1}
    ib, socket = log.networks["node-a", "IB/0"], log.networks["node-a", "Socket/0"]
    assert (ib.direct, ib.staged, ib.channels) == (1, 1, {0, 1})
    assert (socket.staged, socket.first_staged.number) == (1, 24)  # two lines in one


def test_choices_and_calls(log):
    (often, ring), (once, tree) = log.choices()
    assert (often, ring.function, ring.size, ring.algorithm, ring.protocol, ring.channels) == (
        2, "AllReduce", 4194304, "ring", "Simple", 16)  # fmt: skip
    assert (once, tree.algorithm, tree.protocol, tree.time_us) == (1, "tree", "LL128", 12.5)
    (last,) = last_of(thread(log, 0))
    assert (last.count, last.function, last.elements, last.line.number) == (0x1B, "AllReduce", 2048,
                                                                            27)  # fmt: skip
    assert [row[:2] for row in log.measured] == [(200.0, 20.97)]


def test_warnings_that_say_the_same_are_counted(log):
    counts = {place: count for (place, _), (count, _) in log.warned.items()}
    assert counts == {"misc/socket.cc:533": 2, "graph/xml.h": 1}


def test_what_else_it_says(log):
    assert log.environment["NCCL_IB_HCA"][0] == "mlx5"
    assert any("eth0" in text for text in log.interfaces)
    (health,) = log.health
    assert (health.clique, health.state, health.mask) == ("0x7ffe", 3, "0xaa")


@pytest.mark.parametrize("prefix", [b"[1,3]<stdout>:", b"12: ", b"\x1b[32m[2026-01-01 00:00:00] ",
                                    b"2026-01-01T00:00:00Z pod-7 "])  # fmt: skip
def test_what_launchers_put_before_a_line(prefix):
    lines = [prefix + line for line in TEXT.split(b"\n")]
    found = read_nccl_log(b"\n".join(lines))
    assert {t.rank for t in found.ranks()} == {0, 1}
    assert found.transports["P2P/CUMEM"] == 1
    assert thread(found, 0).rings == {0: (3, 0, 1)}


def test_lines_without_end_come_in_parts():
    assert [len(part) for part in lines_of(BytesIO(b"x" * (LONGEST + 5)))] == [LONGEST, 5]


@pytest.mark.parametrize("text", [b"", b"hello\nworld\n", b"\x00\xff\n"])
def test_no_log(text):
    with pytest.raises(RoundelayError, match="is of NCCL; expected lines with NCCL INFO"):
        read_nccl_lines(lines_of(BytesIO(text)))


if FOLDER := os.environ.get("ROUNDELAY_DATA"):
    CASES = Path(FOLDER, "cases", "nccl-log")

    def case(start):
        (path,) = CASES.glob(f"{start}*")
        return read_nccl_log(path.read_bytes())

    def test_case_tree_of_the_system():
        found = case("01-")
        (edges,) = found.systems.values()
        assert [e.rate for e in edges if e.medium == "PCI" and e.depth == 1] == [0.2, 0.2, 0.2]
        assert {(w.direct, w.staged) for w in found.networks.values()} == {(1, 0)}

    def test_case_old_grammar():
        found = case("03-")
        trees = [t.trees[0] for t in found.threads.values() if t.trees]
        assert trees == [(5, 4, (6,)), (2, 1, (3,))]
        assert found.transports == {"P2P/direct pointer": 4, "NET/IB": 3}

    def test_case_trees_over_rails():
        trees = {t.trees[0][0]: t.trees for t in case("05-").threads.values()}
        assert trees[10][0] == (10, 19, (11,))
        assert trees[18][0] == (18, 2, (19, 26))
        assert set(trees) == {10, 14, 12, 18, 15}

    def test_case_without_gpudirect():
        found = case("07-").networks
        ways = {key[1]: (w.direct, w.staged, w.channels) for key, w in found.items()}
        assert ways == {"IB/0": (2, 0, {0, 2}), "IB/1": (0, 2, {1, 3})}

    def test_case_choice():
        found = case("17-")
        ((count, choice),) = found.choices()
        assert (count, choice.algorithm, choice.protocol) == (3, "ring", "Simple")
        assert choice.time_us == 86069.96875
        assert [row[0] for row in found.measured] == [3300068]

    def test_case_small_and_complete():
        found = case("19-")
        trees = {t.device: t.trees for t in found.threads.values()}
        assert trees == {1: {0: (1, 0, ()), 1: (1, 0, ())}, 0: {0: (0, -1, (1,)), 1: (0, -1, (1,))}}

    @pytest.mark.parametrize(("start", "place"), [("09-", "misc/socket.cc:533"),
                             ("11-", "misc/shmutils.cc:88"), ("21-", "graph/xml.h")])  # fmt: skip
    def test_case_warnings(start, place):
        assert place in {key[0] for key in case(start).warned}

    def test_case_paths_and_health():
        assert {r.way for r in case("13-").paths} == {"SYS", "PHB", "LOC"}
        assert {(h.clique, h.state, h.mask) for h in case("15-").health} == {("0x7ffe", 3, "0xaa")}
