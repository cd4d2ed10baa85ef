"""Flight recorder dumps, their pickles, and messages of watchdogs."""

import gzip
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
from fuzzing import saved

from roundelay import RoundelayError
from roundelay.diagnose.given import Given
from roundelay.diagnose.hang.watched import watched_findings
from roundelay.diagnose.recognise import kinds_of
from roundelay.formats.flight import read_flight
from roundelay.formats.pickled import read_pickle
from roundelay.formats.saved import unsaved
from roundelay.formats.watchdog import read_watchdog

FILES = Path(__file__).parent / "files"
DUMP = (FILES / "flight1").read_bytes()


def one(data, name="-"):
    (dump,) = read_flight(data, name)
    return dump


# Pickles.

PLAIN = {"a": [1, -2, 3.5, None, True, "é" * 300, (1, 2), b"\x00" * 300, 2**70], "b": {"c": []}}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_of_every_protocol(protocol):
    value = PLAIN if protocol > 2 else {**PLAIN, "a": [x for x in PLAIN["a"] if x != b"\x00" * 300]}
    many = [value, *(str(i) for i in range(1000))]
    assert read_pickle(pickle.dumps(many, protocol)) == many


class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/roundelay-was-run",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_something_is_not_run(protocol):
    with pytest.raises(RoundelayError, match=r"It was not run"):
        read_pickle(pickle.dumps([1, Evil()], protocol))
    assert not Path("/tmp/roundelay-was-run").exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x80\x02]r" + struct.pack("<I", 2**31) + b".", "place 2,147,483,648 of its memo"),
        (b"]p99999999999\n.", "place 99,999,999,999 of its memo"),
        (b"cos\nsystem\n.", "the class os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "a class at byte 14"),
        (b"I" + b"9" * 5000 + b"\n.", "digits"),
        (b"\x8b" + struct.pack("<I", 10**6) + b"1" * 10**6 + b".", "a number of"),
        (b"", "cut off after 0 bytes"),
        (b"\x80\x02X\xff\xff\xff\x7fab.", "cut off"),
        (b"\x80\x02a.", "no sound pickle"),
        (b"hello", "the instruction"),
    ],
)
def test_hostile_pickles(data, words):
    with pytest.raises(RoundelayError, match=words):
        read_pickle(data)


def test_a_pickle_that_is_cut_off():
    for at in range(len(DUMP)):
        with pytest.raises(RoundelayError):
            read_pickle(DUMP[:at])


# Dumps.


def test_a_dump():
    dump = one(DUMP, "nccl_trace_rank_1")
    assert (dump.rank, dump.version, dump.groups) == (1, "2.10", {"0": (0, 1, 2)})
    assert (dump.completed, dump.enqueued, dump.names) == ({"0": 1}, {"0": 2}, {"0": "default_pg"})
    first, last = dump.calls
    assert (first.done, first.operation, first.inputs) == (True, "all_reduce", ((4, 4),))
    assert (last.done, last.operation, last.sequence, last.dtype) == (
        False,
        "all_gather",
        2,
        "Float",
    )
    assert last.where == "train.py:12"
    assert [str(note.what) for note in dump.notes] == ["not understood, and left out: odd"]


def test_the_same_as_json_and_packed():
    value = pickle.loads(DUMP)
    assert one(json.dumps(value).encode(), "x1.json").calls == one(DUMP).calls
    assert one(gzip.compress(DUMP)).calls == one(DUMP).calls
    assert one((FILES / "flight2.json").read_bytes(), "flight2.json").rank == 2


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_torch_save_has_written(how):
    data = saved(DUMP, how)
    assert one(data, "dump_1").calls == one(DUMP, "dump_1").calls
    assert kinds_of(Given("dump_1", data=data)) == ("flight",)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (saved(DUMP)[:-40], "no sound zip"),
        (saved(DUMP, zipfile.ZIP_LZMA), "that torch.save does not use"),
        (saved(DUMP).replace(b"data.pkl", b"data.pkx"), "without data.pkl"),
        (saved(b"\x80\x02cos\nsystem\n."), "class os.system"),
        (saved(DUMP).replace(b"entries", b"entriez"), "no sound zip"),
    ],
)
def test_archives_that_are_refused(data, words):
    with pytest.raises(RoundelayError, match=words):
        read_flight(data)


