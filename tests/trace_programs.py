"""What ranks do in the tests of traces: each function runs in every rank of a job."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import roundelay as rl
from roundelay import ExchangeError
from roundelay.communicator import init
from roundelay.formats.chrome import read_chrome, write_chrome
from roundelay.recorder import TEAM
from roundelay.timeline import What


def main(name, arguments):
    comm = init(timeout=30)
    globals()[name](comm, *arguments)
    comm.close()


def traced(comm, algorithm, elements, file):
    """One all-reduce, which rank 0 writes to a file."""
    x = np.ones(elements, np.float32)
    comm.all_reduce(x.copy(), algorithm=algorithm)
    with comm.trace() as trace:
        comm.all_reduce(x, algorithm=algorithm)
    timeline = trace.timeline
    own = set(timeline.rank.tolist())
    assert comm.rank in own
    if comm.rank == 0:
        assert own >= set(range(comm.ranks))
        Path(file).write_bytes(write_chrome(timeline))
    else:
        assert not own & set(range(comm.ranks)) - {comm.rank}
    assert (x == comm.ranks).all()


def overflow(comm):
    """A ring of 10 events keeps the last ones, in order, and says how many it has lost."""
    x = np.ones(100, np.float32)
    schedule = rl.build("all_reduce/ring", comm.ranks)
    calls = 6
    with comm.trace(events=10) as trace:
        for _ in range(calls):
            comm.all_reduce(x, algorithm=schedule)
    each = 4 * (comm.ranks - 1) + 1  # the call itself is an event as well
    own = trace.timeline.of(comm.rank)
    assert len(own) == 10
    assert own.what[own.call == own.call.max()].tolist().count(What.CALL) == 1
    last = comm.last_calls()
    assert own.call.max() in [call.number for call in last]
    assert own.call.min() >= own.call.max() - 2
    if comm.rank == 0:
        assert trace.timeline.lost == comm.ranks * (calls * each - 10)


def helpers(comm):
    """A switch has its own events; a call with a switch has a number of its own."""
    x = np.ones(1000, np.float32)

    def calls():
        comm.all_reduce(x, algorithm="switch")
        comm.all_reduce(x, algorithm="ring")

    calls()  # the first time, ranks also tell one another where their helpers are
    with comm.trace() as trace:
        calls()
    if comm.rank == 0:
        timeline = trace.timeline
        assert timeline.names[comm.ranks].startswith("switch 0")
        switch = timeline.of(comm.ranks)
        texts = [switch.text(i) for i in range(len(switch))]
        ranks = ", ".join(str(r) for node in comm.nodes for r in node)
        assert f"reduce chunk 0 from {ranks}" in texts, texts
        assert f"send chunk 0 to {ranks}" in texts
        assert (switch.call == TEAM + 2).all()
        assert len(timeline.messages().send) == 2 * comm.ranks + 2 * comm.ranks * (comm.ranks - 1)


def nested(comm, folder):
    """A trace inside a run that is traced from the start, and one inside another."""
    x = np.ones(10, np.float32)
    comm.all_reduce(x, algorithm="ring")
    with comm.trace() as outer:
        comm.all_reduce(x, algorithm="ring")
        with comm.trace() as inner:
            comm.all_reduce(x, algorithm="two_shot")
    assert ["two_shot" in t for t in inner.timeline.calls.values()] == [True]
    assert sum("all_reduce" in t for t in outer.timeline.calls.values()) == 2
    comm.close()
    found = read_chrome(Path(folder, f"rank-{comm.rank}.json").read_bytes())
    assert sum("(ring)" in t for t in found.calls.values()) == 2


def asynchronous(comm):
    """Calls that a thread makes are in the trace of the block in which they were asked for."""
    arrays = [np.ones(1000, np.float32) for _ in range(5)]
    comm.all_reduce(arrays[0], async_op=True).wait()
    with comm.trace() as trace:
        handles = [comm.all_reduce(x, algorithm="ring", async_op=True) for x in arrays]
    for handle in handles:
        handle.wait()
    own = trace.timeline.of(comm.rank)
    assert (own.what == What.CALL).sum() == len(arrays)
    comm.all_reduce(arrays[0])


def quick_then_late(comm):
    """Who comes late is waited for, and the trace says so."""
    x = np.ones(1000, np.float32)
    comm.all_reduce(x, algorithm="two_shot")
    with comm.trace() as trace:
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.2)
        comm.all_reduce(x, algorithm="two_shot")
    if comm.rank == 0:
        waits = trace.timeline.waits
        assert waits[0] > 100_000_000 > waits[1], waits


def kept(comm):
    """The last calls are there without a trace, with algorithms and times."""
    x = np.ones(256, np.float32)
    begun = time.monotonic()
    comm.all_reduce(x, algorithm="two_shot")
    comm.broadcast(x, root=comm.ranks - 1, algorithm="binomial")
    *_, first, second = comm.last_calls()
    assert first.text == "all_reduce of 256 float32, sum (two_shot)"
    assert second.text == f"broadcast of 256 float32, root {comm.ranks - 1} (binomial)"
    assert second.number == first.number + 1
    assert begun - 0.01 < first.begun <= second.begun < time.monotonic() + 0.01
    assert 0 < first.seconds < time.monotonic() - begun + 0.01
    for _ in range(40):
        comm.all_reduce(x, algorithm="two_shot")
    assert len(comm.last_calls()) == 16


def failing(comm, folder):
    """After an error there is what happened before it, and what was waited for."""
    x = np.ones(1000, np.float32)
    comm.all_reduce(x, algorithm="ring")
    trace = comm.trace()

    def block():
        with trace:
            if comm.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)  # the others still count on it
            comm.all_reduce(x, algorithm="ring")

    with pytest.raises(ExchangeError) as error:
        block()
    assert error.value.rank == 1, error
    assert (trace.timeline.rank == comm.rank).all()
    assert not (trace.timeline.end < trace.timeline.ready).any()
    last = comm.last_calls()[-1]
    assert last.seconds is None, last
    comm.close()
    found = read_chrome(Path(folder, f"rank-{comm.rank}.json").read_bytes())
    assert (found.what == What.CALL).sum() >= 2
    assert "all_reduce of 1000 float32, sum (ring)" in found.calls.values()


def forgotten(comm):
    """Nobody closes the communicator; `main` does not come to it."""
    comm.all_reduce(np.ones(10, np.float32))
    new = comm.split(comm.rank % 2)
    new.all_reduce(np.ones(10, np.float32))
    sys.exit(0)
