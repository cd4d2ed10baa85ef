"""Ranks as threads of one process, for the thread sanitizer: native/engine/threads_test.cpp.

Between processes it would see only one side of each exchange.
"""

import shutil

import pytest
from sanitized import build, run, why_not


def start(program, *arguments):
    """Run it; without random addresses, where the sanitizer cannot cope with those."""
    try:
        return run([program, *arguments])
    except AssertionError as error:
        if "unexpected memory mapping" not in str(error) or not shutil.which("setarch"):
            raise
        return run(["setarch", "-R", program, *arguments])


@pytest.mark.timeout(600)
@pytest.mark.skipif(why_not("thread") is not None, reason=str(why_not("thread")))
def test_threads_race_for_nothing(tmp_path):
    program = build(tmp_path, "thread")
    assert start(program, 150).endswith("all well\n")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(why_not("address") is not None, reason=str(why_not("address")))
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined", ""])
def test_many_operations(sanitizers, tmp_path):
    program = build(tmp_path, sanitizers)
    for seed in range(2, 12):
        assert start(program, 1000, seed).endswith("all well\n")
