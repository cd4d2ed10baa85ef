"""Traces of PyTorch's profiler: what is read, in pieces of any size, and what is said of it."""

import gzip
import io
import json
import os
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_traces import BASE, gemm, kernel, nccl, step, trace

from roundelay import RoundelayError
from roundelay.formats.kineto import Kind, read_kineto, stream, words

EVENTS = [
    step(3, 0, 100),
    gemm(10, 30, correlation=5),
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 4,
     "dur": 2, "args": {"correlation": 5}},
    nccl(20, 60, seq=7),
    kernel("Memcpy HtoD (Pinned -> Device)", 70, 75),
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "ts": 0, "args": {"name": "python"}},
    {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 99},
]  # fmt: skip


def told(found):
    return [str(note.what) for note in found.notes]


def test_what_is_read():
    found = read_kineto(trace(EVENTS), "t.json")
    assert (found.rank, found.world, found.backend, found.notes) == (0, 2, "nccl", ())
    assert found.groups == {"0": (0, 1)}
    assert (found.begin - BASE).tolist() == [10_000, 20_000, 70_000]
    assert (found.end - BASE).tolist() == [30_000, 60_000, 75_000]
    assert found.kind.tolist() == [Kind.COMPUTATION, Kind.COMMUNICATION, Kind.MEMORY]
    assert found.stream.tolist() == [7, 20, 7]
    assert found.launched.tolist() == [BASE + 4_000, -1, -1]
    assert found.steps == ((3, BASE, BASE + 100_000),)
    (call,) = found.calls
    assert call[:6] == ("all_reduce", "0", (0, 1), 7, 4 << 20, 2)
    assert found.events == len(EVENTS)
    assert found.other["traceName"] == "t.json"


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("block", [64, 301, 5000])
def test_pieces_of_any_size(monkeypatch, indent, block):
    monkeypatch.setattr(stream, "BLOCK", block)
    text = json.dumps(json.loads(trace(EVENTS * 40)), indent=indent).encode()
    whole = read_kineto(text)
    assert whole.events == 40 * len(EVENTS)
    assert not whole.notes
    assert len(whole.calls) == 40
    again = read_kineto(io.BytesIO(gzip.compress(text)))
    assert (again.begin == whole.begin).all()


def test_names_that_look_like_the_end_of_an_event(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 90)
    tricky = 'a}, {"ph": "X", "b\\"]} \\\\'
    nested = {"a": [{"ph": 1}, {"ph": 2}, {"c": [[{}], {}]}]}
    events = [kernel(tricky, i, i + 1, more=nested) for i in range(30)]
    found = read_kineto(trace(events))
    assert (found.events, found.notes, found.names) == (30, (), (tricky,))


def test_the_array_alone_and_fields_behind_it():
    events = json.dumps(EVENTS).encode()
    assert read_kineto(events).events == len(EVENTS)
    late = b'{"traceEvents": ' + events + b', "distributedInfo": {"rank": 3}}'
    found = read_kineto(late)
    assert found.rank == 3
    assert told(found) == ["the file does not say how many ranks there are"]
    early = b'\xef\xbb\xbf{"x": {"traceEvents": [1]}, "traceEvents":' + events + b"}"
    assert read_kineto(early).events == len(EVENTS)


