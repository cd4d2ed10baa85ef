"""`roundelay llm` and clients that ask nothing, ask nonsense, go away, or see a rank killed."""

import json
import os
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from llm_clients import Clients
from llm_served import ask, gauge, served, text, until

pytest.importorskip("roundelay._native", reason="the native core is not built")

HASTE = "from roundelay import patience\npatience.HEAD = patience.BODY = 2"
HELD = 100
"""Connections that are held; 70 may be open where 6 requests are let in."""
KINDS = {"stream", "whole", "goes", "hostile", "half", "killed"}
GROWS = 24 << 20
"""Bytes by which the front may be larger after a while of clients."""


def half_asked(port):
    """A connection with the head of a request, and no body."""
    line = socket.create_connection(("127.0.0.1", port), timeout=30)
    line.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
    return line


@pytest.mark.timeout(150)
def test_who_asks_nothing_holds_nothing(tmp_path):
    with ExitStack() as stack:
        words = ("--batch", "4", "--queue", "2")
        _, port = stack.enter_context(served(tmp_path, *words, before=HASTE))
        held = [stack.enter_context(half_asked(port)) for _ in range(HELD)]
        assert ask(port, "/health")[0] == 200
        assert gauge(port, "ready") == 1
        assert text(port, "a", 1)[0] == 200
        told = [*filter(None, map(rest, held))]
        assert len(told) > HELD // 2  # a line that is closed before it was read has no time to say
        assert {one.split(b" ", 2)[1] for one in told} >= {b"408"}
        for one in told:
            error = json.loads(one.partition(b"\r\n\r\n")[2])["error"]
            assert error["message"]
            assert (error["type"] == "server_error") == (b" 503 " in one[:20])


def rest(line):
    """What comes until the end, or nothing where it is cut."""
    try:
        return line.makefile("rb").read()
    except ConnectionResetError:
        return b""


def looked(pid):
    """Memory and open files of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(memory) << 10, len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.timeout(900)
def test_clients_of_all_kinds_for_a_while(tmp_path, request):
    """Fifteen seconds, in a soak five minutes: nothing lost, mixed, left or grown."""
    long = request.config.getoption("--soak")
    ranks, seconds, every = ("2", 300, 40) if long else ("1", 15, 5)
    shared = set(os.listdir("/dev/shm"))
    with served(tmp_path, "--tp", ranks, "--replicas", "2", "--batch", "8",
                "--queue", "8") as (process, port):  # fmt: skip
        Clients(port, 2, 5, seed=100).run()  # whatever is made once is made
        until(lambda: gauge(port, "requests{") == 0)
        memory, files = looked(process.pid)
        clients = Clients(port, seconds, every)
        clients.run()
        print(dict(clients.met))
        assert clients.wrong == []
        done, turned = (sum(n for kind, n in clients.met.items() if kind.endswith(end))
                        for end in ("done", "turned"))  # fmt: skip
        assert done > (seconds / 4 if long else 0)
        assert turned <= 0.02 * done + 1
        assert clients.met["killed"]
        assert {kind.split()[0] for kind in clients.met} == KINDS
        until(lambda: gauge(port, "requests{") == 0)
        until(lambda: looked(process.pid)[1] <= files + 1)  # the one that is asking
        grown = looked(process.pid)[0] - memory
        print(f"{grown / 2**20:.1f} MiB more")
        assert grown < GROWS
        pids = [p for i in json.loads(ask(port, "/health")[2])["instances"] for p in i["pids"]]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert set(os.listdir("/dev/shm")) <= shared
    assert "Traceback" not in (tmp_path / "log").read_text()
