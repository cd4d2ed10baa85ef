"""Logs and messages in several files, of a rank or a host each: they are judged as one."""

import pytest

from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict


def look(**files):
    given = [Given(f"{name}.log", data=text.encode()) for name, text in files.items()]
    found = diagnose(given, None, predict, cluster)
    return {f.kind: f for f in found.findings}, found


def log(host, rank, *, ranks=4, done=True, job="0xaa", more=""):
    """Of one rank; in containers hosts and processes are called the same."""
    head = f"{host}:1:2 [0] NCCL INFO"
    start = f"{head} ncclCommInitRank comm 0x1 rank {rank} nranks {ranks} cudaDev 0 commId {job} - "
    return f"{start}Init START\n" + (f"{start}Init COMPLETE\n" if done else "") + more


def test_who_has_not_come_is_told_from_all_files():
    found, whole = look(a=log("box", 0, done=False), b=log("box", 1, done=False),
                        c=log("box", 3, done=False))  # fmt: skip
    missing = found["missing_log"]
    assert missing.fault
    assert missing.figures["missing"] == "2"
    assert missing.figures["waiting"] == "0, 1, 3"
    assert [(e.file, e.line) for e in missing.evidence] == [("a.log", 1), ("b.log", 1)]
    assert [f.kind for f in whole.findings].count("built") == 1


def test_all_files_of_a_job_that_runs():
    found, whole = look(**{f"r{r}": log("box", r) for r in range(4)})
    assert whole.ok
    assert "missing_log" not in found
    assert "Ranks: 4, of which the log shows 4" in str(found["built"].reason)


def test_who_differs():
    def own(rank, version, algorithm):
        return log("box", rank, ranks=2, more=f"box:1:2 NCCL version {version}\n" + (
            f"box:1:2 [0] NCCL INFO NCCL_ALGO set by environment to {algorithm}.\n"
            "box:1:2 [0] NCCL INFO NCCL_DEBUG_FILE set by environment to x.\n"))  # fmt: skip

    same = {"a": own(0, "2.21.5", "Ring"), "b": own(1, "2.21.5", "Ring")}
    assert "logs_differ" not in look(**same)[0]
    other = look(a=same["a"], b=own(1, "2.19.3", "Tree"))[0]["logs_differ"]
    assert other.fault
    assert "NCCL: 2.21.5 (a.log); 2.19.3 (b.log)" in str(other.reason)
    assert "NCCL_ALGO: Ring (a.log); Tree (b.log)" in str(other.reason)
    assert "NCCL_DEBUG_FILE" not in str(other.reason)


def test_who_is_behind():
    def calls(rank, last):
        return log("box", rank, ranks=2, more="".join(
            f"box:1:2 [0] NCCL INFO AllReduce: opCount {n:x} sendbuff 0x1 recvbuff 0x1 count 64 "
            "datatype 7 op 0 root 0 comm 0x1 stream 0x2\n" for n in range(last + 1)))  # fmt: skip

    found, _ = look(a=calls(0, 40), b=calls(1, 17))
    late = found["counts_differ"]
    assert late.fault
    assert late.figures["late"] == "1"
    assert "number 17, AllReduce of 64 elements; rank 0 has come to 40" in str(late.reason)
    assert {(e.file, e.line) for e in late.evidence} == {("b.log", 20), ("a.log", 43)}
    assert "counts_differ" not in look(a=calls(0, 9), b=calls(1, 9))[0]


@pytest.mark.parametrize("other", [{"rank": 0}, {"rank": 1, "ranks": 8}, {"rank": 1, "job": "0xb"}])
def test_logs_of_two_jobs_are_not_mixed(other):
    _, whole = look(a=log("box", 0), b=log("box", **other))
    assert [f.kind for f in whole.findings].count("built") == 2
    assert any("of several jobs" in str(note.what) for _, note in whole.notes)
    built = [f.subject for f in whole.findings if f.kind == "built"]
    assert built == ["a.log", "b.log"]


def timeout(rank, sequence, *, named=True):
    who = f"[Rank {rank}] " if named else ""
    return (f"[E ProcessGroupNCCL.cpp:1] {who}Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum={sequence}, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600001 "
            "milliseconds before timing out.\n")  # fmt: skip


def test_watchdogs_of_all_ranks():
    found, whole = look(**{f"rank{r}": timeout(r, 7) for r in (0, 1, 3)})
    assert [f.kind for f in whole.findings] == ["stuck_together"]
    assert found["stuck_together"].figures["silent"] == "2"
    found, _ = look(rank0=timeout(0, 7), rank1=timeout(1, 5))
    assert found["counts_differ"].figures["behind"] == "1"
    assert {e.file for e in found["counts_differ"].evidence} == {"rank0.log", "rank1.log"}


def test_the_name_of_a_file_tells_the_rank_where_its_lines_do_not():
    found, _ = look(rank2=timeout(2, 7, named=False), rank5=timeout(5, 6, named=False))
    assert found["counts_differ"].figures["behind"] == "5"


def test_watchdogs_of_two_jobs_are_not_mixed():
    _, whole = look(first=timeout(0, 7), second=timeout(0, 99))
    assert [f.kind for f in whole.findings] == ["stuck_together"] * 2
    assert any("different things in two files" in str(note.what) for _, note in whole.notes)


def test_a_finding_of_one_file_among_several_names_it():
    matrix = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"
    _, whole = look(one=matrix, two=matrix)
    assert {f.subject for f in whole.findings} == {"2 cards, 0 network cards, one.log",
                                                   "2 cards, 0 network cards, two.log"}  # fmt: skip
    _, alone = look(one=matrix)
    assert {f.subject for f in alone.findings} == {"2 cards, 0 network cards"}


def test_one_is_one():
    _, whole = look(one="\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n")
    assert "1 card, 1 network card" in {f.subject for f in whole.findings}


def test_an_error_in_place_of_a_table_is_cited():
    text = "# nThread 1 nGpus 1\nhost: cannot open shared object file\n"
    found, _ = look(x=text)
    (evidence,) = found["no_table"].evidence
    assert evidence.line == 2
    assert "cannot open" in evidence.text
