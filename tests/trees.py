"""Machines made of files, for what looks at /proc, /sys and the like."""

from pathlib import Path

H100 = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 220\n"
X86 = "sse2 sse4_2 avx avx2 f16c avx512f avx512bw avx512dq avx512vl avx512_bf16 amx_bf16"
LIMITS = "Limit  Soft Limit  Hard Limit  Units\nMax open files  {files}  1048576  files\n" \
    "Max locked memory  {locked}  unlimited  bytes\n"  # fmt: skip


def make(root: Path, files: dict[str, str]) -> Path:
    """Write files under a root; "-> x" is a link, and what lies in a bin folder can be run."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text[3:])
            continue
        path.write_text(text)
        if path.parent.name == "bin":
            path.chmod(0o755)
    return root


def port(device: str, state: str = "4: ACTIVE", physical: str = "5: LinkUp") -> dict[str, str]:
    folder = f"sys/class/infiniband/{device}/ports/1"
    return {
        f"{folder}/state": state,
        f"{folder}/phys_state": physical,
        f"{folder}/rate": "400 Gb/sec (4X NDR)",
        f"{folder}/link_layer": "InfiniBand",
    }


def card(name: str, speed: str, driver: str, mtu: int = 9000) -> dict[str, str]:
    return {
        f"sys/class/net/{name}/speed": speed,
        f"sys/class/net/{name}/mtu": str(mtu),
        f"sys/class/net/{name}/operstate": "up",
        f"sys/class/net/{name}/device/driver": f"-> ../../../../bus/drivers/{driver}",
        f"sys/bus/drivers/{driver}/bind": "",
    }


def dgx() -> dict[str, str]:
    """A DGX H100 on Slurm, all as it should be."""
    files = {
        "proc/sys/kernel/osrelease": "5.15.0-1042-nvidia",
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n"
        f"flags\t\t: {X86}\n",
        "proc/self/status": "CapEff:\t0000000000000000\nCpus_allowed_list:\t0-223\n",
        "proc/self/limits": LIMITS.format(files=1048576, locked="unlimited"),
        "proc/self/cgroup": "0::/user.slice\n",
        "proc/self/mounts": "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n",
        "proc/meminfo": "MemTotal:       2113418540 kB\nMemAvailable:   2080000000 kB\n",
        "dev/shm/.keep": "",
        "sys/devices/system/cpu/online": "0-223",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
        "550.90.07  Release Build\nGCC version:  gcc 11.4.0\n",
        "sys/module/nvidia_peermem/refcnt": "0",
        "dev/infiniband/uverbs0": "",
        "usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0": "",
        "usr/lib/x86_64-linux-gnu/libibverbs.so.1": "-> libibverbs.so.1.14.39.0",
        "usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5": "",
        "usr/lib/x86_64-linux-gnu/libnccl.so.2": "-> libnccl.so.2.21.5",
        "usr/local/cuda/version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}',
        "etc/slurm/slurm.conf": "ClusterName=c",
        "usr/bin/srun": "#!/bin/sh\nexit 1\n",
        "usr/bin/mpirun": "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.7a1'\n",
        "site/torch-2.13.0+cu130.dist-info/METADATA": "Name: torch\nVersion: 2.13.0+cu130\n",
        **card("enp170s0", "100000", "mlx5_core"),
    }
    for i in range(8):
        files |= port(f"mlx5_{i}")
        files[f"proc/driver/nvidia/gpus/0000:{i:02x}:00.0/information"] = H100
        files[f"dev/nvidia{i}"] = ""
    return files


def container() -> dict[str, str]:
    """A container of a machine with GPUs and RDMA, given too little of everything."""
    files = dgx() | {
        ".dockerenv": "",
        "proc/self/limits": LIMITS.format(files=128, locked=65536),
        "proc/self/cgroup": "0::/\n",
        "proc/self/mounts": "shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0\n",
        "proc/self/status": "CapEff:\t00000000a80425fb\nCpus_allowed_list:\t0-3\n",
        "sys/fs/cgroup/cpu.max": "250000 100000",
        "sys/fs/cgroup/memory.max": "8589934592",
        "proc/sys/kernel/yama/ptrace_scope": "1",
        **port("mlx5_3", "1: DOWN", "2: Polling"),
        **port("mlx5_4", "1: DOWN", "3: Disabled"),
    }
    del files["dev/infiniband/uverbs0"]
    return files


def grace() -> dict[str, str]:
    """An Arm machine: no model name, no flags, and a GPU without its driver."""
    return {
        "proc/sys/kernel/osrelease": "5.1.0",
        "proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd asimdhp sve sve2 bf16 crc32\n"
        "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n",
        "proc/self/status": "Cpus_allowed_list:\t0-71\n",
        "sys/devices/system/cpu/online": "0-143",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "arch_sys_counter",
        "sys/bus/pci/devices/0009:01:00.0/vendor": "0x10de",
        "sys/bus/pci/devices/0009:01:00.0/class": "0x030200",
        "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de",
        "sys/bus/pci/devices/0000:01:00.0/class": "0x068000",
        **card("eth0", "-1", "virtio_net", 1500),
    }


def mi300x() -> dict[str, str]:
    files = {
        "dev/kfd": "",
        "sys/module/amdgpu/version": "6.10.5",
        "opt/rocm/.info/version": "6.3.1",
        "opt/rocm/lib/librccl.so.1.0.60301": "",
    }
    for i in range(10):
        files[f"sys/class/kfd/kfd/topology/nodes/{i}/gpu_id"] = str(i * 1000 if i > 1 else 0)
        files[f"sys/class/kfd/kfd/topology/nodes/{i}/name"] = "gfx942"
    return files
