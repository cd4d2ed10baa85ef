"""`roundelay doctor`: machines made of files, and this one."""

import json
import os
import resource
import time
import tomllib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
import trees

from roundelay import cli
from roundelay.doctor import AREAS, examine
from roundelay.doctor.host import Host
from roundelay.doctor.library import EXTRAS
from roundelay.doctor.processor import instruction_sets
from roundelay.i18n import LANGUAGES, translator

TOP = Path(__file__).parents[1]


def found(root, **environ):
    """What is found on a made machine, by name."""
    host = Host(root, {"PATH": "/usr/bin", **environ}, [str(root / "site")])
    return {str(check.name): check for check in examine(host)}


def states(checks, state):
    return {name for name, check in checks.items() if check.state == state}


def test_a_healthy_dgx(tmp_path):
    checks = found(trees.make(tmp_path, trees.dgx()), SLURM_JOB_ID="77")
    if find_spec("roundelay._native"):
        assert states(checks, "wrong") == set()
    assert checks["NVIDIA GPUs"].value == "8 x NVIDIA H100 80GB HBM3"
    assert "550.90.07" in str(checks["NVIDIA GPUs"].meaning)
    assert checks["NCCL"].value == "2.21.5"
    assert checks["CUDA toolkit"].value == "12.4.1"
    assert checks["GPUDirect RDMA"].state == "present"
    assert checks["RDMA for programs"].value == "1.14.39.0"
    rdma = checks["RDMA device mlx5_7, port 1"]
    assert (rdma.value, rdma.unit) == (400, "Gb/s")
    assert "50 GB/s each way" in str(rdma.meaning)
    card = checks["network card enp170s0"]
    assert (card.value, card.unit) == (100, "Gb/s")
    assert "12.5 GB/s" in str(card.meaning)
    assert "mlx5_core" in str(card.meaning)
    assert checks["model"].value == "Intel(R) Xeon(R) Platinum 8480C"
    assert checks["cores"].value == 224
    assert checks["reductions"].value == "avx512"
    assert checks["/dev/shm"].value == checks["memory"].value // 2
    assert checks["torch"].value == "2.13.0+cu130"
    assert checks["MPI"].value == "Open MPI 4.1.7"
    assert "job 77" in str(checks["Slurm"].meaning)


def test_a_container_that_was_given_too_little(tmp_path):
    checks = found(trees.make(tmp_path, trees.container()), ROUNDELAY_ISA="neon")
    assert states(checks, "wrong") - {"native core"} == {
        "/dev/shm", "open files (ulimit -n)", "locked memory (ulimit -l)", "reductions",
        "RDMA device mlx5_3, port 1", "RDMA for programs",
    }  # fmt: skip
    assert checks["container"].value == "docker"
    assert checks["limit of processors"].value == 2.5
    assert checks["limit of memory"].value == 8 << 30
    assert checks["/dev/shm"].value == 64 << 20
    assert "4 of 224" in str(checks["cores"].meaning)
    assert checks["reading other ranks' memory"].state == "absent"
    assert checks["RDMA device mlx5_4, port 1"].state == "absent"


def test_an_arm_machine_whose_gpu_lacks_its_driver(tmp_path):
    checks = found(trees.make(tmp_path, trees.grace()))
    assert checks["model"].value == "Neoverse V2"
    assert checks["reductions"].value == "neon"
    assert "72 of 144" in str(checks["cores"].meaning)
    assert (checks["NVIDIA GPUs"].state, checks["NVIDIA GPUs"].value) == ("wrong", 1)
    assert "Older than 5.3" in str(checks["Linux kernel"].meaning)
    assert checks["network card eth0"].value == "up"
    assert checks["RDMA device"].state == "absent"


def test_gpus_of_amd(tmp_path):
    checks = found(trees.make(tmp_path, trees.mi300x()))
    assert checks["AMD GPUs"].value == "8 x gfx942"
    assert checks["ROCm"].value == "6.3.1"
    assert checks["RCCL"].value == "1.0.60301"


@pytest.mark.parametrize("change", ["missing", "folders", "binary", "endless"])
def test_nothing_raises_on_odd_machines(tmp_path, change):
    """No files at all; folders, bytes or very long lines where files should be."""
    files = {} if change == "missing" else trees.container() | trees.mi300x()
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if change == "folders":
            path.mkdir()
        else:
            path.write_bytes(b"\xff\x00:{% 9" if change == "binary" else b"9" * 5000)
    checks = found(tmp_path)
    assert {check.area for check in checks.values()} == set(AREAS)
    for lang in LANGUAGES:
        assert all(check.as_json(translator(lang))["meaning"] for check in checks.values())


def test_versions_1_of_control_groups(tmp_path):
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/job\n4:memory:/job\n",
        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000",
        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": str((1 << 63) - 4096),
    }
    checks = found(trees.make(tmp_path, files))
    assert checks["limit of processors"].value == 0.5
    assert checks["limit of memory"].state == "absent"