def test_a_file_that_is_cut(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 200)
    text = trace(EVENTS * 5)
    at = text.index(b'"traceEvents"')
    for end in range(at + 20, len(text) - 40, 37):
        found = read_kineto(text[:end])
        assert found.events >= text[at:end].count(b'"ph"') - 1
        assert any("cut off" in note or "itself" in note for note in told(found)), end
    packed = gzip.compress(text)
    assert told(read_kineto(packed[: len(packed) // 2]))


@pytest.mark.parametrize("block", [100, 1 << 20])
def test_what_is_no_json_is_left_out_and_said(monkeypatch, block):
    monkeypatch.setattr(stream, "BLOCK", block)
    monkeypatch.setattr(stream, "EVENT", 4 * block)
    plain = json.dumps(gemm(1, 2)).encode()
    spoilt = [plain.replace(b"void gemm", b'a "quoted" gemm'), plain.replace(b"gemm", b"\\q"),
              plain.replace(b"gemm", b"\xff\xfe"), plain.replace(b'"X"', b"[]")]  # fmt: skip
    for bad in spoilt:
        text = b'{"traceEvents": [\n' + b",\n".join([plain, plain, bad] * 20 + [plain]) + b"\n]}"
        found = read_kineto(text)
        assert found.events >= 38, bad
        assert found.notes[1].line > 1
        assert "cannot be read" in told(found)[1]


def test_numbers_that_are_none():
    text = trace([gemm(1, 2, share="NUMBER"), gemm(3, 4)]).replace(b'"NUMBER"', b"-nan")
    found = read_kineto(text)
    assert (found.events, found.notes) == (2, ())
    assert read_kineto(trace([gemm(1, 2)]).replace(b'"ts": 1', b'"ts": 1e300')).notes


def test_fields_of_the_host_where_the_kernel_has_none():
    record = nccl(0, 1, name="_allgather_base", nelems=8)
    record |= {"cat": "cpu_op", "name": "record_param_comms"}
    record["args"] |= {"External id": 9, "Out msg nelems": 16}
    found = read_kineto(trace([record, kernel("ncclKernel_AllGather_RING", 2, 3,
                                              **{"External id": 9})]))  # fmt: skip
    assert [(c.name, c.bytes, c.group) for c in found.calls] == [("all_gather", 64, "0")]


def test_a_trace_without_devices():
    events = [{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 5,
               "ts": 10, "dur": 5, "args": {"Input type": ["float"], "Input Dims": [[30, 2]]}},
              {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 0,
               "dur": 9}]  # fmt: skip
    found = read_kineto(trace(events))
    assert not found.on_device
    assert [(c.name, c.bytes) for c in found.calls] == [("all_reduce", 240)]
    assert (found.host_end - found.host_begin).tolist() == [9_000]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float", True), ("ncclDevKernel_SendRecv(args)", True),
        ("void deep_ep::internode::combine<false>(...)", True), ("mscclKernel_Sum", True),
        ("void vllm::cross_device_reduce_2stage<half, 8>", True),
        ("void at::native::reduce_kernel<512>", False), ("Memcpy DtoD", False),
        ("triton_poi_fused_dispatch_0", False),
    ],
)  # fmt: skip
def test_kernels_that_communicate(name, kind):
    assert words.communicates(name) == kind


@pytest.mark.parametrize("text", [b"", b"{}", b'{"a": 1}', b"GIF89a", b"\x1f\x8b\x08abc"])
def test_what_is_no_trace(text):
    with pytest.raises(RoundelayError, match="trace"):
        read_kineto(text)


def test_deep_nesting_and_bombs(monkeypatch):
    deep = b'{"traceEvents": [{"ph": "X", "args": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"
    assert told(read_kineto(deep))
    monkeypatch.setattr(stream, "FREE", 32 << 20)
    bomb = gzip.compress(b'{"traceEvents": [' + b" " * (64 << 20))
    tracemalloc.start()
    with pytest.raises(RoundelayError, match="bytes unpacked"):
        read_kineto(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20


@given(st.data())
@settings(max_examples=300)
def test_anything_at_all(data):
    text = bytearray(trace(EVENTS))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(st.sampled_from([b"", b'"', b"{", b"}", b"]", b"\\", b"9" * 30, b"\xff"]))
        text[at : at + data.draw(st.integers(0, 9))] = new
    with suppress(RoundelayError):
        read_kineto(bytes(text))


if DATA := os.environ.get("ROUNDELAY_DATA"):
    CASES = Path(DATA, "cases", "trace")

    def test_case_of_300_ranks():
        (file,) = CASES.glob("01-*")
        found = read_kineto(file.read_bytes(), file.name)
        assert (found.backend, found.rank, found.world, found.notes) == ("gloo", 34, 300, ())
        assert len([name for name in found.groups if name.isdigit()]) == 10
        assert not found.on_device
        assert [c.name for c in found.calls] == ["all_reduce"] * 10

    def test_case_of_an_unknown_world():
        (file,) = CASES.glob("03-*")
        found = read_kineto(file.read_bytes(), file.name)
        assert (found.rank, found.world, len(found.begin)) == (1, None, 18)
        assert told(found) == ["the file does not say how many ranks there are"]
