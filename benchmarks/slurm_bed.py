"""A real Slurm on this machine: a controller, and a slurmd for each host of a testbed.

    with SlurmBed() as slurm:
        print(slurm.run("srun", "-N4", "hostname"))

Hosts are network namespaces under leaf switches that one spine joins (see testbed.py), each with a
host name of its own, n0, n1 and so on; the controller and those who submit are on the spine. It
needs root, Slurm's slurmctld, slurmd and client commands (Debian: slurmctld, slurmd, slurm-client),
and starts no service of the machine. Leaving the context ends all daemons and removes their files;
they also end with the process that started them.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import testbed
from testbed import Missing, Testbed

COMMANDS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "nsenter", "setpriv", "unshare")
FIRST_PORT = 36800
READY = 60.0
"""Seconds that daemons may take until all nodes are idle."""

_MACHINE = """
generation = "cpu"
cards = 1
sockets = 1
[inside]
kind = "bus"
medium = "memory"
rate = "10 GB/s oneway"
[nics]
count = 1
rate = "{rate} oneway"
medium = "tcp"
latency = "50 us"
card_pcie = "10 GB/s oneway"
[fabric]
kind = "fat_tree"
nodes_per_leaf = 4
oversubscription = 4
"""
_CONF = """\
ClusterName=bed
SlurmctldHost=head({head})
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
SchedulerType=sched/backfill
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
MpiDefault=none
ReturnToService=2
KillWait=3
SrunPortRange={srun}
{nodes}
PartitionName=all Nodes=n[0-{last}] Default=YES State=UP OverSubscribe=NO
"""


def why_not() -> str | None:
    """What keeps this machine from running it; None if nothing does."""
    missing = [command for command in COMMANDS if shutil.which(command, path=_path()) is None]
    if missing:
        return f"there is no {', '.join(missing)}; they come with Slurm (apt install slurm-wlm)"
    return testbed.why_not()


def machine(rate: str) -> str:
    """A cluster file for one host of the bed, whose card has so much one way, such as "1 Gb/s"."""
    return _MACHINE.replace("{rate}", rate)


def environment(*commands: Path, **more: str) -> dict[str, str]:
    """What ranks need to find this Python's packages, and the commands of these folders."""
    path = os.pathsep.join([*map(str, commands), os.environ["PATH"], "/usr/sbin"])
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1",
            "PATH": path, **more}  # fmt: skip


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


class SlurmBed:
    """Hosts n0, n1 and so on, under leaves that a spine joins."""

    def __init__(self, leaves: tuple[int, ...] = (0,) * 4 + (1,) * 4, cpus: int = 2,
                 rate: str | None = None, above: str | None = None) -> None:  # fmt: skip
        """`leaves` is the leaf of each host; for `rate` and `above` see `Testbed`."""
        self.leaves, self.cpus = leaves, cpus
        self.bed = Testbed(len(leaves) + 1, rate, (*leaves, -1), above)
        self._head = len(leaves)
        self._daemons: list[subprocess.Popen[bytes]] = []

    @property
    def names(self) -> list[str]:
        """The hosts."""
        return [f"n{i}" for i in range(len(self.leaves))]

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-bed-"))
        try:
            self.bed.__enter__()
            self._configure()
            self._start(self._head, "head", "slurmctld", "-D", "-c")
            for host, name in enumerate(self.names):
                self._start(host, name, "slurmd", "-D", "-N", name)
            self._until_idle()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        with suppress(subprocess.SubprocessError):
            self.run("scancel", "--full", "--user=root", timeout=10)
            self._until(lambda: not self.run("squeue", "-h").stdout.strip(), 10)
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            with suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
        self.bed.__exit__(None, None, None)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words: str, timeout: float = 60, env: Mapping[str, str] | None = None,
            cwd: Path | None = None) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """A command at the controller's host."""
        return subprocess.run(self._inside(self._head, "head", words), capture_output=True,
                              text=True, timeout=timeout, env={**self._env(), **(env or {})},
                              cwd=cwd)  # fmt: skip

    def topology(self) -> str:
        """What `scontrol show topology` and `scontrol show node` print."""
        return "".join(self.run("scontrol", "show", what).stdout for what in ("topology", "node"))

    def _env(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(("SLURM_", "SBATCH_"))}  # fmt: skip
        return {**kept, "PATH": _path(), "SLURM_CONF": str(self.folder / "slurm.conf")}

    def _inside(self, host: int, name: str, words: tuple[str, ...]) -> list[str]:
        """With a host name, and names of all hosts, of its own."""
        script = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'
        # Not `ip netns exec`, which hides the control groups that slurmd looks for.
        space = f"--net=/run/netns/{self.bed.inside(host)[-1]}"
        return ["nsenter", space, "unshare", "--uts", "--mount", "sh", "-c", script, name,
                str(self.folder / "hosts"), *words]  # fmt: skip

    def _start(self, host: int, name: str, *words: str) -> None:
        bound = ["setpriv", "--pdeathsig", "TERM", *self._inside(host, name, words)]
        with (self.folder / f"{name}.out").open("wb") as out:
            self._daemons.append(subprocess.Popen(
                bound, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                env=self._env(), start_new_session=True, cwd=self.folder))  # fmt: skip

    def _configure(self) -> None:
        (self.folder / "state").mkdir()
        hosts = {name: self.bed.address(i) for i, name in enumerate([*self.names, "head"])}
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in hosts.items())]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        nodes = "\n".join(f"NodeName={name} NodeAddr={hosts[name]} Port={FIRST_PORT + 1} "
                          f"CPUs={self.cpus} State=UNKNOWN" for name in self.names)  # fmt: skip
        text = _CONF.format(head=hosts["head"], port=FIRST_PORT, folder=self.folder, nodes=nodes,
                            last=len(self.names) - 1,
                            srun=f"{FIRST_PORT + 100}-{FIRST_PORT + 300}")  # fmt: skip
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "topology.conf").write_text(self.tree())
        for name in self.names:
            (self.folder / name).mkdir()

    def tree(self) -> str:
        """The topology.conf."""
        found = {leaf: [n for n, own in zip(self.names, self.leaves, strict=True) if own == leaf]
                 for leaf in dict.fromkeys(self.leaves)}  # fmt: skip
        lines = [f"SwitchName=leaf{leaf} Nodes={','.join(own)}" for leaf, own in found.items()]
        names = ",".join(f"leaf{leaf}" for leaf in found)
        return "\n".join([*lines, f"SwitchName=spine Switches={names}"]) + "\n"

    def _until_idle(self) -> None:
        if not self._until(self._idle, READY):
            log = (self.folder / "slurmctld.log").read_text("utf-8", "replace")[-2000:]
            raise Missing(f"not all nodes of Slurm are idle after {READY:g} s; the controller's "
                          f"log ends with:\n{log}")  # fmt: skip

    def _idle(self) -> bool:
        said = self.run("sinfo", "-h", "-N", "-o", "%N %T").stdout.split()
        return said[1::2] == ["idle"] * len(self.names)

    @staticmethod
    def _until(ready, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > end:
                return False
            time.sleep(0.3)
        return True