def test_a_slow_clock_is_wrong(tmp_path):
    path = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    assert found(trees.make(tmp_path, {path: "hpet"}))["clock source"].state == "wrong"


def test_gpus_of_a_kernel_without_proc_are_asked_of_nvidia_smi(tmp_path):
    text = "#!/bin/sh\nprintf 'NVIDIA H200, 570.1\\nNVIDIA H200, 570.1\\n'\n"
    files = {"dev/nvidia0": "", "dev/nvidia1": "", "usr/bin/nvidia-smi": text}
    checks = found(trees.make(tmp_path, files), PATH="/usr/bin:/bin")
    assert checks["NVIDIA GPUs"].value == "2 x NVIDIA H200"


def test_a_driver_without_devices_means_a_container_without_gpus(tmp_path):
    files = {k: v for k, v in trees.dgx().items() if not k.startswith("dev/nvidia")}
    checks = found(trees.make(tmp_path, files))
    assert checks["NVIDIA GPUs"].state == "absent"
    assert "--gpus all" in str(checks["NVIDIA GPUs"].meaning)
    assert "GPUDirect RDMA" not in checks


def test_programs_that_hang_are_left_and_ended(tmp_path):
    pids = tmp_path / "pids"
    hang = f"#!/bin/sh\n/bin/sleep 60 &\necho $$ $! >> {pids}\nwait\n"
    files = {f"usr/bin/{name}": hang for name in ("mpiexec", "kubectl", "nvidia-smi", "nvcc")}
    root = trees.make(tmp_path, files | {"dev/nvidia0": ""})
    began = time.monotonic()
    checks = found(root)
    assert time.monotonic() - began < 10  # not 60
    assert (checks["MPI"].state, checks["MPI"].value) == ("present", "mpiexec")
    started = pids.read_text().split()
    assert len(started) == 8
    deadline = time.monotonic() + 10
    while any(map(_runs, started)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_runs, started))


def _runs(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_extras_by_what_is_installed(tmp_path):
    requires = ["click>=8.1", 'rich>=13; extra == "progress"', 'pyyaml>=6; extra == "yaml"',
                'plotly>=6; extra == "plot"', 'cairosvg>=2.7; extra == "plot"',
                'pytest>=8.2; extra == "test"']  # fmt: skip
    files = {"site/roundelay-0.1.0.dist-info/METADATA": "Name: roundelay\nVersion: 0.1.0\n"
             + "".join(f"Requires-Dist: {r}\n" for r in requires)}  # fmt: skip
    for name, version in (("rich", "12.6"), ("PyYAML", "6.0.2"), ("plotly", "6.10")):
        text = f"Name: {name}\nVersion: {version}\n"
        files[f"site/{name}-{version}.dist-info/METADATA"] = text
    checks = found(trees.make(tmp_path, files))
    assert checks["extra progress"].state == "wrong"
    assert checks["extra yaml"].value == "pyyaml 6.0.2"
    assert checks["extra plot"].state == "absent"
    assert "cairosvg" in str(checks["extra plot"].meaning)
    assert "extra test" not in checks


def test_every_extra_for_users_is_explained():
    known = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    extras = set(known["optional-dependencies"]) - {"test", "page-test", "docs", "dev", "all"}
    assert extras <= set(EXTRAS)


def test_this_machine_as_the_library_sees_it():
    checks = {str(check.name): check for check in examine()}
    assert checks["cores"].value == len(os.sched_getaffinity(0))
    assert checks["memory"].value <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert checks["open files (ulimit -n)"].value == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert checks["shared memory (memfd)"].state == "present"


def test_instruction_sets_are_those_that_the_core_finds():
    core = pytest.importorskip("roundelay._native")
    host = Host()
    flags = host.field("/proc/cpuinfo", "flags") or host.field("/proc/cpuinfo", "Features")
    assert instruction_sets(set(flags.split())) == core.isas()


@pytest.mark.parametrize(
    ("flags", "sets"),
    [("sse2 avx2", ("sse2",)), ("sse2 avx2 f16c", ("sse2", "avx2")), ("", ("generic",)),
     ("sse2 avx2 f16c avx512f avx512bw avx512dq", ("sse2", "avx2")), ("fp asimd", ("neon",))],
)  # fmt: skip
def test_instruction_sets_by_flags(flags, sets):
    assert instruction_sets(set(flags.split())) == sets


def test_the_command_prints_every_check_in_both_languages(capsys):
    status = cli.run(["doctor", "--json"])
    value = json.loads(capsys.readouterr().out)
    assert status == int(any(check["state"] == "wrong" for check in value["checks"]))
    assert all(set(check) == {"area", "name", "state", "value", "unit", "meaning"}
               for check in value["checks"])  # fmt: skip
    for lang in LANGUAGES:
        assert cli.run(["doctor", "--lang", lang]) == status
        out = capsys.readouterr().out
        for area in AREAS.values():
            assert area.tell(translator(lang)) in out
    assert "处理器" in out
