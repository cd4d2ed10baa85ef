"""What people paste, small and made by hand: each kind of trouble is named, and no other."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict

PASTED = tomllib.loads((Path(__file__).parent / "files/pasted.toml").read_text("utf-8"))["case"]


def findings(text):
    return diagnose([Given("f", data=text.encode())], None, predict, cluster).findings


@pytest.mark.parametrize("case", PASTED, ids=[case["name"] for case in PASTED])
def test_what_is_pasted_is_understood(case):
    found = findings(case["text"])[:3]
    told = [(f.kind, f.fault, str(f.reason)) for f in found]
    assert any(
        (kind, fault) == (case["kind"], case["fault"]) and re.search(case["words"], reason, re.S)
        for kind, fault, reason in told
    ), told


DDP = "RuntimeError: DDP expects same model across all ranks, but Rank 1 has 9 params, while " \
      "rank 0 has inconsistent {} params."  # fmt: skip


@pytest.mark.parametrize(("count", "kind"), [(0, "stuck_in_start"), (8, "models_differ")])
def test_a_count_that_never_came_is_no_other_model(count, kind):
    (found,) = findings(DDP.format(count))
    assert found.kind == kind


def test_a_whole_bridge_has_no_link_down():
    table = "GPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV{0}\t0-7\nGPU1\tNV{0}\tX\t0-7\n"
    said = {n: str(findings(table.format(n))[0].reason) for n in (2, 3, 4, 12)}
    assert [n for n, reason in said.items() if "a link is down" in reason] == [3]


def test_nothing_is_near_in_a_tree_that_is_hidden():
    case = next(c for c in PASTED if c["name"] == "network cards in the place of a host bridge")
    assert "nic_layout" not in {f.kind for f in findings(case["text"])}
    open_ = case["text"].replace("0x060000", "0x020000")
    assert {f.kind for f in findings(open_)} & {"nic_layout", "hidden_pcie"} == {"nic_layout"}


def test_a_rank_that_is_idle_is_not_called_silent():
    case = next(c for c in PASTED if c["name"].startswith("idle by its signal"))
    assert [f.kind for f in findings(case["text"])] == ["never_called"]


def recorded(rank, *entries):
    """A flight recorder dump: operation, sequence, shape, and the type of what comes out."""
    calls = [
        {
            "process_group": ["0", "pg"], "collective_seq_id": sequence, "record_id": number,
            "profiling_name": f"nccl:{name}", "input_sizes": [shape], "output_sizes": [shape],
            "input_dtypes": ["float32"], "output_dtypes": [result], "state": "completed",
            "retired": True,
        }
        for number, (name, sequence, shape, result) in enumerate(entries)
    ]  # fmt: skip
    return {"rank": rank, "version": "2.8", "pg_config": {"0": {"ranks": "[0, 1]"}},
            "entries": calls}  # fmt: skip


PART = ("_broadcast_oop", 1, [4], "")
END = ("coalesced", 1, [], "")


@pytest.mark.parametrize(
    ("one", "other", "kind", "words"),
    [
        ([("all_reduce", 1, [4], "float16")], [("all_reduce", 1, [4], "float32")], "types_differ",
         "float16 on rank 0; float32 on rank 1"),
        ([PART, ("_broadcast_oop", 1, [9], ""), END], [PART, PART, END], "sizes_differ",
         r"\[9\] on rank 0; \[4\] on rank 1"),
        ([PART, ("_reduce_oop", 1, [4], ""), END], [PART, PART, END], "calls_differ",
         "_reduce_oop on rank 0; _broadcast_oop on rank 1"),
        ([PART, END], [PART, END], "matched", "same 1 call"),
    ],
)  # fmt: skip
def test_calls_that_are_put_together_in_one_are_compared_too(one, other, kind, words):
    found = findings(json.dumps([recorded(0, *one), recorded(1, *other)]))
    assert found[0].kind == kind
    assert re.search(words, str(found[0].reason))


HEADER = "# nThread 1 nGpus 2 minBytes 8 maxBytes 64 step: 2\n# Using devices\n"
ROWS = """# size count type redop root time algbw busbw #wrong
# (B) (elements) (us) (GB/s) (GB/s)
8589934592 2147483648 float sum -1 99000 86.77 86.77 0
"""
CALL = ("a:1:{0} [{0}] NCCL INFO {1}: opCount 5 sendbuff 0x1 recvbuff 0x1 count 4 datatype 7 op 0 "
        "root 0 comm 0x{0} [nranks={2}] stream 0x1\n")  # fmt: skip
SOUND = {
    "two runs on other hosts": "".join(
        f"{HEADER}#  Rank 0 Group 0 Pid 7 on {host} device 0 [0x00] Card\n"
        f"#  Rank 1 Group 0 Pid 7 on {host} device 1 [0x01] Card\n{ROWS}" for host in "ab"
    ),
    "a start": "a:1:2 [0] NCCL INFO NVLS multicast support is available on dev 0\n"
    "a:1:2 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 0.\n"
    "a:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 8[0] [receive] via NET/IB/0/GDRDMA\n",
    "calls of two groups": CALL.format(1, "AllReduce", 2) + CALL.format(2, "AllReduce", 2)
    + CALL.format(3, "AllGather", 4),
    "plain Ethernet": '<system version="1"><cpu numaid="0"><pci busid="0000:01:00.0" '
    'class="0x020000"><nic><net name="eth0" dev="0" speed="100000" gdr="0"/></nic></pci></cpu>'
    "</system>",
}  # fmt: skip


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_what_is_sound_is_not_blamed(text):
    assert not [f for f in findings(text) if f.fault]


def test_information_that_weighs_is_joined_over_the_logs_of_a_job():
    line = "{0}:1:2 [0] NCCL INFO NET/IB : No device found.\n"
    given = [Given(f"{host}.log", data=line.format(host).encode()) for host in "ab"]
    found = diagnose(given, None, predict, cluster).findings
    assert [f.figures["times"] for f in found if f.kind == "no_rdma"] == [2]


@pytest.mark.parametrize(
    ("words", "collective"), [("", "all_reduce"), ("SendRecv", "send_recv"), ("Reduce", "reduce")]
)
def test_words_above_a_table_name_its_collective(words, collective):
    table = (
        "size count type redop time algbw busbw #wrong\n1048576 262144 float sum 100 10.49 10.49 0"
    )
    found = findings(f"{words}\n{table}\n")
    assert [f.figures["collective"] for f in found if f.kind == "measured"] == [collective]