def test_an_archive_that_grows_without_bound():
    with pytest.raises(RoundelayError, match="grows beyond 1,000 bytes"):
        unsaved(saved(bytes(10**6), zipfile.ZIP_DEFLATED), 1000)


def test_several_dumps_in_one_file():
    value = {**pickle.loads(DUMP), "rank": 5}
    dumps = read_flight(json.dumps([value, {**value, "rank": 6}]).encode(), "all7.json")
    assert [dump.rank for dump in dumps] == [5, 6]


def test_dumps_by_rank():
    value = pickle.loads(DUMP)
    for data in (pickle.dumps({3: value, 4: value}), json.dumps({3: value, 4: value}).encode()):
        assert [dump.rank for dump in read_flight(data)] == [3, 4]


def test_a_class_that_is_asked_for_is_named():
    with pytest.raises(RoundelayError, match=r"the class collections\.OrderedDict; .* as JSON"):
        read_flight(pickle.dumps(OrderedDict(pickle.loads(DUMP)), 2))
    with pytest.raises(RoundelayError, match="a class at byte"):
        read_flight(pickle.dumps(OrderedDict(pickle.loads(DUMP)), 4))


def test_what_is_not_there_is_not_needed():
    dump = one(b'{"entries": [{}, 3]}')
    (call,) = dump.calls
    assert (dump.rank, call.sequence, call.inputs, call.done) == (None, 0, (), False)
    assert "entry 1 is no object" in str(dump.notes[0].what)
    assert one(b'{"entries": 3}').calls == ()


def test_messages_between_two_ranks():
    entry = {"process_group": ["0", ""], "is_p2p": True, "p2p_seq_id": 4, "collective_seq_id": 9,
             "profiling_name": "nccl:send 0->1"}  # fmt: skip
    (call,) = one(json.dumps({"entries": [entry]}).encode()).calls
    assert (call.sequence, call.operation, call.between) == (4, "send 0->1", True)


@pytest.mark.parametrize("data", [b"[]", b"{}", b"[1]", b'{"entries"', b"[" * 10000, b"3"])
def test_no_dump(data):
    with pytest.raises(RoundelayError):
        read_flight(data)


# Watchdogs.


