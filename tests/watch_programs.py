"""What ranks do in the tests of what is always watched: each function runs in every rank."""

import json
import time
from urllib.request import urlopen

import numpy as np

import roundelay as rl
from roundelay import metrics
from roundelay.communicator import init


def main(name, arguments):
    comm = init(timeout=30)
    globals()[name](comm, *arguments)
    comm.close()


def counted(comm):
    """Calls count by collective, algorithm and size, however they are made."""
    before = {c[:3]: c[3:] for c in comm.metrics().calls}
    x, large = np.ones(2, np.float32), np.ones(3000, np.float32)
    for _ in range(5):
        comm.all_reduce(x, algorithm="ring")
    comm.all_reduce(x, algorithm=rl.build("all_reduce/ring", comm.ranks))
    comm.all_reduce(large, algorithm="ring", async_op=True).wait()
    comm.all_reduce(large, algorithm="switch")  # with a helper
    comm.all_gather(x, algorithm="ring")
    comm.barrier()
    begun = time.monotonic()
    found = {c[:3]: c[3:] for c in comm.metrics().calls}
    new = {k: tuple(np.subtract(v, before.get(k, (0, 0, 0)))[:2]) for k, v in found.items()}
    assert new["all_reduce", "ring", "<=1KiB"] == (6, 6 * 8)
    assert new["all_reduce", "ring", "<=64KiB"] == (1, 12_000)
    assert [v for k, v in new.items() if k[1].startswith("switch")] == [(1, 12_000)]
    assert new["all_gather", "ring", "<=1KiB"] == (1, 8 * comm.ranks)
    assert sum(calls for (kind, *_), (calls, _) in new.items() if kind == "barrier") == 1
    assert all(0 < c.seconds < begun for c in comm.metrics().calls)
    assert comm.metrics().group == comm.name == "world"


def waited(comm, late):
    """Whoever waits for a late rank says for whom, and how long."""
    x = np.ones(2, np.float32)
    comm.all_reduce(x, algorithm="one_shot")
    before = {w.peer: w for w in comm.metrics().waits}
    for _ in range(3):
        comm.barrier()
        if comm.rank == late:
            time.sleep(0.1)
        comm.all_reduce(x, algorithm="one_shot")
    found = {w.peer: w for w in comm.metrics().waits}
    assert comm.rank not in found
    if comm.rank != late:
        first = before.get(late)
        assert found[late].waits - (first.waits if first else 0) >= 3
        assert found[late].seconds - (first.seconds if first else 0) > 0.27
        assert found[late].longest_seconds > 0.09


def forgotten(comm):
    """Counts stay when their task is forgotten; not ever more names are told apart."""
    x = np.ones(2, np.float32)
    ring = rl.build("all_reduce/ring", comm.ranks)
    comm.all_reduce(x, algorithm=ring)
    for k in range(1100):
        named = rl.Schedule(ring.collective, ring.ranks, ring.chunks, list(ring), name=f"own {k}")
        comm.all_reduce(x, algorithm=named)
    found = {c[:3]: c.calls for c in comm.metrics().calls}
    assert found["all_reduce", "ring", "<=1KiB"] == 1
    assert found["all_reduce", "own 0", "<=1KiB"] == 1
    assert 70 < found["all_reduce", "other", "<=1KiB"] < 1100
    assert sum(n for (_, _, _), n in found.items() if n) >= 1101


def scraped(comm, port):
    """Every rank's page is there, with what all its communicators have counted."""
    half = comm.split(comm.rank % 2)
    half.name = 'left "half"'
    x = np.ones(2, np.float32)
    for _ in range(7):
        half.all_reduce(x, algorithm="one_shot")
    comm.barrier()
    page = urlopen(f"http://127.0.0.1:{port + comm.rank}/metrics", timeout=10).read().decode()
    labels = 'algorithm="one_shot",collective="all_reduce",group="left \\"half\\"",size="<=1KiB"'
    values = {}
    for line in page.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            values[name] = float(value)
    assert values[f"roundelay_calls_total{{{labels}}}"] == 7, page
    assert values[f"roundelay_bytes_total{{{labels}}}"] == 56, page
    assert values[f"roundelay_seconds_total{{{labels}}}"] > 0, page
    assert any(name.startswith("roundelay_calls_total") and 'group="world"' in name
               for name in values), page  # fmt: skip
    comm.barrier()
    half.close()
    server = metrics.serve(0)
    page = urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10).read().decode()
    assert "left" not in page
    server.close()


def served_without(comm):
    """A taken port is told of, and the job goes on."""
    comm.barrier()


def late(comm, who, calls, switch):
    """Who sleeps before each call is named by all ranks, with what that cost the others."""
    x = np.ones(2, np.float32)
    algorithm = "switch" if switch else "auto"
    comm.all_reduce(x, algorithm=algorithm)
    comm.stragglers()
    comm.name = "dp"
    for _ in range(calls):
        if comm.rank == who:
            time.sleep(0.01)
        comm.all_reduce(x, algorithm=algorithm)
    found, after = comm.stragglers(), comm.stragglers()
    print(found)
    assert found.calls == calls
    assert {row["rank"] for row in json.loads(found.to_json())["ranks"]} == set(range(comm.ranks))
    first, *others = found.ranks
    assert first.rank == who
    assert first.stands_out
    assert not any(rank.stands_out for rank in others)
    assert first.last > 0.6 * calls  # the machine may have others off the processor
    assert 0.005 < first.median_seconds < 0.2
    waiting = (comm.ranks - 1) * first.median_seconds * first.last
    assert 0.3 * waiting < first.waited_seconds < found.inside_seconds
    assert found.sentences()[0].startswith(f"rank {who} was last in {first.last} of {calls} calls")
    texts = comm.all_gather(np.frombuffer(str(found).ljust(4096).encode()[:4096], np.uint8))
    assert len({row.tobytes() for row in texts.reshape(comm.ranks, -1)}) == 1
    assert after.calls == 0  # those that a report makes are not looked at


def late_on_other_clocks(comm, who):
    """Clocks that are minutes apart are put beside one another, the first time and later."""
    x = np.ones(2, np.float32)
    comm.all_reduce(x)  # connects
    for _ in range(2):
        for _ in range(60):
            if comm.rank == who:
                time.sleep(0.02)
            comm.all_reduce(x)
        found = comm.stragglers()
        print(found)
        first, *others = found.ranks
        assert 0 < found.error_seconds < 0.02
        assert first.rank == who
        assert first.stands_out
        assert not any(rank.stands_out for rank in others)
        assert 0.01 < first.median_seconds < 0.2


def long_ago(comm):
    """The last 1,024 calls are kept."""
    x = np.ones(2, np.float32)
    for _ in range(3000):
        comm.all_reduce(x)
    assert comm.stragglers().calls == 1024
