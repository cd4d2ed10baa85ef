"""The backend of torch.distributed between real processes, beside Gloo where both can.

Most of a job's time is the import of torch, so a job runs many programs.
"""

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import HERE, run

pytestmark = pytest.mark.timeout(150)


def go(programs, ranks, folder, module="torch_programs", **options):
    run(programs, ranks, str(folder), module=module, timeout=140, **options)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_calls(ranks, tmp_path):
    go("reductions movements uneven messages groups", ranks, tmp_path)


def test_programs(tmp_path):
    go(
        "shapes under_way together objects tags batches any_source beside_gloo names "
        "other_devices bad_input two_threads",
        3, tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("program", ["last_words", "differing", "lost"])
def test_ends(program, tmp_path):
    go(program, 3, tmp_path)


def test_between_nodes(tmp_path):
    go("movements messages batches groups any_source", 3, tmp_path, nodes="aab")


def test_trainings_of_two_ranks(tmp_path):
    programs = (
        "ddp ddp_hook ddp_options zero fsdp tensor_parallel sequence_parallel pipeline checkpoint "
        "compiled functional loaders"
    )
    go(programs, 2, tmp_path, "torch_training")


def test_trainings_of_four_ranks(tmp_path):
    go("hsdp redistribution", 4, tmp_path, "torch_training")


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [2, 4])
def test_a_hundred_steps(ranks, tmp_path):
    go("hundred_steps", ranks, tmp_path, "torch_training")


@pytest.mark.parametrize(("name", "options"), [("ddp", ["-n", "2"]),
                                               ("elastic", ["-n", "4", "--elastic"])])  # fmt: skip
def test_examples(name, options):
    example = HERE.parent / "examples" / "torch" / f"{name}.py"
    command = [sys.executable, "-m", "roundelay", "launch", *options, str(example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout == example.with_suffix(".out").read_text()


@pytest.mark.parametrize("dying", ["0", "3"])
def test_restarts_by_torchrun(dying):
    program = str(HERE / "torch_restart.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "4",
               "--max-restarts", "1", program, dying]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=140)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ended after 1 restarts") == 4
    assert f"rank {dying} has ended while others exchange data with it" in done.stderr


OWN = (
    ("gloo", 4, "not cuda and not nccl"),
    ("gloo", 8, "group and not cuda and not nccl and not full_group and not monitored"),
    ("mpi", 4, "all_to_all and not cuda"),
)
"""How torch's own tests are run: as which backend, over how many ranks, which of them."""

OWN_PASSED = 115
"""How many of them pass; 93 of the first kind do with Gloo itself. See `torch_own.md`."""

OWN_FAILED = {
    "test_barrier_timeout_full_group",
    "test_barrier_timeout_group",
    "test_get_backend",
    "test_monitored_barrier_gloo",
    "test_monitored_barrier_gloo_rank_0_timeout",
    "test_monitored_barrier_gloo_subgroup",
    "test_sparse_all_reduce_sum",
}


def torch_own(like, ranks, which, folder):
    """Names of the tests that passed, and of those that failed."""
    place = folder / f"{like}{ranks}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider",
               "-c", os.devnull, "--rootdir", str(HERE), "--timeout", "120",
               f"--junitxml={place}", "-k", which, str(HERE / "torch_own.py")]  # fmt: skip
    told = {"LIKE": like, "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, env={**os.environ, **told}, capture_output=True, timeout=1500)
    passed, failed = set(), set()
    for case in ElementTree.parse(place).iter("testcase"):
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"}:
            failed.add(case.get("name"))
        elif "skipped" not in kinds:
            passed.add(case.get("name"))
    return passed, failed


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_torch_own_tests(tmp_path):
    passed, failed = set(), set()
    for like, ranks, which in OWN:
        well, badly = torch_own(like, ranks, which, tmp_path)
        passed |= well
        failed |= badly
    assert failed <= OWN_FAILED
    assert len(passed) >= OWN_PASSED
