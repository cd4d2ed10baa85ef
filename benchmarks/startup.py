"""Measure how long many ranks of one machine take to come together.

    python benchmarks/startup.py [--write]

The ranks are forked from a process that has imported everything, so imports do not count: from the
first call of `init` to the return of the last. A run takes half a minute. With --write the table
goes to benchmarks/startup.md.
"""

import importlib.resources.readers  # noqa: F401  (else imported by `init`)
import json
import os
import secrets
import socket
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from report import report

import roundelay
from roundelay.communicator import init
from roundelay.run import Job

CELLS = ((8, 1), (64, 1), (64, 8))
RUNS = 3
TARGET = 5.0  # seconds, 64 ranks
TIMEOUT = 60.0


def rank_of(rank, ranks, nodes, port, secret, begin, tell):
    """What a rank does; moments of CLOCK_MONOTONIC, which all processes share."""
    os.environ["ROUNDELAY_NODE"] = f"node{rank * nodes // ranks}"
    begin.recv(1)
    called = time.monotonic()
    comm = init(TIMEOUT, job=Job(rank, ranks, rank, "127.0.0.1", port, secret, "startup.py"))
    returned = time.monotonic()
    started = connections()
    x = np.ones(1000, np.float32)
    comm.all_reduce(x)
    assert (x == ranks).all()
    first = time.monotonic()
    told = [called, returned, first, started, connections()]
    tell.sendall(json.dumps(told).encode() + b"\n")
    begin.recv(1)  # nobody leaves before all have been heard
    comm.close()


def connections():
    """TCP connections of this process."""
    inodes = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
              if os.path.exists(f"/proc/self/fd/{fd}")}  # fmt: skip
    established = "01"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return sum(f[3] == established and f"socket:[{f[9]}]" in inodes for f in fields)


def start_up(ranks, nodes):
    """What each rank tells."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secret = secrets.token_bytes(32)
    pairs = [socket.socketpair() for _ in range(ranks)]
    pids = []
    for rank, (_, far) in enumerate(pairs):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for near, other in pairs:
                    near.close()
                    if other is not far:
                        other.close()
                rank_of(rank, ranks, nodes, port, secret, far, far)
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    try:
        ours = [near for near, far in pairs]
        for _, far in pairs:
            far.close()
        for near in ours:
            near.settimeout(2 * TIMEOUT)
            near.sendall(b"x")
        told = [json.loads(near.makefile().readline()) for near in ours]
        for near in ours:
            near.sendall(b"x")
    finally:
        for near in ours:
            near.close()
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert not any(codes), codes
    return told


def row(ranks, nodes):
    """Of the table: medians of some runs."""
    seconds, firsts = [], []
    for _ in range(RUNS):
        told = np.array(start_up(ranks, nodes))
        seconds.append(told[:, 1].max() - told[:, 0].min())
        firsts.append(told[:, 2].max() - told[:, 1].max())
        print(ranks, nodes, seconds[-1], firsts[-1], file=sys.stderr, flush=True)
    counts = told[1:, 3:].max(axis=0).astype(int)
    target = f"{TARGET:g} s" if ranks == 64 else ""
    cells = [ranks, nodes, f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}", target,
             f"{statistics.median(firsts):.2f}", int(told[0, 3]), counts[0], counts[1]]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def figures():
    load = os.getloadavg()[0]
    roundelay.algorithms()  # imports them
    return [
        f"- load of the machine before the run: {load:.1f}",
        "",
        f"From the first call of `init` to the last return, and then the first all_reduce; {RUNS}",
        "runs. Imports do not count. Connections are TCP connections of a process: rank 0 keeps",
        "one with each other rank, for exchanges and for news of who has gone. Others have that",
        "one, and 3 with each peer of another node that an algorithm has needed.",
        "",
        "| ranks | nodes | s, median | s, most | target | first all_reduce, s |"
        " connections of rank 0 | of others, at most | after the all_reduce |",
        "|---|---|---|---|---|---|---|---|---|",
        *(row(*cell) for cell in CELLS),
    ]


if __name__ == "__main__":
    report(__file__, "Start-up: figures", "", figures)
