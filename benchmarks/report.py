"""What every benchmark says of itself: machine, command and date; and where its figures go."""

import argparse
import datetime
import os
import platform
from collections.abc import Callable
from pathlib import Path

import numpy as np


def machine() -> str:
    """The machine, in a line."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")), platform.processor(),
    )  # fmt: skip
    return (
        f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )


def report(script: str, title: str, about: str, body: Callable[[], list[str]]) -> None:
    """Print the figures; with --write, also into the .md beside the script.

    `body` measures and gives the lines; `about` stands behind the machine.
    """
    page = Path(script).with_suffix(".md")
    parser = argparse.ArgumentParser(description=f"Measure: {title}")
    parser.add_argument("--write", action="store_true", help=f"write benchmarks/{page.name}")
    write = parser.parse_args().write
    lines = [
        f"# {title}",
        "",
        f"- machine: {machine()}{about}",
        f"- command: `python benchmarks/{Path(script).name} --write`",
        f"- date: {datetime.date.today().isoformat()}",
        *body(),
    ]
    text = "\n".join(lines).rstrip() + "\n"
    print(text)
    if write:
        page.write_text(text)
