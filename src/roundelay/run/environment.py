"""Which job this process belongs to, by what its launcher put into the environment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..errors import RoundelayError
from .machine import expand_hosts, starter

Env = Mapping[str, str]

SPECIAL_STEPS: Final = 0xFFFF_FFF0
"""Slurm's numbers of steps from here on are not parallel: the batch script, a shell."""


@dataclass(frozen=True)
class Job:
    """A job of processes and this process's place in it.

    Attributes:
        rank: this process, 0 to ranks - 1.
        ranks: how many processes there are.
        local_rank: its number on its machine, None where the launcher does not say.
        host: name or address at which rank 0 is found.
        port: where rank 0 listens, 1 to 65535; 0 in a job of one rank.
        secret: what all ranks of the job know, 32 bytes. Without ROUNDELAY_SECRET it is made
            from the job's id, host and port: that keeps other jobs and strangers away, but a user
            of the machines can find it out.
        source: the launcher, for messages.
        own_port: whether the port is Roundelay's. Where it is another's, as MASTER_PORT is
            torch's, rank 0 listens at one of the 16 ports after it.
        name: what its user calls it.
    """

    rank: int
    ranks: int
    local_rank: int | None
    host: str
    port: int
    secret: bytes = field(repr=False)
    source: str
    own_port: bool = True
    name: str = ""

    @property
    def title(self) -> str:
        """Its name: ROUNDELAY_NAME, or the address at which its ranks meet."""
        return os.environ.get("ROUNDELAY_NAME") or self.name or f"{self.host}:{self.port}"


@dataclass(frozen=True)
class _Place:
    host: str
    port: int
    own_port: bool


def job_from_environment(environ: Env = os.environ) -> Job:
    """The job that the environment variables tell of.

    In this order: ROUNDELAY_RANK (`roundelay launch`), RANK with MASTER_ADDR (torchrun), Open MPI,
    PMI (MPICH, Intel MPI), Slurm, PMIx. Without any of them, a job of one rank.
    `docs/design/0009-start-up.md` lists the variables.

    Raises:
        RoundelayError: variables are missing, are not numbers, or contradict one another.
    """
    sources = (_own, _torchrun, _open_mpi, _pmi, _slurm, _pmix)
    for source in sources:
        job = source(environ)
        if job:
            return job
    _refuse_half(environ)
    return Job(0, 1, 0, "127.0.0.1", 0, secret_of(environ, "alone"), "no launcher")


def _own(env: Env) -> Job | None:
    if not (env.get("ROUNDELAY_RANK") or env.get("ROUNDELAY_RANKS")):
        return None
    names = ("ROUNDELAY_RANK", "ROUNDELAY_RANKS", "LOCAL_RANK")
    return _job(env, "roundelay launch", names, (), None)


def _torchrun(env: Env) -> Job | None:
    if not (env.get("RANK") and env.get("MASTER_ADDR")):
        return None
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    return _job(env, "torchrun", names, (env.get("TORCHELASTIC_RUN_ID", ""),), None)


def _open_mpi(env: Env) -> Job | None:
    if not env.get("OMPI_COMM_WORLD_RANK"):
        return None
    size = "OMPI_COMM_WORLD_SIZE"
    names = ("OMPI_COMM_WORLD_RANK", size, "OMPI_COMM_WORLD_LOCAL_RANK")
    ids = (_mpi_id(env),)
    local = env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == env.get(size)
    return _job(env, "Open MPI", names, ids, "127.0.0.1" if local else None)


def _pmi(env: Env) -> Job | None:
    if not env.get("PMI_RANK"):
        return None
    names = ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")
    if _in_slurm(env) and not env.get("MPI_LOCALNRANKS"):
        return _slurm(env)  # srun itself gives PMI; inside an mpiexec, Slurm's are the starter's
    local = env.get("MPI_LOCALNRANKS") == env.get("PMI_SIZE")
    # What only one machine can know must not go into a secret that several machines share.
    ids = (_mpi_id(env),) if local or env.get("I_MPI_HYDRA_UUID") else ()
    return _job(env, "PMI", names, ids, "127.0.0.1" if local else None)


def _slurm(env: Env) -> Job | None:
    if not _in_slurm(env):
        return None
    names = ("SLURM_PROCID", _slurm_size(env), "SLURM_LOCALID")
    return _job(env, "Slurm", names, (_slurm_id(env),), _first_task(env))


