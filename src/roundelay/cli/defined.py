"""The option --crds: what a cluster's own definitions keep of the manifests that are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..place.kubernetes import Definitions, read_definitions
from .base import say

F = TypeVar("F", bound=Callable[..., Any])


def crds_option() -> Callable[[F], F]:
    """The option --crds."""
    return click.option("--crds", type=click.Path(path_type=Path), metavar="PATH",
                        help="the definitions of your cluster, as `kubectl get crd -o json` prints "
                        "them, or a folder of such files: manifests with a field that they would "
                        "drop are refused")  # fmt: skip


def definitions(path: Path | None) -> Definitions | None:
    """What --crds names; without it, how to find what it should name is said.

    Raises:
        RoundelayError: it has no definitions.
        OSError: it cannot be read.
    """
    if path is not None:
        return read_definitions(path)
    how = say("not checked with your cluster, whose versions may drop fields: `kubectl get crd -o "
              "json > crds.json`, then add --crds crds.json")  # fmt: skip
    click.echo(f"{say('note')}: {how}", err=True)
    return None