def test_messages():
    found = read_watchdog((FILES / "watchdog.log").read_bytes())
    assert [(t.rank, t.sequence, t.operation, t.elements, t.timeout_ms, t.ran_ms)
            for t in found.timeouts] == [(0, 7, "ALLREDUCE", 1024, 600000, 600060),
                                         (3, 5, "BROADCAST", None, 1800000, 1800001)]  # fmt: skip
    (progress,) = found.progress
    assert (progress.rank, progress.group, progress.at, progress.enqueued, progress.completed) == (
        0, "0(default_pg)", 7, 9, 6)  # fmt: skip
    assert [(p.rank, p.sequence, p.shape, p.dtype) for p in found.prints] == [
        (1, 4, (8, 2), "Float"), (0, 4, (8, 4), "Float")]  # fmt: skip
    assert [(r.rank, r.state, r.sequence) for r in found.ras] == [(1, "enqueued", 12),
                                                                  (0, "completed", 11)]  # fmt: skip
    assert (found.next_operation, found.missing) == ("_all_gather_base", (0, 2))
    assert len(found.gloo) == 1
    with pytest.raises(RoundelayError, match="no message of a watchdog"):
        read_watchdog(b"all is well\n")


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [("[gloo/transport/tcp/pair.cc:1] listen: Address already in use", "no_ports_left", "n - 1"),
     ("RuntimeError: ProcessGroupGloo does not support scatter_v", "no_such_call", "no scatter_v"),
     ("gloo: Invalid scalar type", "no_such_type", "bfloat16"),
     ("[gloo/transport/tcp/pair.cc:1] timed out: remote=[127.0.1.1]:9", "loopback", "127.0.1.1"),
     ("[gloo/x.cc:1] Timed out waiting 30ms for recv", "timed_out", "30 ms"),
     ("[gloo/x.cc:1] Connection closed by peer [192.0.2.1]:7", "peer_lost", "192.0.2.1:7"),
     ("[gloo/transport/tcp/pair.cc:1] Read timeout [192.0.2.1]:7", "timed_out", "192.0.2.1"),
     ("[gloo/transport/tcp/pair.cc:1] timed out connecting: SO_ERROR: Connection refused, "
      "remote=[192.0.2.1]:7", "refused", "192.0.2.1"),
     ("[gloo/transport/tcp/pair.cc:1] SO_ERROR: Connection timed out, remote=[192.168.122.1]:7",
      "docker_address", "192.168.122.1"),
     ("[gloo/transport/tcp/pair.cc:1] address family mismatch", "families_differ", "IPv6"),
     ("[gloo/transport/tcp/pair.cc:1] connect [192.0.2.1]:7: Connection timed out", "unanswered",
      "192.0.2.1"),
     ("[enforce fail at gloo/transport/ibverbs/buffer.cc:1] offset + length <= size_. 64 vs 8",
      "sizes_differ", "64 against 8"),
     ("[enforce fail at gloo/transport/ibverbs/pair.cc:1] wc->status == IBV_WC_SUCCESS. 12 vs 0.",
      "network_error", "no answer from the other side"),
     ("[enforce fail at gloo/transport/ibverbs/pair.cc:1] wc->status == IBV_WC_SUCCESS. 10 vs 0.",
      "memory_refused", "error 10"),
     ("[enforce fail at gloo/transport/ibverbs/pair.cc:1] wc->status == IBV_WC_SUCCESS. 5 vs 0.",
      "flushed", "another error came first")],
)  # fmt: skip
def test_what_gloo_says(line, kind, words):
    found = watched_findings("f", read_watchdog(f"INFO using gloo\n{line}\n".encode()))
    assert [finding.kind for finding in found] == [kind]
    assert words in str(found[0].reason)
    assert found[0].evidence[0].line == 2


def test_a_group_that_not_all_make_is_told_of():
    line = "[gloo/transport/tcp/pair.cc:1] connect [192.0.2.1]:7: Connection refused"
    (found,) = watched_findings("f", read_watchdog(line.encode()))
    assert "new_group" not in str(found.reason)
    trace = f"    group = dist.new_group(ranks=mine)\n{line}"
    (found,) = watched_findings("f", read_watchdog(trace.encode()))
    assert "all ranks must call" in str(found.reason)
    assert found.evidence[0].line == 2


def test_a_word_of_gloo_is_no_error():
    assert watched_findings("f", read_watchdog(b"INFO using backend gloo\n")) == []


if DATA := os.environ.get("ROUNDELAY_DATA"):
    CASES = Path(DATA, "cases", "hang")

    @pytest.mark.parametrize("rank", range(3))
    def test_case_gloo_s_dumps(rank):
        folder = CASES / "17-fr-gloo-real-ok"
        dumps = [one((folder / f"rank{rank}.{kind}").read_bytes(), f"rank{rank}.{kind}")
                 for kind in ("json", "pkl")]  # fmt: skip
        for dump in dumps:
            assert (dump.rank, dump.groups, dump.completed) == (rank, {"0": (0, 1, 2)}, {"0": 5})
            assert [call.done for call in dump.calls] == [True] * 5
            assert {call.state for call in dump.calls} == {"scheduled"}

    def test_case_dumps_of_a_list():
        (path,) = CASES.glob("15-*")
        dumps = read_flight(path.read_bytes())
        assert [(d.rank, len(d.calls)) for d in dumps] == [(0, 1), (1, 2)]

    def test_case_watchdogs():
        def messages(start):
            (path,) = CASES.glob(f"{start}*")
            return read_watchdog(path.read_bytes())

        assert {t.sequence for t in messages("01-").timeouts} == {1580}
        assert [(t.rank, t.sequence) for t in messages("03-").timeouts] == [
            (0, 96120), (0, 96117), (0, 96125), (7, 64088)]  # fmt: skip
        assert {t.rank for t in messages("05-").timeouts} == {0, 1, 2}
        assert [p.shape for p in messages("07-").prints] == [(195812480,), (51123456,)]
        assert messages("09-").missing == (0,)
