"""Other software: frameworks, launchers, schedulers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from ..i18n import message
from .check import Check
from .host import Host

TORCH: Final = (2, 13)
"""The version of torch that the backend is made for."""
SLURM: Final = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf")
"""Where Slurm's configuration lies, beside SLURM_CONF."""
SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

MADE: Final = {
    "Open MPI": "Open MPI",
    "open-mpi": "Open MPI",
    "PRRTE": "Open MPI (PRRTE)",
    "Intel(R) MPI": "Intel MPI",
    "HYDRA": "MPICH",
}
"""Who made an MPI, by what its launcher prints."""

_Check = partial(Check, "software")


def probe(host: Host) -> Iterator[Check]:
    """torch, MPI, Slurm, Kubernetes; torch is not imported."""
    yield _torch(host)
    yield _mpi(host)
    yield _slurm(host)
    yield from _kubernetes(host)


def _torch(host: Host) -> Check:
    name, version = message("torch"), host.package("torch")
    if version is None:
        text = message("Not in this Python. With it, Roundelay is a backend of torch.distributed: "
                       "pip install 'roundelay[torch]'")  # fmt: skip
        return _Check(name, "absent", text)
    found = re.match(r"([0-9]{1,4})\.([0-9]{1,4})", version)
    if found and (int(found[1]), int(found[2])) < TORCH:
        text = message("The backend is made for {wanted} or later; this one may not load it.",
                       wanted=".".join(map(str, TORCH)))  # fmt: skip
        return _Check(name, "present", text, version)
    text = message('init_process_group("roundelay") works in this Python.')
    return _Check(name, "present", text, version)


def _mpi(host: Host) -> Check:
    name = message("MPI")
    program = host.program("mpiexec", "mpirun", "orterun")
    if program is None:
        text = message("mpirun cannot start jobs here; torchrun, srun and `roundelay launch` can.")
        return _Check(name, "absent", text)
    said = host.says(program, "--version")
    made = next((m for key, m in MADE.items() if key in said), program.name)
    version = re.search(r"\d+(\.\d+)+", said)
    value = f"{made} {version[0]}" if version else made
    text = message("{program} can start jobs; Roundelay reads ranks from what it sets.",
                   program=program.name)  # fmt: skip
    return _Check(name, "present", text, value)


def _slurm(host: Host) -> Check:
    """The command srun is not run: where it finds no configuration it asks the network for one."""
    name, program = message("Slurm"), host.program("srun")
    if job := host.environ.get("SLURM_JOB_ID"):
        text = message("Inside job {job}; Roundelay reads ranks from what srun sets.", job=job)
        return _Check(name, "present", text)
    if program is None:
        return _Check(name, "absent", message("Jobs are not started by Slurm here."))
    files = (host.environ.get("SLURM_CONF", ""), *SLURM)
    if not any(file and host.exists(file) for file in files):
        text = message("srun is there without slurm.conf: this machine is in no cluster of Slurm, "
                       "or the network has to name the controller.")  # fmt: skip
        return _Check(name, "absent", text)
    return _Check(name, "present", message("srun can start jobs: srun python program.py"))


def _kubernetes(host: Host) -> Iterator[Check]:
    name = message("Kubernetes")
    if "KUBERNETES_SERVICE_HOST" in host.environ or host.exists(SERVICE_ACCOUNT):
        text = message("Inside a pod. A node is what ranks share memory in, so a pod with several "
                       "ranks is quicker than several pods.")  # fmt: skip
        yield _Check(name, "present", text)
    else:
        yield _Check(name, "absent", message("Not inside a pod."))
    if program := host.program("kubectl"):
        found = host.version(program, "version", "--client")
        text = message("kubectl is there, to start jobs as pods.")
        yield _Check(message("kubectl"), "present", text, found)
