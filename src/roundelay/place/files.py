"""Sites from files of Slurm or Kubernetes, told apart by what stands in them."""

from __future__ import annotations

from pathlib import Path

from ..errors import RoundelayError
from ..topology import Cluster
from .kubernetes import kubernetes_site
from .site import Site
from .slurm import slurm_site


def parted(name: str) -> tuple[Path, str]:
    """The file of FILE or FILE:NAME, and the name; a file that is called as a whole so comes first.

    >>> parted("topology.yaml:main")[1], parted("run:2/topology.conf")[1]
    ('main', '')
    """
    path, _, wanted = name.rpartition(":")
    if not path or "/" in wanted or Path(name).exists():
        return Path(name), ""
    return Path(path), wanted


def read_site(data: bytes, machine: Cluster, name: str) -> Site:
    """The site that a file describes.

    Args:
        data: the file: topology.conf, topology.yaml, what scontrol prints, or what
            ``kubectl get nodes -o json`` does, also with pods.
        machine: what a node is.
        name: of the file; ``topology.yaml:main`` takes one of several.

    Raises:
        RoundelayError: it is none of these, or contradicts itself or the machine.
    """
    path, wanted = parted(name)
    try:
        if data.lstrip()[:1] == b"{":
            return kubernetes_site(data, machine)
        yaml = path.suffix.partition(":")[0] in (".yaml", ".yml")
        return slurm_site(data, machine, yaml, wanted)
    except RoundelayError as error:
        raise RoundelayError(f"{name}: {error}") from None
