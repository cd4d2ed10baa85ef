"""GPUs, their drivers, and the libraries that drive them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Final

from ..i18n import Message, message
from .check import Check
from .host import Host

DRIVER: Final = "/proc/driver/nvidia"
NODES: Final = "/sys/class/kfd/kfd/topology/nodes"
NVIDIA, AMD = "0x10de", "0x1002"
"""Vendors' numbers on PCI."""
DISPLAYS, ACCELERATORS = "0x03", "0x12"
"""How the PCI classes begin that GPUs have."""

_Check = partial(Check, "gpu")


def probe(host: Host) -> Iterator[Check]:
    """GPUs of NVIDIA and AMD, then CUDA and NCCL, ROCm and RCCL."""
    nvidia, amd = _nvidia(host), _amd(host)
    yield nvidia
    if nvidia.state == "present" and host.find("/sys/class/infiniband"):
        yield _gpudirect(host)
    yield _cuda(host)
    yield _nccl(host, nvidia.state == "present")
    yield amd
    if amd.state != "absent":
        yield _rocm(host)
        yield _rccl(host)


def _on_pci(host: Host, vendor: str) -> int:
    folder = "/sys/bus/pci/devices"
    return sum(
        host.text(f"{folder}/{device}/vendor") == vendor
        and host.text(f"{folder}/{device}/class").startswith((DISPLAYS, ACCELERATORS))
        for device in host.find(folder)
    )


def _listed(names: list[str]) -> str:
    return ", ".join(f"{k} x {name}" for name, k in Counter(names).items())


def _nvidia(host: Host) -> Check:
    name = message("NVIDIA GPUs")
    models, version = _by_kernel(host)
    devices = host.find("/dev", "nvidia[0-9]*")
    if not models and devices:
        models, version = _by_program(host)
    if devices:
        text = message("Driver {version}. Roundelay moves their data with torch; NCCL reaches them "
                       "itself.", version=version or "-")  # fmt: skip
        return _Check(name, "present", text, _listed(models) or f"{len(devices)}")
    if version:
        text = message(
            "Driver {version} is loaded, and there is no /dev/nvidia0: no GPU is given to this "
            "container (--gpus all), or none is left.", version=version,
        )  # fmt: skip
        return _Check(name, "absent", text, _listed(models) or None)
    if found := _on_pci(host, NVIDIA):
        text = message("On PCI, but no driver is loaded. Install it, or see dmesg for why it does "
                       "not load.")  # fmt: skip
        return _Check(name, "wrong", text, found)
    return _Check(name, "absent", _on_processors())


def _on_processors() -> Message:
    return message("Ranks work on processors; GPUs can be modelled: roundelay simulate.")


def _by_kernel(host: Host) -> tuple[list[str], str]:
    gpus = host.find(f"{DRIVER}/gpus")
    models = [host.field(f"{DRIVER}/gpus/{gpu}/information", "Model") or "-" for gpu in gpus]
    found = re.search(r"Module.*?\s(\d+\.[\d.]+)", host.text(f"{DRIVER}/version"))
    return models, found[1] if found else ""


def _by_program(host: Host) -> tuple[list[str], str]:
    program = host.program("nvidia-smi")
    if program is None:
        return [], ""
    said = host.says(program, "--query-gpu=name,driver_version", "--format=csv,noheader")
    rows = [line.rpartition(", ") for line in said.splitlines() if ", " in line]
    return [row[0] for row in rows], rows[0][2] if rows else ""


def _gpudirect(host: Host) -> Check:
    name = message("GPUDirect RDMA")
    if host.exists("/sys/module/nvidia_peermem"):
        text = message("Network cards read GPUs' memory themselves.")
        return _Check(name, "present", text, "nvidia_peermem")
    text = message("nvidia_peermem is not loaded (modprobe nvidia_peermem): unless the driver and "
                   "NCCL use dma-buf, data take a detour through the host's memory.")  # fmt: skip
    return _Check(name, "absent", text)


def _cuda(host: Host) -> Check:
    name = message("CUDA toolkit")
    found = re.search(r'"cuda"\s*:\s*{[^}]*"version"\s*:\s*"([\d.]+)"',
                      host.text("/usr/local/cuda/version.json"))  # fmt: skip
    version = found[1] if found else host.package(
        "nvidia-cuda-runtime", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime-cu12"
    )  # fmt: skip
    if version is None and (nvcc := host.program("nvcc")):
        release = re.search(r"release ([\d.]+)", host.says(nvcc, "--version"))
        version = release[1] if release else ""
    if version is None:
        text = message("Roundelay does not need it; torch brings what it needs of it.")
        return _Check(name, "absent", text)
    text = message("Its version must not be newer than the driver supports.")
    return _Check(name, "present", text, version or None)


def _nccl(host: Host, gpus: bool) -> Check:
    name = message("NCCL")
    version = host.package("nvidia-nccl-cu13", "nvidia-nccl-cu12")
    if version is None:
        version = host.shared_library("libnccl.so")
    if version is None:
        text = message("GPUs cannot exchange by NCCL; torch for CUDA brings it.") if gpus else \
            message("Nothing here needs it.")  # fmt: skip
        return _Check(name, "absent", text)
    text = message("`roundelay simulate --algorithm nccl` tells what it would choose, `check` "
                   "judges what nccl-tests prints.")  # fmt: skip
    return _Check(name, "present", text, version or None)


def _amd(host: Host) -> Check:
    name = message("AMD GPUs")
    gpus = [node for node in host.find(NODES) if host.number(f"{NODES}/{node}/gpu_id")]
    models = [host.text(f"{NODES}/{node}/name") or "gfx" for node in gpus]
    if gpus and host.exists("/dev/kfd"):
        text = message("Driver {version}. RCCL reaches them.",
                       version=host.text("/sys/module/amdgpu/version") or "amdgpu")  # fmt: skip
        return _Check(name, "present", text, _listed(models))
    if gpus:
        text = message("The driver knows them, and there is no /dev/kfd: give the container "
                       "--device=/dev/kfd --device=/dev/dri.")  # fmt: skip
        return _Check(name, "absent", text, _listed(models))
    if found := _on_pci(host, AMD):
        text = message("On PCI, but no driver for computing is loaded: modprobe amdgpu.")
        return _Check(name, "absent", text, found)
    return _Check(name, "absent", _on_processors())


def _rocm(host: Host) -> Check:
    version = host.text("/opt/rocm/.info/version")
    if version:
        text = message("Its version must fit the driver's.")
        return _Check(message("ROCm"), "present", text, version)
    return _Check(message("ROCm"), "absent", message("torch for ROCm brings what it needs of it."))


def _rccl(host: Host) -> Check:
    version = host.shared_library("librccl.so")
    if version is None:
        text = message("GPUs cannot exchange by RCCL; ROCm and torch for ROCm bring it.")
        return _Check(message("RCCL"), "absent", text)
    text = message("AMD's NCCL; `roundelay check` judges what rccl-tests prints.")
    return _Check(message("RCCL"), "present", text, version or None)
