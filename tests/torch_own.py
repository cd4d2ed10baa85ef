"""torch's own tests of a backend, from its wheel; `test_torch.py` runs them in a pytest of its own.

They decide by a backend's name what they try, and pass over all of one they do not know. So LIKE
names another ("gloo", "mpi"), and whatever asks for that gets Roundelay.
"""

import functools
import os
import tempfile
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import DistTestCases

import roundelay.torch  # noqa: F401  (registers the backend)

LIKE = os.environ["LIKE"]
os.environ |= {"BACKEND": LIKE, "MASTER_ADDR": "127.0.0.1"}  # the tests look here
os.environ.setdefault("TEMP_DIR", tempfile.mkdtemp())
for feature in ("ddp", "subgroup"):
    DistTestCases.backend_feature[feature].add("roundelay")
from torch.testing._internal.distributed import distributed_test as own  # noqa: E402

asked = dist.init_process_group


@functools.wraps(asked)
def init_process_group(backend=None, *arguments, **options):
    return asked("roundelay" if backend == LIKE else backend, *arguments, **options)


dist.init_process_group = init_process_group


@functools.wraps(dist.monitored_barrier)
def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch's has it for groups that are called Gloo; this is what it does for them."""
    if dist.get_rank(group) >= 0:
        seconds = timedelta(seconds=timeout) if isinstance(timeout, float) else timeout
        (group or dist.group.WORLD).monitored_barrier(seconds, wait_all_ranks)


dist.monitored_barrier = monitored_barrier


class TestOwn(own.TestDistBackend, own.DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        # torch's way would import torch anew in every process.
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


pytestmark = pytest.mark.filterwarnings("default")