def _slurm_size(env: Env) -> str:
    return "SLURM_STEP_NUM_TASKS" if env.get("SLURM_STEP_NUM_TASKS") else "SLURM_NTASKS"


def _first_task(env: Env) -> str | None:
    """The host of task 0: the first of Slurm's list, which is sorted, or of an order of the user's.

    Raises:
        RoundelayError: the user's order can't be read here.
    """
    given = env.get("MASTER_ADDR") or env.get("ROUNDELAY_ADDRESS")
    if env.get("SLURM_DISTRIBUTION") == "arbitrary" and not given:
        try:
            words = Path(env.get("SLURM_HOSTFILE", "")).read_text("utf-8").split()
        except (OSError, ValueError):
            words = []
        if not words:
            raise RoundelayError(
                f"SLURM_DISTRIBUTION=arbitrary, and SLURM_HOSTFILE={env.get('SLURM_HOSTFILE')!r} "
                "cannot be read here; expected the file of hosts, or MASTER_ADDR: task 0's host"
            )
        return expand_hosts(words[0].partition("*")[0])[0]
    hosts = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST")
    return expand_hosts(hosts)[0] if hosts else None


@dataclass(frozen=True)
class Tasks:
    """The tasks of a step of srun, of which this process is one.

    Attributes:
        task: this one.
        tasks: how many.
        on_host: its number on its host.
        host: of task 0.
        port: of the job, the same for all tasks.
    """

    task: int
    tasks: int
    on_host: int
    host: str
    port: int


def srun_tasks(env: Env = os.environ) -> Tasks | None:
    """The tasks among which srun has put this process; None where it hasn't, or it is alone.

    Raises:
        RoundelayError: variables of Slurm are missing, or are not numbers.
    """
    if env.get("ROUNDELAY_RANK") or not _in_slurm(env):
        return None
    tasks = _number(env, _slurm_size(env), "Slurm")
    if tasks == 1:
        return None
    host = env.get("MASTER_ADDR") or _first_task(env)
    if host is None:
        raise RoundelayError("SLURM_STEP_NODELIST is not set, though other variables of Slurm are; "
                             "set MASTER_ADDR to the host of task 0")  # fmt: skip
    task, on_host = (_number(env, name, "Slurm") for name in ("SLURM_PROCID", "SLURM_LOCALID"))
    return Tasks(task, tasks, on_host, host, derived_port(_slurm_id(env)))  # fmt: skip


def _pmix(env: Env) -> Job | None:
    if not (env.get("PMIX_RANK") and env.get("PMIX_NAMESPACE")):
        return None
    sizes = ("OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    size = next((name for name in sizes if env.get(name)), None)
    if size is None:
        raise RoundelayError(
            f"PMIX_RANK={env['PMIX_RANK']}, but nothing says how many ranks there are; "
            "set ROUNDELAY_RANK, ROUNDELAY_RANKS and ROUNDELAY_ADDRESS=host:port"
        )
    return _job(env, "PMIx", ("PMIX_RANK", size, "MPI_LOCALRANKID"), (_mpi_id(env),), None)


def _in_slurm(env: Env) -> bool:
    step = env.get("SLURM_STEP_ID", "")
    special = step.isdigit() and int(step) >= SPECIAL_STEPS
    return bool(env.get("SLURM_PROCID")) and bool(step) and not special


def _slurm_id(env: Env) -> str:
    job = env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID", "")
    return f"{env.get('SLURM_CLUSTER_NAME', '')}/{job}.{env['SLURM_STEP_ID']}"


def _mpi_id(env: Env) -> str:
    names = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "I_MPI_HYDRA_UUID")
    return next((env[name] for name in names if env.get(name)), None) or starter()


def _job(
    env: Env, source: str, names: tuple[str, str, str], ids: tuple[str, ...], default: str | None
) -> Job:
    """The job by the names of rank, size and local rank, and what else its ranks share."""
    rank, ranks = _number(env, names[0], source), _number(env, names[1], source)
    if not 0 <= rank < ranks:
        raise RoundelayError(
            f"{names[0]}={rank} with {names[1]}={ranks} ({source}); expected a rank from 0 to "
            f"{names[1]} - 1. Were the variables set for another job?"
        )
    local_rank = _number(env, names[2], source) if env.get(names[2]) else None
    if ranks > 1:
        _refuse_guessable(env)
    place = _place(env, source, ids, default) if ranks > 1 else _Place("127.0.0.1", 0, True)
    secret = secret_of(env, source, *ids, place.host, str(place.port))
    return Job(rank, ranks, local_rank, place.host, place.port, secret, source, place.own_port)


