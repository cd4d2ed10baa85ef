"""What comes over connections of start-up, made up from what is right."""

import contextlib
import json
import socket
import struct
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roundelay.errors import RoundelayError
from roundelay.run.links import Links
from roundelay.run.loop import Loop
from roundelay.run.members import (
    Arrival,
    Member,
    Table,
    decode_arrival,
    decode_table,
    encode_arrival,
    encode_failure,
    encode_table,
)
from roundelay.run.wire import (
    STRANGER_LIMIT,
    Channel,
    DroppedError,
    Hello,
    accept_handshake,
    connect_handshake,
)

KEY = b"k" * 32
LENGTH = struct.Struct(">I")
SOON = 5.0
HELLO = Hello(1, 2, "roundelay:test", 0, 3)
MEMBERS = tuple(Member(r, f"node{r}", 100 + r, "127.0.0.1", 5000 + r) for r in range(3))


@st.composite
def changed(draw, data):
    """The bytes, changed in up to three places."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        more = draw(st.one_of(st.binary(max_size=8), st.just(data[:at]), st.just(data[at:])))
        skip = draw(st.sampled_from([0, 1, len(more), len(data)]))
        data = data[:at] + more + data[at + skip :]
    return data


@contextlib.contextmanager
def pair():
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def framed(data):
    return LENGTH.pack(len(data)) + data


def run(*works, seconds=SOON):
    """What each coroutine returns, or the DroppedError that ends it; others come out."""
    loop, found = Loop(), {}

    async def one(number, work):
        try:
            found[number] = await work
        except DroppedError as error:
            found[number] = error

    for number, work in enumerate(works):
        loop.start(one(number, work))
    try:
        assert loop.run(lambda: len(found) == len(works), time.monotonic() + seconds), found
    finally:
        loop.close()
    return [found[number] for number in range(len(works))]


# Frames.


@given(st.lists(st.binary(max_size=300), max_size=4).flatmap(
    lambda frames: changed(b"".join(framed(f) for f in frames))))  # fmt: skip
@example(framed(b"x" * STRANGER_LIMIT))
@example(LENGTH.pack(STRANGER_LIMIT + 1))
@example(b"\xff" * 9)
def test_frames(data):
    """The frames that are whole, then an end: never more memory than a frame may take."""
    expected, rest = [], data
    while len(rest) >= 4 and len(rest) >= 4 + (size := LENGTH.unpack_from(rest)[0]):
        if size > STRANGER_LIMIT:
            break
        expected.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    got = []
    with pair() as (near, far):
        far.sendall(data)
        far.shutdown(socket.SHUT_WR)
        channel = Channel(near)

        async def take():
            while True:
                got.append(await channel.receive())
                assert len(channel._incoming) <= STRANGER_LIMIT + 4

        assert isinstance(run(take())[0], DroppedError)
        assert len(channel._incoming) <= STRANGER_LIMIT + 4
    assert got == expected


# The handshake: one of its three frames is changed on the way.


async def pass_on(source, to, change):
    """One frame, changed; whether nothing has been."""
    frame = framed(await source.receive())
    other = change(frame)
    to.sock.sendall(other)
    return other.startswith(frame)


@given(st.integers(0, 2), st.data())
def test_a_handshake_that_is_changed(number, data):
    with pair() as (a_near, a_far), pair() as (c_near, c_far):
        middle_a, middle_c = Channel(a_far), Channel(c_far)
        same = []

        async def middle():
            ways = [(middle_a, middle_c), (middle_c, middle_a), (middle_a, middle_c)]
            try:
                for k, (source, to) in enumerate(ways[: number + 1]):
                    change = (lambda f: data.draw(changed(f))) if k == number else (lambda f: f)
                    same.append(await pass_on(source, to, change))
            finally:
                for sock in (a_far, c_far):
                    sock.shutdown(socket.SHUT_WR)

        accepted, connected, _ = run(
            accept_handshake(Channel(a_near), KEY),
            connect_handshake(Channel(c_near), KEY, HELLO),
            middle(),
        )
    if number == 1 and same[-1]:
        assert accepted == HELLO
    elif number < 2:
        assert isinstance(accepted, DroppedError)
    if number == 2 and same[-1]:
        assert connected is None
    else:
        assert isinstance(connected, DroppedError)


def test_a_handshake_with_another_key():
    with pair() as (near, far):
        accepted, connected = run(
            accept_handshake(Channel(near), KEY),
            closing(connect_handshake(Channel(far), b"other" * 6, HELLO), far),
        )
    assert isinstance(accepted, DroppedError)
    assert isinstance(connected, DroppedError)


async def closing(work, sock):
    try:
        return await work
    finally:
        sock.shutdown(socket.SHUT_WR)


def test_a_recorded_handshake_is_of_no_use():
    """What a connector has sent once is not accepted again."""
    recorded = []
    for turn in range(2):
        with pair() as (a_near, a_far), pair() as (c_near, c_far):
            middle_a, middle_c = Channel(a_far), Channel(c_far)

            async def middle(a=middle_a, c=middle_c, turn=turn):
                c.post(await a.receive())
                said = await c.receive()
                recorded.append(said)
                a.post(recorded[0])
                c.post(await a.receive())

            accepted, *_ = run(
                closing(accept_handshake(Channel(a_near), KEY), a_near),
                closing(connect_handshake(Channel(c_near), KEY, HELLO), c_near),
                closing(middle(), c_far),
            )
        assert (accepted == HELLO) == (turn == 0)
    assert isinstance(accepted, DroppedError)


# Arrivals and tables.

ARRIVAL = encode_arrival(Arrival(MEMBERS[1], 3, 2.5))
TABLE = encode_table(Table(b"n" * 16, MEMBERS))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(
        st.sampled_from(["rank", "node", "pid", "host", "port", "member", "ranks", "wait", "nonce",
                         "members"]), inner, max_size=6)), max_leaves=12)  # fmt: skip


def with_value(data, path, value):
    """JSON with one of its values replaced."""
    whole = json.loads(data)
    inner = whole
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return json.dumps(whole).encode()


ARRIVAL_PATHS = [["member"], ["ranks"], ["wait"], *(["member", n] for n in
                 ("rank", "node", "pid", "host", "port"))]  # fmt: skip
TABLE_PATHS = [["nonce"], ["members"], ["members", 1], *(["members", 2, n] for n in
               ("rank", "node", "pid", "host", "port"))]  # fmt: skip


def read_arrival(frame):
    with contextlib.suppress(DroppedError):
        arrival = decode_arrival(frame)
        assert arrival.wait >= 0
        assert 0 <= arrival.member.port <= 65535


def read_table(frame):
    with contextlib.suppress(DroppedError, RoundelayError):
        members = decode_table(frame, 3).members
        assert [m.rank for m in members] == [0, 1, 2]


@given(changed(ARRIVAL))
@example(b"[" * 100_000)
@example(b"9" * 100_000)
def test_arrivals(frame):
    read_arrival(frame)


@given(st.sampled_from(ARRIVAL_PATHS), VALUES)
@example(["ranks"], float("inf"))
@example(["wait"], float("nan"))
@example(["member", "port"], 70000)
def test_arrivals_with_other_values(path, value):
    read_arrival(with_value(ARRIVAL, path, value))


@given(changed(TABLE))
@example(b"T" + b'{"a":' * 100_000)
def test_tables(frame):
    read_table(frame)


@given(st.sampled_from(TABLE_PATHS), VALUES)
def test_tables_with_other_values(path, value):
    read_table(TABLE[:1] + with_value(TABLE[1:], path, value))


def test_what_is_right_is_read():
    assert decode_arrival(ARRIVAL) == Arrival(MEMBERS[1], 3, 2.5)
    assert decode_table(TABLE, 3) == Table(b"n" * 16, MEMBERS)
    with pytest.raises(RoundelayError, match="rank 2 is missing"):
        decode_table(encode_failure("rank 2 is missing"), 3)


# Links after start-up.

BRINGS = struct.pack(">cId", b"B", 1, 9.0)
ANSWER = struct.pack(">cI", b"A", 1) + b"".join(framed(d) for d in (b"zero", b"one", b"two"))
LOST = struct.pack(">cI", b"L", 2) + b"it has gone"
FAILED = struct.pack(">cI", b"F", 1) + b"no more"


def exchange(rank, said, seconds=0.05, ends=True):
    """What an exchange gives when the peer says this, or its error."""
    with pair() as (near, far):
        far.sendall(said)
        loop = Loop()
        peer = 0 if rank else 1
        links = Links(loop, rank, MEMBERS if rank else MEMBERS[:2], {peer: Channel(near)})
        try:
            if ends:
                far.shutdown(socket.SHUT_WR)
            return links.exchange(b"own", seconds)
        except RoundelayError as error:
            return str(error)
        finally:
            loop.close()


def frames(*kinds):
    return st.lists(st.sampled_from(kinds), min_size=1, max_size=3).map(
        lambda found: b"".join(framed(f) for f in found)
    )


@given(frames(BRINGS + b"data", BRINGS, LOST, FAILED, ANSWER).flatmap(changed))
@example(framed(struct.pack(">cId", b"B", 1, float("nan"))))
@example(framed(BRINGS) * 1000)
def test_links_of_rank_0(said):
    found = exchange(0, said)
    assert isinstance(found, str) or (len(found) == 2 and found[0] == b"own")


@given(frames(ANSWER, ANSWER[:-1], FAILED, LOST, BRINGS).flatmap(changed))
@example(framed(ANSWER[:9]))
@example(framed(ANSWER + b"more"))
def test_links_of_others(said):
    found = exchange(1, said)
    assert isinstance(found, str) or len(found) == 3


def test_links_that_are_right():
    assert exchange(0, framed(BRINGS + b"theirs"), ends=False) == [b"own", b"theirs"]
    assert exchange(1, framed(ANSWER)) == [b"zero", b"one", b"two"]
    assert exchange(1, framed(FAILED)) == "no more"
    text = exchange(1, framed(LOST), ends=False)
    assert "rank 2 (process 102 at 127.0.0.1) has gone: it has gone" in text
