"""How our own side is started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..run.launch import rank_environments
from .job import Command


def environment() -> dict[str, str]:
    """Ours, with the package that runs now on the path; one thread a process."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def command(ranks: int, address: Path) -> Command:
    """How to start our workers, one process a rank."""
    line = [sys.executable, "-m", f"{__package__}.worker.ours", str(address)]
    return Command([line] * ranks, rank_environments(environment(), ranks))
