"""What NCCL's log tells without a warning: its search, its ways, its start; and errors of cards."""

import re

import pytest

from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict

HEAD = "a1:7:9 [0] NCCL INFO "


def findings(*lines):
    text = "".join(f"{HEAD}{line}\n" for line in lines)
    return diagnose([Given("f", data=text.encode())], None, predict, cluster).findings


def told(found, kind):
    (one,) = (f for f in found if f.kind == kind)
    return one.fault, str(one.reason)


RING = "Pattern 4, crossNic 0, nChannels 2, bw 12.000000/10.000000, type {}/{}, sameChannels 1"


def test_the_search_is_told_with_what_bounds_it():
    fault, reason = told(findings(RING.format("SYS", "PHB"), " 0 : NET/0 GPU/0 GPU/1 NET/0"),
                         "searched")  # fmt: skip
    assert not fault
    for words in (r"ring: 2 channels of 12 GB/s \(SYS\), 10 GB/s between nodes \(PHB\)",
                  r"at most 24 GB/s one way", "sockets", "Between nodes it is 20 GB/s",
                  r"far apart \(PHB\)"):  # fmt: skip
        assert re.search(words, reason), words


def test_within_one_node_nothing_is_said_of_a_network():
    _, reason = told(findings(RING.format("NVL", "PIX"), " 0 : GPU/0 GPU/1"), "searched")
    assert "All its ways inside a node are NVLink" in reason
    assert "etween" not in reason
    assert "far apart" not in reason


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (" Pattern 4, crossNic 0, nChannels 1, speed 21/21, nvlink 1, type 2, sameChannels 1",
         r"ring: 1 channel of 21 GB/s \(\?\)"),
        ("Pattern 1, crossNic 1, nChannels 1, bw 0.240000/0.240000, type PHB/PHB, sameChannels 1",
         "no sound way"),
    ],
)  # fmt: skip
def test_the_search_of_old_versions_and_one_that_found_nothing(line, words):
    fault, reason = told(findings(line), "searched")
    assert re.search(words, reason)
    assert fault is ("no sound way" in words)


SHM = "Channel 00 : {} via SHM/direct/direct"


def test_ways_through_the_host_s_memory_are_told_and_blamed_for_nothing():
    both = findings(SHM.format("0[1] -> 1[2]"), "Channel 00 : 1[2] -> 2[3] via P2P/IPC")
    fault, reason = told(both, "in_memory")
    assert not fault
    assert "1 of 2 connections" in reason
    assert "different sockets" in reason
    _, alone = told(findings(SHM.format("0[1] -> 1[2]")), "in_memory")
    assert "Without NVLink that is usual" in alone


def test_sockets_within_one_host_are_not_between_hosts():
    found = findings("comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0",
                     "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0")  # fmt: skip
    assert "all ranks are on one host" in told(found, "sockets_only")[1]


START = "ncclCommInitRank comm 0x1 rank {} nranks 2 cudaDev 0 busId 1000 commId 0xa - Init START"


def test_a_log_that_ends_within_the_start_says_who_is_not_heard_from():
    fault, reason = told(findings(START.format(0)), "start_not_through")
    assert not fault
    assert "wait for rank 1" in reason


def test_an_abort_is_no_cause():
    fault, reason = told(findings("comm 0x1 rank 5 nranks 8 cudaDev 0 busId 1 - Abort COMPLETE"),
                         "aborted")  # fmt: skip
    assert not fault
    assert "rank 5 was aborted" in reason


def test_a_closed_connection_hides_where_a_thread_gave_up():
    text = (f"{HEAD[:-10]}misc/socket.cc:9 NCCL WARN Net : Connection closed by remote peer n<4>\n"
            f"{HEAD}include/socket.h:4 -> 2\n")  # fmt: skip
    found = diagnose([Given("f", data=text.encode())], None, predict, cluster).findings
    assert [f.kind for f in found] == ["peer_lost"]


@pytest.mark.parametrize(
    ("lines", "kind", "words"),
    [
        (["NVRM: Xid (PCI:0000:c1:00): 79, pid=1, GPU has fallen off the bus."], "card_failed",
         "Xid 79. The card has fallen off the bus"),
        (["NVRM: Xid (PCI:0000:c1:00): 45, pid=1, Ch 8", "NVRM: Xid (PCI:0000:c1:00): 31, pid=1"],
         "card_failed", "Xid 31. It is a fault of a kernel"),
        (["NVRM: Xid (PCI:0000:c1:00): 45, pid=1, Ch 8"], "card_failed", "is no cause"),
        (["nvidia-nvswitch1: SXid (PCI:0000:c3:00.0): 20034, Fatal, Link 30 LTSSM Fault Up"],
         "switch_failed", "SXid 20034, Fatal, Link 30"),
    ],
)  # fmt: skip
def test_errors_of_cards_and_switches_are_told_by_their_numbers(lines, kind, words):
    text = "\n".join(lines)
    (found,) = diagnose([Given("f", data=text.encode())], None, predict, cluster).findings
    assert found.kind == kind
    assert words in str(found.reason)
