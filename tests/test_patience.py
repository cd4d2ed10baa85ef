"""A server whose clients ask nothing, or take nothing, still answers the others."""

import http.client
import json
import resource
import socket
import time
from contextlib import closing, contextmanager, suppress
from threading import Thread

import pytest
import uvicorn

from roundelay import patience

MOST = 8
LONG = 1 << 23
"""Bytes of a long answer: more than the system keeps for a client that takes none."""


async def app(scope, receive, send):
    """Says how long the body was; or, at /long, more than fits anywhere."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message["body"]), message["more_body"]
    await send({"type": "http.response.start", "status": 200})
    body = b"x" * LONG if scope["path"] == "/long" else str(size).encode()
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port(monkeypatch):
    monkeypatch.setattr(patience, "HEAD", 1)
    monkeypatch.setattr(patience, "BODY", 1.5)
    monkeypatch.setattr(patience, "TAKE", 1)
    protocol = patience.impatient({}, MOST, lambda text, status: {"said": text, "as": status})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="error", lifespan="off", http=protocol)
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def lines(port, count, data=b""):
    """Connections on which so much is said."""
    found = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(count)]
    try:
        for line in found:
            line.sendall(data)
        yield found
    finally:
        for line in found:
            line.close()


def rest(line):
    """What comes until the end."""
    found = b""
    with suppress(ConnectionResetError):
        while part := line.recv(1 << 16):
            found += part
    return found


def answers(port):
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().status == 200


POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "what"),
    [(b"", "head of a request in 1 s"), (b"POST / HT", "head of a request in 1 s"),
     (POST, "body of the request in 1.5 s"), (POST + b"123", "body of the request in 1.5 s"),
     (POST[:-2] + b"Expect: 100-continue\r\n\r\n", "body of the request in 1.5 s"),
     (POST + b"0123456789" + POST, "body of the request in 1.5 s")],
)  # fmt: skip
def test_who_asks_nothing_whole_is_told(port, data, what):
    """Also where it is the body of a second request that does not come."""
    with lines(port, 1, data) as (line,):
        told = rest(line)
    *_, head, body = told.rsplit(b"\r\n\r\n", 2)
    assert b"HTTP/1.1 408" in head
    assert json.loads(body) == {"said": f"no whole {what}; expected one", "as": 408}


def test_bytes_now_and_then_win_no_time(port):
    with lines(port, 1, POST) as (line,):
        begun = time.monotonic()
        with suppress(OSError):
            for _ in range(9):
                time.sleep(0.3)
                line.sendall(b"x")
        assert b"408" in rest(line)
        assert time.monotonic() - begun < 5


def test_there_is_always_a_place_for_who_asks_at_once(port):
    with lines(port, 3 * MOST, POST) as held:
        assert answers(port)
        first = rest(held[0])
    assert first.startswith(b"HTTP/1.1 503")
    assert b"8 connections are open" in first


@pytest.mark.parametrize("close", [b"", b"Connection: close\r\n"])
def test_who_takes_nothing_is_cut_off(port, close):
    ask = b"GET /long HTTP/1.1\r\nHost: a\r\n" + close + b"\r\n"
    with lines(port, MOST, ask) as held:
        time.sleep(3)
        assert answers(port)
        assert all(len(rest(line)) < LONG for line in held)


def test_who_takes_it_slowly_gets_all(port):
    with lines(port, 1, b"GET /long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") as (line,):
        got = 0
        while part := line.recv(1 << 18):
            got += len(part)
            time.sleep(0.05)
    assert got > LONG


def test_no_more_connections_than_half_of_the_files():
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert patience.connections(10) == 10
    assert patience.connections(10**9) == files // 2
