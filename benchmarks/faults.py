"""Measure how soon the others know that a rank was killed, and how soon they go on.

    python benchmarks/faults.py [--write]

The ranks make all-reduces of 1 MiB until one of them is killed. A run takes two minutes. With
--write the table goes to benchmarks/faults.md.
"""

import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import time

import numpy as np
from report import report

import roundelay
from roundelay.run import Job

CELLS = ((2, 1), (4, 1), (4, 4), (8, 1), (8, 2))  # ranks, nodes
KILLS = 10
PATIENCE = 60.0


def rank_of(rank: int, ranks: int, nodes: int, port: int, secret: str) -> None:
    """What a rank does, and tells in the end."""
    os.environ["ROUNDELAY_NODE"] = f"node{rank * nodes // ranks}"
    comm = roundelay.init(
        PATIENCE, job=Job(rank, ranks, rank, "127.0.0.1", port, bytes.fromhex(secret), "faults.py")
    )
    x = np.ones(1 << 18, np.float32)
    comm.all_reduce(x)
    print("ready", flush=True)
    try:
        while True:
            comm.all_reduce(x)
    except roundelay.PeerLost as lost:
        raised = time.monotonic()
        comm = comm.shrink()
        shrunk = time.monotonic()
        comm.all_reduce(np.ones(1 << 18, np.float32))
        print(json.dumps([lost.rank, raised, shrunk, time.monotonic()]), flush=True)
    comm.close()


def kill_one(ranks: int, nodes: int, victim: int) -> list[float]:
    """Seconds from the kill until the last has raised, and from then until all have gone on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    rest = [str(ranks), str(nodes), str(port), secrets.token_hex(32)]
    processes = [
        subprocess.Popen([sys.executable, __file__, "rank", str(r), *rest],
                         stdout=subprocess.PIPE, text=True)
        for r in range(ranks)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        time.sleep(0.1)
        killed = time.monotonic()
        processes[victim].send_signal(signal.SIGKILL)
        said = [p.communicate(timeout=PATIENCE)[0] for p in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    told = [json.loads(text) for r, text in enumerate(said) if r != victim]
    assert all(lost == victim for lost, *_ in told)
    raised, shrunk, done = (max(times) for times in list(zip(*told, strict=True))[1:])
    return [raised - killed, shrunk - raised, done - shrunk]


def row(ranks: int, nodes: int) -> str:
    found = [kill_one(ranks, nodes, kill % ranks) for kill in range(KILLS)]
    print(ranks, nodes, found, file=sys.stderr, flush=True)
    columns = list(zip(*found, strict=True))
    texts = [f"{statistics.median(c) * 1e3:,.0f} ({max(c) * 1e3:,.0f})" for c in columns]
    return "| " + " | ".join([str(ranks), str(nodes), *texts]) + " |"


def figures() -> list[str]:
    return [
        f"- load of the machine before the run: {os.getloadavg()[0]:.1f}",
        "",
        f"Milliseconds; the median of {KILLS} kills, and the most. Nodes are of one machine.",
        "",
        "| ranks | nodes | killed to raised by the last | to a new communicator on all |"
        " first all_reduce of 1 MiB |",
        "|---|---|---|---|---|",
        *(row(*cell) for cell in CELLS),
        "",
        "`python -m pytest --soak -s tests/test_membership.py -k random` kills one of 4 ranks, on",
        "one, two or four nodes, at random moments of random collectives of random sizes, 200",
        "times. Each survivor has to name it, `shrink` has to give the other three, their results",
        "have to be right, and nothing may be left in /dev/shm.",
    ]  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank_of(*map(int, sys.argv[2:6]), sys.argv[6])
    else:
        report(__file__, "Ranks that are killed: figures", "", figures)
