"""`roundelay llm` when it is told to end, when one request is too much, and when it is killed."""

import json
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llm_served import ask, events, gauge, served, text, until

pytest.importorskip("roundelay._native", reason="the native core is not built")

pytestmark = pytest.mark.timeout(150)
LONG = {"prompt": "Once upon a time", "max_tokens": 490, "temperature": 0}


def gone(pids):
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def processes(port):
    return [p for i in json.loads(ask(port, "/health")[2])["instances"] for p in i["pids"]]


def test_requests_that_take_too_long_at_the_end_get_an_error(tmp_path):
    with served(tmp_path, "--tp", "2", "--grace", "1") as (process, port):
        pids = processes(port)
        with ThreadPoolExecutor(2) as pool:
            whole = pool.submit(ask, port, "/v1/completions", LONG)
            stream = pool.submit(ask, port, "/v1/completions", {**LONG, "stream": True})
            until(lambda: gauge(port, "requests{") == 2)
            process.send_signal(signal.SIGTERM)
            status, _, body = whole.result(30)
            last = events(stream.result(30)[2])[-1]
        assert process.wait(30) == 0
    assert status == 503
    for error in (json.loads(body)["error"], last["error"]):
        assert error["type"] == "server_error"
        assert "the server ends" in error["message"]
    assert gone(pids)
    assert (tmp_path / "log").read_text().count("\n") == 1  # where it is, and nothing else


def test_the_front_is_killed(tmp_path):
    """The ranks end by themselves."""
    with served(tmp_path, "--tp", "2") as (process, port):
        pids = processes(port)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(ask, port, "/v1/completions", LONG)
            until(lambda: gauge(port, "requests{") == 1)
            process.kill()
            with pytest.raises(OSError, match=r"closed|reset"):
                running.result(30)
        until(lambda: gone(pids), seconds=30)


def test_a_long_text_stops_nobody(tmp_path):
    """Its tokens are found beside the others' streams, and a text that cannot fit is refused."""
    with served(tmp_path, "--context", "8192") as (_, port):
        assert ask(port, "/v1/completions", {"prompt": "b" * 1_000_000})[0] == 400
        done, waits = threading.Event(), []

        def look():
            while not done.is_set():
                begun = time.monotonic()
                ask(port, "/health")
                waits.append(time.monotonic() - begun)

        looking = threading.Thread(target=look)
        looking.start()
        begun = time.monotonic()
        status = text(port, "b" * 600_000, 1)[0]
        took = time.monotonic() - begun
        done.set()
        looking.join()
    assert status == 400
    assert len(waits) > 3
    assert max(waits) < took / 2  # without a thread of its own: all of it
