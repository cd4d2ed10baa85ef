"""Sites from files of Slurm or Kubernetes, told apart by what stands in them."""

from __future__ import annotations

from pathlib import Path

from ..errors import RoundelayError
from ..topology import Cluster
from .kubernetes import kubernetes_site
from .site import Site
from .slurm import slurm_site


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
    path, _, wanted = name.partition(":")
    try:
        if data.lstrip()[:1] == b"{":
            return kubernetes_site(data, machine)
        return slurm_site(data, machine, Path(path).suffix in (".yaml", ".yml"), wanted)
    except RoundelayError as error:
        raise RoundelayError(f"{name}: {error}") from None
