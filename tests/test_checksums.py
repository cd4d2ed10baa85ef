"""Check sums of what goes between nodes: a bit that is flipped on the way is noticed."""

import numpy as np
import pytest
from proxy import DATA_HEADER, Fault, Proxy, flip
from ranks import finish, run, start

from roundelay import _native

ON = {"ROUNDELAY_CHECKSUM": "1"}
SIZE = 500_000  # of int64: 4 MB
HALVES = ("a", "a", "b", "b")


def crc32c(data):
    """Bit by bit, as RFC 3720 defines it."""
    sum = 0xFFFFFFFF
    for byte in data:
        sum ^= byte
        for _ in range(8):
            sum = sum >> 1 ^ (0x82F63B78 if sum & 1 else 0)
    return sum ^ 0xFFFFFFFF


# The last three are of RFC 3720, B.4.
@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43),
     (bytes(range(32)), 0x46DD794E)],
)  # fmt: skip
def test_known_sums(data, expected):
    assert crc32c(data) == expected
    assert _native.checksum(data) == _native.checksum(data, portable=True) == expected


def test_sums_at_every_length_and_alignment():
    data = np.random.default_rng(1).integers(0, 256, 20_000, np.uint8)
    for begin, size in [(i, i * j) for i in range(9) for j in range(20)] + [
        (1, 3071), (0, 3072), (3, 3073), (5, 6149), (7, 19_993)]:  # fmt: skip
        part = data[begin : begin + size]
        expected = crc32c(part.tobytes())
        assert _native.checksum(part) == _native.checksum(part, portable=True) == expected


@pytest.mark.parametrize("size", [1, 1000, SIZE])
def test_a_job_with_sums(size):
    run("sums", 4, size, 5, module="wire_programs", nodes=HALVES, environ=ON)


def test_every_algorithm_with_sums():
    run("every_algorithm", 3, (1, 1000), nodes=("a", "b", "b"), environ=ON)


MESSAGES = [(1, False, 1_000_003), (2, True, 500_000), (1, True, DATA_HEADER + 5)]
HEADERS = [(1, False, place) for place in (1, 5, 12, 20, 40, 49, 54)] + [(2, True, 30)]
WORDS = [(0, False, place) for place in (2, 4, 17, 22, 30, 58)]


def meddled(connection, ranks=2, nodes=("a", "b"), source=0, target=1, calls=1_000_000):
    """What every rank meets when a bit is flipped: source and target give the connection."""
    index, back, at = connection
    fault = Fault(source, target, index, back, at, flip)
    with Proxy(fault) as proxy:
        codes, said = finish(
            start("sums", ranks, SIZE if index else 1000, calls, 0.5, nodes=nodes,
                  module="wire_programs", environ=ON, proxy=proxy)
        )  # fmt: skip
    assert fault.when, said
    assert codes == [0] * ranks, said
    return [text.strip().split(" ", 3) for text in said], fault.when


@pytest.mark.parametrize("connection", MESSAGES + HEADERS + WORDS)
def test_a_flipped_bit_is_noticed(connection):
    found, when = meddled(connection)
    source, target = (1, 0) if connection[1] else (0, 1)
    for kind, blamed, moment, text in found:
        assert (kind, int(blamed)) == ("BytesChanged", source), text
        assert f"changed on the way from rank {source} to rank {target}" in text
        assert float(moment) - when < 1 + (0.5 if connection[0] == 0 else 0)


def test_all_ranks_hear_of_it():
    found, _ = meddled((1, False, 700_001), 4, HALVES, 1, 3)
    assert {(kind, text) for kind, _, _, text in found} == {(found[0][0], found[0][3])}
    assert "from rank 1 to rank 3" in found[0][3]


def test_nothing_is_noticed_where_nothing_is_wrong():
    with Proxy() as proxy:
        codes, said = finish(
            start("sums", 4, SIZE, 5, 0.3, nodes=HALVES, module="wire_programs", environ=ON,
                  proxy=proxy)
        )  # fmt: skip
    assert (codes, said) == ([0] * 4, ["right\n"] * 4)


def test_ranks_that_disagree():
    codes, said = finish(
        start("sums", 3, 9, 1, module="wire_programs", environ=[ON, {}, ON], nodes="abc")
    )
    assert codes == [0] * 3
    for text in said:
        assert "ROUNDELAY_CHECKSUM is 1 for rank 0 and 0 for rank 1; expected the same" in text


@pytest.mark.parametrize("value", ["2", "yes"])
def test_what_is_no_switch(value):
    codes, said = finish(
        start("sums", 2, 9, 1, module="wire_programs", environ={"ROUNDELAY_CHECKSUM": value})
    )
    assert codes == [0, 0]
    assert all(f"ROUNDELAY_CHECKSUM is '{value}'; expected 1 or 0" in text for text in said)
