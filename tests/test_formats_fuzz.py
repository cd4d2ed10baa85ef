"""Readers on what nobody meant to write: changed, cut and mixed files are read or refused."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fuzzing import READERS, TABLE, seeds

from roundelay import RoundelayError, formats
from roundelay.formats.chrome import read_chrome
from roundelay.formats.hostlist import hosts
from roundelay.formats.nccl_log import read_nccl_log
from roundelay.formats.nccl_tests import read_nccl_tests
from roundelay.formats.slurm import read_topology_conf
from roundelay.formats.topograph import read_topograph

SECONDS = 10
LONG = 600


def fuzz(name, seconds, seed):
    """In a process of its own, with bounded memory; it ends by itself where a reader hangs.

    `make fuzz READER=nccl_log` does that for one reader alone.
    """
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


def test_no_reader_is_left_out():
    text = (Path(__file__).parent / "fuzzing.py").read_text("utf-8")
    for file in Path(formats.__file__).parent.rglob("*.py"):
        for name in re.findall(r"^def (read_\w+)\(data", file.read_text("utf-8"), re.M):
            assert name in text, f"{name} of {file.name} is not in fuzzing.py"


def test_one_reader_is_tried_for_as_long_as_it_is_told():
    begun = time.monotonic()
    fuzz("tuner", 3, 1)
    assert time.monotonic() - begun >= 3


def test_what_it_has_found():
    """Inputs that once crashed a reader, hung it or took all memory."""
    assert read_nccl_log(b"h:1:2 [0] NCCL INFO Channel via NET/IB/0\n").lines
    (table,) = read_nccl_tests(TABLE.replace(b": 75.5", b": 75.5.5")).tables
    assert table.average is None
    empty = b"switches:\n  a: {}\nblocks:\n- {switch: a, annotations: {x/domain: d}}\n"
    assert read_topograph(empty).block_sizes == ()
    conf = "SwitchName=a Nodes=n\nBlockSizes=\u00b2,4\n"
    assert read_topology_conf(conf.encode()).block_sizes == (4,)
    endless = seeds()["chrome.json"].replace(b'"dur":', b'"dur":1e308,"x":', 3)
    with pytest.raises(RoundelayError, match="no trace file of Roundelay"):
        read_chrome(endless)
    for text in (f"{'x' * 300}[1-200000]", ",".join(["n[1-200000]"] * 20)):
        with pytest.raises(RoundelayError, match=r"more than|too long"):
            hosts(text)
