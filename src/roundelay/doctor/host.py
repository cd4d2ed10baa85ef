"""What probes may ask of a machine: files under a root, programs, and packages of Python."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

PATIENCE: Final = 0.7
"""Seconds that a program has to say its version."""
LONGEST: Final = 1 << 20
"""Bytes of a file that are read at most."""
LIBRARIES: Final = (
    "usr/lib", "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib64",
    "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "usr/local/lib", "usr/local/cuda/lib64",
    "opt/rocm/lib",
)  # fmt: skip
"""Folders of shared libraries, beside those of LD_LIBRARY_PATH."""


@dataclass(frozen=True)
class Host:
    """A machine as its files tell of it. Nothing here raises where something is missing.

    Attributes:
        root: the folder that stands for /.
        environ: environment variables.
        packages: folders in which packages of Python lie.
    """

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    packages: Sequence[str] = field(default_factory=lambda: sys.path)

    def at(self, path: str) -> Path:
        """Where a path is."""
        return self.root / path.lstrip("/")

    def text(self, path: str) -> str:
        """What a file says, without spaces around it; empty where it cannot be read."""
        try:
            with self.at(path).open("rb") as file:
                return file.read(LONGEST).decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def number(self, path: str) -> int | None:
        """What a file says, if that is a whole number."""
        return whole(self.text(path))

    def exists(self, path: str) -> bool:
        """Whether there is such a file, folder or device."""
        with suppress(OSError):
            return self.at(path).exists()
        return False

    def find(self, folder: str, pattern: str = "*") -> list[str]:
        """Names in a folder, in order: mlx5_2 before mlx5_10."""
        with suppress(OSError):
            return sorted((p.name for p in self.at(folder).glob(pattern)), key=_natural)
        return []

    def link(self, path: str) -> str:
        """The last name that a link leads to; empty where there is none."""
        with suppress(OSError):
            return self.at(path).resolve(strict=True).name
        return ""

    def field(self, path: str, name: str) -> str:
        """What follows the first `name:` or `name` at the beginning of a line of a file."""
        found = re.search(rf"^{re.escape(name)}[ \t]*:?[ \t]*(.*)$", self.text(path), re.M)
        return found[1].strip() if found else ""

    def program(self, *names: str) -> Path | None:
        """The first of some programs that is on the PATH."""
        for name in names:
            for folder in filter(None, self.environ.get("PATH", "").split(os.pathsep)):
                path = self.at(folder) / name
                if os.access(path, os.X_OK) and path.is_file():
                    return path
        return None

    def says(self, program: Path, *words: str) -> str:
        """What a program prints; empty where it fails, or has not ended in `PATIENCE` seconds."""
        environ = {**self.environ, "LC_ALL": "C"}
        try:
            process = subprocess.Popen(
                [program, *words], env=environ, text=True, errors="replace", process_group=0,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, ValueError):
            return ""
        with process:
            try:
                text = process.communicate(timeout=PATIENCE)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # what it started may hold the pipe
                return ""
        return text.strip() if process.returncode == 0 else ""

    def version(self, program: Path, *words: str) -> str | None:
        """The first version number that a program prints."""
        found = re.search(r"\d+(\.\d+)+", self.says(program, *words or ("--version",)))
        return found[0] if found else None

    def package(self, *names: str) -> str | None:
        """The version of the first of some packages of Python that is installed."""
        for name in names:
            for found in metadata.distributions(name=name, path=list(self.packages)):
                with suppress(KeyError, OSError, ValueError):  # no UTF-8
                    return found.version
        return None

    def requirements(self, name: str) -> list[str]:
        """What an installed package of Python requires, a line each, its extras included."""
        for found in metadata.distributions(name=name, path=list(self.packages)):
            with suppress(OSError, ValueError):
                return found.requires or []
        return []

    def shared_library(self, name: str) -> str | None:
        """The version in the file name of a shared library; empty where it has none there."""
        given = self.environ.get("LD_LIBRARY_PATH", "").split(":")
        for folder in (*filter(None, given), *LIBRARIES):
            if self.exists(f"{folder}/{name}"):
                return self.link(f"{folder}/{name}").partition(".so")[2].lstrip(".")
            if found := self.find(folder, f"{name}.*"):
                return self.link(f"{folder}/{found[-1]}").partition(".so")[2].lstrip(".")
        return None


def whole(text: str) -> int | None:
    """The whole number that a text is; None where it is none, or longer than figures are."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def _natural(name: str) -> list[tuple[str, int]]:
    return [(text, int(part or 0)) for text, part in re.findall(r"(\D*)([0-9]{0,18})", name)]