def _place(env: Env, source: str, ids: tuple[str, ...], default: str | None) -> _Place:
    """Where rank 0 is."""
    if env.get("ROUNDELAY_ADDRESS"):
        return _Place(*parse_address(env["ROUNDELAY_ADDRESS"]), own_port=True)
    if env.get("MASTER_ADDR"):
        host = env["MASTER_ADDR"].strip("[]")
        if env.get("MASTER_PORT") or not ids or source == "torchrun":
            port = _number(env, "MASTER_PORT", source)
            if not 1 <= port <= 65535:
                raise RoundelayError(f"MASTER_PORT={port}; expected a port, 1 to 65535")
            return _Place(host, port, own_port=False)
        return _Place(host, derived_port(*ids), own_port=True)
    if default is None:
        raise RoundelayError(
            f"{source} does not say where rank 0 is, and there may be several machines; "
            "set ROUNDELAY_ADDRESS=host:port for all ranks, to the machine of rank 0 and a port "
            "that is free there"
        )
    return _Place(default, derived_port(*ids), own_port=True)


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of ``host:port`` or ``[::1]:port``.

    Raises:
        RoundelayError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    bare = host.strip("[]")
    plain = bool(colon and bare) and port.isascii() and port.isdigit() and 1 <= int(port) <= 65535
    if not plain or (":" in bare and not host.startswith("[")):
        raise RoundelayError(
            f"ROUNDELAY_ADDRESS={text!r}; expected host:port with a port from 1 to 65535, such as "
            "node1:29400 or [fd00::1]:29400"
        )
    return bare, int(port)


def derived_port(*ids: str) -> int:
    """A port from 20000 to 29999, the same for all who share the ids."""
    return 20000 + int.from_bytes(_digest("port", *ids)[:8], "big") % 10000


def secret_of(env: Env, *shared: str) -> bytes:
    """The job's secret, 32 bytes: ROUNDELAY_SECRET, else made from what the ranks share.

    Raises:
        RoundelayError: ROUNDELAY_SECRET is empty.
    """
    given = env.get("ROUNDELAY_SECRET")
    if given is None:
        return _digest("shared", *shared)
    if not given:
        raise RoundelayError("ROUNDELAY_SECRET is empty; give it a value, or unset it")
    return _digest("secret", given)


def _refuse_guessable(env: Env) -> None:
    """What is encrypted must not be to be read by whoever finds out the job's id."""
    if switch("ROUNDELAY_ENCRYPT", env) and env.get("ROUNDELAY_SECRET") is None:
        raise RoundelayError(
            "ROUNDELAY_ENCRYPT is 1, and ROUNDELAY_SECRET is not set; expected a secret that "
            "nobody can guess, the same for all ranks. roundelay launch makes one"
        )


def switch(name: str, env: Env = os.environ) -> bool:
    """Whether a variable that turns something on is 1; it may be 0, empty or not set.

    Raises:
        RoundelayError: it is something else.
    """
    text = env.get(name, "")
    if text not in ("", "0", "1"):
        raise RoundelayError(f"{name} is {text!r}; expected 1 or 0")
    return text == "1"


def _digest(*parts: str) -> bytes:
    whole = hashlib.sha256(b"roundelay")
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.digest()


def _number(env: Env, name: str, source: str) -> int:
    text = env.get(name)
    if not text:
        raise RoundelayError(
            f"{name} is not set, though other variables of {source} are; set it, or unset them all"
        )
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise RoundelayError(f"{name}={text!r} ({source}); expected a number, 0 or greater")
    return int(text)


def _refuse_half(env: Env) -> None:
    """Some of a launcher's variables without the others are a mistake, not a job of one."""
    if env.get("WORLD_SIZE") == "1" and env.get("RANK", "0") == "0":
        return
    if env.get("RANK") and env.get("WORLD_SIZE"):
        missing = "MASTER_ADDR"
    elif env.get("WORLD_SIZE") and env.get("MASTER_ADDR"):
        missing = "RANK"
    elif env.get("OMPI_COMM_WORLD_SIZE"):
        missing = "OMPI_COMM_WORLD_RANK"
    elif env.get("PMI_SIZE"):
        missing = "PMI_RANK"
    else:
        return
    _number(env, missing, "a launcher")
