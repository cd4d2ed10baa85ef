"""Clusters by name or from a file.

>>> cluster("dgx-h100:16").size
128
"""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import Final

from ..collectives import UnknownName
from ..errors import RoundelayError
from ..topology import Cluster
from .files import ClusterFile, FabricFile, InsideFile, NicsFile, schema
from .reading import read
from .writing import write

__all__ = [
    "ENDINGS",
    "HERE",
    "ClusterFile",
    "FabricFile",
    "InsideFile",
    "NicsFile",
    "cluster",
    "here_path",
    "names",
    "read",
    "schema",
    "write",
]

HERE: Final = "here"
"""The name of this machine's cluster, once it was probed."""
_SCALED: Final = re.compile(r"(.+):([0-9]{1,9})")
ENDINGS: Final = (".toml", ".yaml", ".yml")
"""Endings of cluster files."""


def names() -> tuple[str, ...]:
    """The machines that are known by name, in the order of the alphabet."""
    files = resources.files("roundelay").joinpath("machines").iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def here_path() -> Path:
    """Where the file of this machine's cluster is: in the folder for users' configuration."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "roundelay" / "here.toml"


def cluster(text: str) -> Cluster:
    """The cluster of a name or a file: "dgx-h100", "dgx-h100:16" (nodes), "here", "mine.toml:4".

    A file that is there under the whole text is meant as it is.

    Raises:
        RoundelayError: no such name or file, or a file that describes no possible cluster.
    """
    scaled = _SCALED.fullmatch(text)
    if scaled and _is_path(scaled[1]) and Path(text).is_file():
        return _from_file(Path(text))
    name, nodes = (scaled[1], int(scaled[2])) if scaled else (text, None)
    found = _named(name)
    if nodes is None:
        return found
    try:
        return found.scaled(nodes)
    except RoundelayError as error:
        raise RoundelayError(f"{text}: {error}") from None


def _is_path(name: str) -> bool:
    return name.endswith(ENDINGS) or "/" in name


def _named(name: str) -> Cluster:
    if name == HERE:
        path = here_path()
        if not path.exists():
            raise RoundelayError(f"this machine was not measured yet: there is no {path}; "
                                 "run `roundelay probe`, which writes it")  # fmt: skip
        return _from_file(path)
    if _is_path(name):
        return _from_file(Path(name))
    if name not in names():
        raise UnknownName("cluster", name, (*names(), HERE))
    text = resources.files("roundelay").joinpath("machines", f"{name}.toml").read_text("utf-8")
    return read(text, f"{name}.toml")


def _from_file(path: Path) -> Cluster:
    try:
        if not path.is_file():
            what = "is no regular file" if path.exists() else "is not there"
            raise RoundelayError(f"{path} {what}; expected a cluster file, or one of "
                                 f"{', '.join(names())}")  # fmt: skip
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        if isinstance(error, RoundelayError):
            raise
        raise RoundelayError(f"{path} cannot be read: {error}") from None
    return read(data, str(path))
