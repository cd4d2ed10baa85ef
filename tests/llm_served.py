"""`roundelay llm` as a process, and what its clients ask."""

import http.client
import json
import subprocess
import sys
import time
from contextlib import contextmanager

CONTEXT = 512


@contextmanager
def served(folder, *words, before="pass"):
    """A server of its own, started after a line of Python, and the port it is at."""
    told = folder / "told.json"
    program = f"from roundelay.cli import main\n{before}\nmain()"
    words = [sys.executable, "-c", program, "llm", "--port", "0", "--context", str(CONTEXT),
             f"--json={told}", *words]  # fmt: skip
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        until(lambda: told.exists() and told.read_text().endswith("\n"), process, 90)
        yield process, int(json.loads(told.read_text())["url"].rsplit(":", 1)[1].split("/")[0])
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()
            process.wait()


def until(what, process=None, seconds=60):
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not what():
        assert process is None or process.poll() is None, "the server has ended"
        assert time.monotonic() < end, "it has not come in time"
        time.sleep(0.05)


def ask(port, path, body=None, timeout=100):
    """Status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request("GET" if body is None else "POST", path, data)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def refused(port):
    """Whether a new connection is."""
    try:
        ask(port, "/health", timeout=5)
    except OSError:
        return True
    return False


def text(port, prompt, count, **more):
    body = {"prompt": prompt, "max_tokens": count, "temperature": 0, **more}
    status, _, body = ask(port, "/v1/completions", body)
    return status, json.loads(body)


def events(body):
    """What a stream has said."""
    lines = [line for line in body.decode().split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    return [line[6:] if line == "data: [DONE]" else json.loads(line[6:]) for line in lines]


def gauge(port, name):
    """The sum of a metric."""
    lines = ask(port, "/metrics")[2].decode().splitlines()
    values = [line.rsplit(" ", 1)[1] for line in lines if line.startswith(f"roundelay_llm_{name}")]
    return sum(map(float, values))
