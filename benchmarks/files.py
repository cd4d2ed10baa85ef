"""How long it takes to read what large jobs leave: a log of NCCL, flight recorder dumps.

`python benchmarks/files.py [--write]`; `--small` makes files of a twentieth. Files are made here,
in a temporary folder, and removed.
"""

from __future__ import annotations

import pickle
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from report import report

from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict

RANKS, CARDS, CHANNELS, CALLS = 1024, 8, 16, 40
SMALL = "--small" in sys.argv
LOG_BYTES = 500 * 10**6 // (20 if SMALL else 1)
DUMPS, ENTRIES = 4096 // (20 if SMALL else 1), 100


def rank_lines(rank: int, comm: int) -> Iterator[str]:
    """What one rank writes while it starts up, and for a few calls."""
    n, node, card = RANKS, rank // CARDS, rank % CARDS
    head = f"host{node:03d}:{1000 + card}:{2000 + comm * CARDS + card} [{card}] NCCL INFO "
    init = (
        f"ncclCommInitRankConfig comm 0x{comm + 1:x} rank {rank} nranks {n} cudaDev {card} - Init "
    )
    yield head + init + "START"
    yield (
        head + f"comm 0x{comm + 1:x} rank {rank} nRanks {n} nNodes {n // CARDS} localRanks {CARDS} "
    )
    trees = " ".join(f"[{c}] {(rank + 1) % n}/-1/-1->{rank}->{(rank - 1) % n}"
                     for c in range(CHANNELS))  # fmt: skip
    yield f"{head}Trees {trees}"
    for c in range(CHANNELS):
        yield f"{head}Ring {c:02d} : {(rank - 1) % n} -> {rank} -> {(rank + 1) % n}"
        yield f"{head}Channel {c:02d}/0 : {rank}[{card}] -> {(rank + 1) % n}[0] via P2P/CUMEM"
        yield (f"{head}Channel {c:02d}/0 : {rank}[{card}] -> {(rank + 8) % n}[{card}] [send] via "
               f"NET/IB/{card}/GDRDMA")  # fmt: skip
    for call in range(CALLS):
        yield (f"{head}AllReduce: opCount {call:x} sendbuff 0x7f recvbuff 0x7f count 1048576 "
               f"datatype 7 op 0 root 0 comm 0x{comm + 1:x} [nranks={n}] stream 0x1")  # fmt: skip
        yield head + "AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}"
    yield head + init + "COMPLETE"


def write_log(path: Path) -> None:
    """A log of all ranks, one communicator after another, up to the size wanted."""
    with path.open("w") as file:
        comm = 0
        while file.tell() < LOG_BYTES:
            for rank in range(RANKS):
                file.write("\n".join(rank_lines(rank, comm)) + "\n")
            comm += 1


def entry(number: int) -> dict[str, object]:
    """A call in a dump; the last one is under way."""
    done = number < ENTRIES - 1
    frame = {"name": "f", "filename": "train.py", "line": 1}
    return {
        "record_id": number, "process_group": ("0", "default_pg"), "collective_seq_id": number + 1,
        "profiling_name": "nccl:all_reduce", "input_sizes": [[1024, 1024]],
        "input_dtypes": ["Float"], "output_sizes": [[1024, 1024]], "retired": done,
        "state": "completed" if done else "started", "is_p2p": False, "frames": [frame] * 8,
    }  # fmt: skip


def write_dumps(folder: Path) -> None:
    """A dump of each rank; the last rank has not made the last call."""

    entries = [entry(i) for i in range(ENTRIES)]
    group = {"name": "0", "desc": "default_pg", "ranks": str(list(range(DUMPS)))}
    value = {"version": "2.10", "pg_config": {"0": group}, "entries": entries}
    data = pickle.dumps(value, protocol=2)
    late = pickle.dumps({**value, "entries": entries[:-1]}, protocol=2)
    for rank in range(DUMPS):
        (folder / f"trace_rank_{rank}").write_bytes(late if rank == DUMPS - 1 else data)


def timed(what: str, files: list[Path]) -> str:
    """A row: how long `diagnose` takes, and what it finds first."""
    size = sum(file.stat().st_size for file in files)
    begun = time.perf_counter()
    found = diagnose([Given(file.name, file) for file in files], None, predict, cluster)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    first = found.findings[0].kind if found.findings else "-"
    return f"| {what} | {size / 1e6:.0f} | {seconds:.1f} | {peak:.0f} | {first} |"


def body() -> list[str]:
    """Make the files, read them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / "nccl.log")
        rows = [timed(f"log of NCCL, {RANKS} ranks", [folder / "nccl.log"])]
        (folder / "nccl.log").unlink()
        write_dumps(folder)
        rows.append(timed(f"{DUMPS} dumps of {ENTRIES} calls", sorted(folder.iterdir())))
    return ["", "| what | MB | seconds | peak memory so far, MB | first finding |",
            "|---|---|---|---|---|", *rows]  # fmt: skip


if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--small"]
    report(__file__, "Files of large jobs", "; a twentieth of each" if SMALL else "", body)
