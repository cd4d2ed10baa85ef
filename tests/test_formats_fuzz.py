"""Readers on what nobody meant to write: changed, cut and mixed files are read or refused."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import READERS

SECONDS = 10
LONG = 600


def fuzz(name, seconds, seed):
    """In a process of its own, with bounded memory; it ends by itself where a reader hangs."""
    here = Path(__file__).parent
    command = [sys.executable, here / "fuzzing.py", name, str(seconds), str(seed)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [here, *sys.path]))}
    done = subprocess.run(command, env=env, capture_output=True, text=True,
                          timeout=seconds + 100, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(done.stdout) > 0


@pytest.mark.parametrize("name", READERS)
def test_what_is_changed_is_read_or_refused(name):
    fuzz(name, SECONDS, 1)


@pytest.mark.soak
@pytest.mark.timeout(LONG + 120)
@pytest.mark.parametrize("name", READERS)
def test_what_is_changed_is_read_or_refused_for_long(name):
    fuzz(name, LONG, random.SystemRandom().randrange(2**32))
