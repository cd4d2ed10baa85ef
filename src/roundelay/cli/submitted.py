"""Options of `place` and `order` that name hosts, and write what schedulers take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ..errors import RoundelayError
from ..files import read_file
from ..formats.hostlist import hosts as expand
from ..i18n import translator
from ..place import Placement
from ..place.files import parted, read_site
from ..place.kubernetes import admitted
from ..place.kubernetes import files as kubernetes_files
from ..place.site import Site
from ..place.slurm import files as slurm_files
from ..place.submission import Submission
from ..topology import Cluster
from .base import language, say
from .defined import crds_option, definitions
from .output import write_whole
from .targets import no_use

F = TypeVar("F", bound=Callable[..., Any])
KINDS: Final = ("slurm", "jobset", "kai", "volcano", "core", "lws")
WRITTEN: Final = ("folder", "program", "image", "queue", "crds")
"""Parameters that say how something is written, or where."""


def submit_options() -> Callable[[F], F]:
    """The options --topology, --for, --write, --program, --image, --queue and --crds."""
    return _chained(
        click.option("--topology", metavar="FILE",
                     help="which hosts there are and which switches join them: Slurm's "
                     "topology.conf or topology.yaml, the output of `scontrol show topology` and "
                     "`scontrol show node`, or of `kubectl get nodes,pods -A -o json`"),
        click.option("--for", "kind", type=click.Choice(KINDS),
                     help="what to write: an sbatch script, or manifests of Kubernetes for JobSet "
                     "with Kueue, KAI, Volcano, the scheduler of 1.37, or LeaderWorkerSet"),
        click.option("--write", "folder", type=click.Path(path_type=Path, file_okay=False),
                     metavar="DIR", help="write it into this folder (default: print it)"),
        click.option("--program", default="train.py", show_default=True,
                     help="the Python program and its arguments"),
        click.option("--image", default="registry.example/train:1", show_default=True,
                     help="the image of the containers, for Kubernetes"),
        click.option("--queue", default="", help="the scheduler's queue, or Slurm's partition"),
        crds_option(),
    )  # fmt: skip


def _chained(*options: Callable[[F], F]) -> Callable[[F], F]:
    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def site_of(topology: str | None, machine: Cluster) -> Site | None:
    """The site of the option --topology."""
    if topology is None:
        return None
    site = read_site(read_file(parted(topology)[0]), machine, topology)
    for note in site.notes:
        click.echo(f"{say('note')}: {note.tell(translator(language()))}", err=True)
    return site


def sensible(asked: Mapping[str, Any]) -> None:
    """Refuse options that what is written has no use for.

    Raises:
        UsageError: there is such an option.
    """
    kind = asked["kind"]
    if kind is None:
        no_use(WRITTEN, "without --for", "name what to write, such as --for slurm")
    elif kind == "slurm":
        no_use(("image", "crds"), "with --for slurm")
    elif kind == "core":
        no_use(("queue", "crds"), "with --for core, all of whose kinds Kubernetes has itself")


def submitted(found: Placement, site: Site | None, asked: Mapping[str, Any]) -> dict[str, str]:
    """Write what the options ask for into files; the texts by name of file, where none is asked.

    Raises:
        RoundelayError: no topology, so hosts have no names.
        OSError: a file can't be written.
    """
    kind, folder = asked["kind"], asked["folder"]
    if kind is None:
        return {}
    if site is None:
        raise RoundelayError("--for needs the names of hosts; add --topology FILE, such as the "
                             "output of `scontrol show topology`")  # fmt: skip
    job = Submission(found, site, asked["program"], asked["image"], asked["queue"])
    if kind == "slurm":
        texts = slurm_files(job)
    else:
        known = definitions(asked["crds"]) if kind != "core" else None
        texts = kubernetes_files(job, kind, known)
    if folder is None:
        return texts
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / name, text)
        click.echo(say("wrote {path}", path=folder / name), err=True)
    return {}


def named(nodes: str, site: Site) -> list[str]:
    """Hosts by a list of names, or by the Workload of a file.

    Raises:
        RoundelayError: neither, or Kueue's domains are not hosts.
    """
    if not nodes.endswith(".json"):
        return list(dict.fromkeys(expand(nodes)))
    return [values[-1] for values, _ in admitted(read_file(Path(nodes)))]
