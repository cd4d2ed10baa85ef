"""Encryption of what ranks tell one another: nothing to be read on the way, and nothing changed."""

import socket
from importlib.util import find_spec

import pytest
from proxy import Fault, Proxy, flip
from ranks import environment, finish, free_address, start

from roundelay.errors import RoundelayError
from roundelay.run.environment import job_from_environment

ON = {"ROUNDELAY_ENCRYPT": "1"}
NODES = ("node-of-zero", "node-of-one", "node-of-two")
LENGTH = 2  # an offset in the length of the first frame
PLAIN = [b"127.0.0.1", b"members", b"nonce", socket.gethostname().encode(), *map(str.encode, NODES)]
installed = pytest.mark.skipif(
    find_spec("cryptography") is None, reason="the extra `encryption` is not installed"
)


def job(proxy, environ, calls=3):
    return finish(
        start("sums", 3, 1000, calls, module="wire_programs", nodes=NODES, environ=environ,
              proxy=proxy)
    )  # fmt: skip


@installed
@pytest.mark.parametrize("on", [True, False])
def test_what_can_be_read_on_the_way(on):
    with Proxy(rewrite=False) as proxy:
        codes, said = job(proxy, ON if on else {})
        recorded = bytes(proxy.recorded)
    assert (codes, said) == ([0] * 3, ["right\n"] * 3)
    found = [word for word in PLAIN if word in recorded]
    assert not found if on else len(found) >= 5


def again(data, _place):
    """Sends it twice."""
    return data + data


@installed
@pytest.mark.parametrize("act", [flip, again])
@pytest.mark.parametrize("source", [1, 2])
@pytest.mark.parametrize(
    ("back", "at"), [(False, 7), (False, 300), (True, LENGTH), (True, 9), (True, 600)]
)
def test_a_frame_that_is_changed_or_comes_twice(act, source, back, at):
    """The arrival, the table, and exchanges after it.

    A length that is changed shows as a rank that does not come.
    """
    fault = Fault(source, 0, -1, back, at, act)
    with Proxy(fault, rewrite=False) as proxy:
        codes, said = job(proxy, ON)
    assert codes == [0] * 3, said
    assert fault.when
    assert all(last(text).startswith("RoundelayError") for text in said), said
    reason = "within 20 s" if (act, at) == (flip, LENGTH) else "changed on the way, or came twice"
    assert any(reason in last(text) for text in said), said


def last(text):
    """The error; there may be warnings before it."""
    return text.splitlines()[-1]


@installed
@pytest.mark.parametrize("odd", [0, 2])
def test_ranks_that_disagree(odd):
    environ = [ON if (rank == odd) != (odd == 0) else {} for rank in range(3)]
    codes, said = job(None, environ)
    assert codes == [0] * 3, said
    for text in said:
        assert last(text).startswith("RoundelayError")
        assert "ROUNDELAY_ENCRYPT is" in last(text), said


@installed
@pytest.mark.parametrize("both", [{"ROUNDELAY_CHECKSUM": "1"}, {}])
def test_every_algorithm_with_encryption(both):
    codes, said = finish(
        start("every_algorithm", 3, (1, 1000), nodes=("a", "b", "b"), environ=ON | both)
    )
    assert codes == [0] * 3, said


def test_a_secret_that_can_be_guessed_is_refused():
    env = environment(1, 2, free_address(), "x") | ON
    assert job_from_environment(env).ranks == 2
    del env["ROUNDELAY_SECRET"]
    with pytest.raises(RoundelayError, match="ROUNDELAY_SECRET is not set; expected a secret"):
        job_from_environment(env)


@pytest.mark.skipif(find_spec("cryptography") is not None, reason="the package is installed")
def test_the_package_that_is_missing_is_named():
    codes, said = job(None, ON)
    assert codes == [0] * 3
    assert all("pip install 'roundelay[encryption]'" in text for text in said), said
