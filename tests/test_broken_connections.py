"""Connections between nodes that are cut, stand still for a while, or are slow."""

import time

import pytest
from proxy import Fault, Proxy, cut, hold
from ranks import finish, start

SIZE = 500_000  # of int64: 4 MB
HALVES = ("a", "a", "b", "b")
MESSAGE = 1_000_003  # an offset in the middle of one
RIGHT = ["right\n"]


def job(meddle, ranks, size, calls, late=0.0, nodes=("a", "b"), environ=None):
    """What every rank prints."""
    with Proxy(meddle) as proxy:
        codes, said = finish(
            start("sums", ranks, size, calls, late, nodes=nodes, module="wire_programs",
                  environ=environ, proxy=proxy)
        )  # fmt: skip
    assert codes == [0] * ranks, said
    return said


def all_lost(said, ranks, when):
    """Every rank raises in time, and names one at an end of the connection."""
    for text in said:
        kind, blamed, moment, text = text.strip().split(" ", 3)
        assert kind == "PeerLost", text
        assert int(blamed) in ranks
        assert f"rank {blamed} has ended, or its connection was cut" in text
        assert float(moment) - when < 1, text


@pytest.mark.parametrize("checksum", ["0", "1"])
@pytest.mark.parametrize(
    ("index", "back", "at"),
    [(1, False, MESSAGE), (2, True, MESSAGE), (1, True, 30), (2, False, 0), (0, False, 10)],
)
def test_a_connection_that_is_cut(index, back, at, checksum):
    """One of several, in the middle of a message, of a header, between messages; that for words."""
    fault = Fault(0, 1, index, back, at, cut)
    size = SIZE if index else 1000
    said = job(fault, 2, size, 1_000_000, 0.5, environ={"ROUNDELAY_CHECKSUM": checksum})
    all_lost(said, (0, 1), fault.when)


@pytest.mark.parametrize("index", [0, 2])
def test_a_cut_between_calls(index):
    """Nobody is in a call meanwhile; a later one tells."""
    with Proxy() as proxy:
        processes = start(
            "pause_between_sums", 2, module="wire_programs", nodes=("a", "b"), proxy=proxy
        )
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        proxy.cut(index)
        codes, said = finish(processes)
    assert codes == [0, 0], said
    for text in said:
        goes_on, error = text.split("\n", 1)
        all_lost([error], (0, 1), float(goes_on))


def test_all_ranks_of_both_nodes_are_told():
    fault = Fault(1, 3, 1, False, 300_001, cut)
    said = job(fault, 4, SIZE, 1_000_000, nodes=HALVES)
    all_lost(said, (1, 3), fault.when)


@pytest.mark.parametrize("index", [0, 1, 2])
def test_bytes_that_are_held_back(index):
    fault = Fault(0, 1, index, False, 40, hold(2.0))
    began = time.time()
    assert job(fault, 2, SIZE, 5, 0.3) == 2 * RIGHT
    assert fault.when
    if index:
        assert time.time() - began > 2


def test_a_network_that_is_slow():
    """1 MB/s: what lies in the middle is passed on in small parts, at times of its own."""

    def slow(flow, _offset, data):
        if flow.index > 0:
            time.sleep(len(data) / 1e6)
        return data

    assert job(slow, 2, 100_000, 2, environ={"ROUNDELAY_CHECKSUM": "1"}) == 2 * RIGHT
