"""The backend of torch.distributed between real processes, beside Gloo where both can.

Most of a job's time is the import of torch, so a job runs many programs.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import run

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


def test_example():
    example = Path(__file__).parents[1] / "examples" / "torch" / "ddp.py"
    command = [sys.executable, "-m", "roundelay", "launch", "-n", "2", str(example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout == example.with_suffix(".out").read_text()
