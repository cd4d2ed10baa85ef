"""Measure reading a trace of PyTorch's profiler of 1 GB.

    python benchmarks/kineto.py [--write] [--from FILE] [--bytes N]

A file of so many bytes is made from the events of a small one, again and again at later times; by
default of a step as torch 2.13 writes it, with kernels of NCCL. A fresh process then reads it and
computes what each kind of work took. The machine should have nothing else to do.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import report

from roundelay.formats.kineto import read_kineto
from roundelay.units import parse_size

STEP_US = 1000.0
STREAM, COMM = 7, 20


def step() -> list[dict]:
    """Events of a step: operators, their launches, kernels, and a collective beside them."""
    events = []
    for i in range(20):
        at, shared = 40.0 * i, {"External id": i + 1, "correlation": i + 1}
        operator = {"External id": i + 1, "Record function id": 0, "Concrete Inputs": ["", ""],
                    "Input type": ["float", "float"], "Input Dims": [[4096, 1024], [1024, 1024]],
                    "Ev Idx": i}  # fmt: skip
        kernel = shared | {"queued": 0, "device": 0, "context": 1, "stream": STREAM,
                           "registers per thread": 168, "shared memory": 49152,
                           "blocks per SM": 0.97, "warps per SM": 7.76, "grid": [32, 4, 1],
                           "block": [256, 1, 1], "est. achieved occupancy %": 12}  # fmt: skip
        name = f"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_{i}>(Params)"
        for op in ("aten::linear", "aten::t", "aten::transpose", "aten::addmm"):
            events.append(("cpu_op", op, 100, 100, at, 30.0, operator))
        events += [("cuda_runtime", "cudaLaunchKernel", 100, 100, at + 5, 4.0,
                    {"cbid": 211, **shared}),
                   ("kernel", name, 0, STREAM, at + 12, 36.0, kernel)]  # fmt: skip
    call = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20,
            "Group size": 8, "dtype": "Float", "Process Group Name": "0", "Seq": 1,
            "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]", "External id": 99, "stream": COMM,
            "correlation": 99}  # fmt: skip
    events.append(("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 0, COMM,
                   400.0, 500.0, call))  # fmt: skip
    keys = ("cat", "name", "pid", "tid", "ts", "dur", "args")
    return [{"ph": "X"} | dict(zip(keys, e, strict=True)) for e in events]


def make(path: Path, size: int, source: str | None) -> int:
    """A file of so many bytes; how many events it has."""
    head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
            "baseTimeNanoseconds": 1_700_000_000_000_000_000}  # fmt: skip
    events = step()
    if source:
        data = Path(source).read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        head = json.loads(data)
        events = [e for e in head.pop("traceEvents") if "ts" in e]
    begin = min(e["ts"] for e in events)
    length = max(e["ts"] + e.get("dur", 0) for e in events) - begin
    with path.open("wb") as file:
        file.write(json.dumps(head)[:-1].encode() + b',\n  "traceEvents": [\n')
        turn = 0
        while file.tell() < size:
            later = [e | {"ts": e["ts"] + turn * max(length, STEP_US)} for e in events]
            text = ",\n".join(json.dumps(e, indent=2) for e in later)
            file.write((",\n" if turn else "").encode() + text.encode())
            turn += 1
        file.write(b'\n  ],\n  "traceName": "trace.json"\n}\n')
    return turn * len(events)


def child(path: str) -> None:
    """Read it in a fresh process."""
    begun = time.perf_counter()
    with Path(path).open("rb") as file:
        trace = read_kineto(file, path)
    work = [int((trace.end - trace.begin)[trace.kind == k].sum()) for k in range(3)]
    seconds = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "memory": memory, "events": trace.events,
                      "device": len(trace.begin), "calls": len(trace.calls),
                      "work": work}))  # fmt: skip


def body(size: int, source: str | None) -> list[str]:
    """The table."""
    lines = ["", f"A file of {size:,} bytes, made of "
             f"{'a real trace' if source else 'a step as torch 2.13 writes it'}, plain and gzip. "
             "Seconds from opening it to the sums; memory is the process's peak.", "",
             "| file | bytes | seconds | MB/s | memory, MB | events | of devices | calls |",
             "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "trace.json")
        events = make(plain, size, source)
        packed = Path(folder, "trace.json.gz")
        with plain.open("rb") as file, gzip.open(packed, "wb", compresslevel=1) as out:
            while block := file.read(1 << 24):
                out.write(block)
        for path in (plain, packed):
            command = [sys.executable, __file__, "--child", str(path)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            if found["events"] != events:
                raise SystemExit(f"{found['events']:,} events were read, of {events:,}")
            lines.append(
                f"| {path.suffix[1:]} | {path.stat().st_size:,} | {found['seconds']:.1f} "
                f"| {size / found['seconds'] / 1e6:,.0f} | {found['memory'] / 1e6:,.0f} "
                f"| {found['events']:,} | {found['device']:,} | {found['calls']:,} |"
            )
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--child")
    parser.add_argument("--from", dest="source")
    parser.add_argument("--bytes", default="1e9")
    own, rest = parser.parse_known_args()
    if own.child:
        child(own.child)
    else:
        size = int(float(own.bytes)) if "e" in own.bytes else parse_size(own.bytes)
        sys.argv[1:] = rest
        report(__file__, "Traces of PyTorch's profiler: reading 1 GB", "",
               lambda: body(size, own.source))  # fmt: skip
