"""Kubernetes: hosts by their labels, manifests of a placed job, and where Kueue has put one."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from ...errors import RoundelayError
from ..submission import Submission
from . import core, jobset, kai, lws, volcano
from .admitted import admitted
from .crds import Definitions, checked, read_definitions
from .nodes import kubernetes_site

__all__ = ["Definitions", "admitted", "files", "kubernetes_site", "read_definitions"]

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_KINDS: Final = MappingProxyType(
    {"jobset": jobset.files, "kai": kai.files, "volcano": volcano.files, "core": core.files,
     "lws": lws.files}
)  # fmt: skip


def files(job: Submission, kind: str, known: Definitions | None = None) -> dict[str, str]:
    """Manifests by name of the file.

    Args:
        job: placed on hosts with labels.
        kind: "jobset", "kai", "volcano", "core" or "lws".
        known: the custom kinds of a cluster, which must keep the manifests whole.

    Raises:
        RoundelayError: hosts without labels, parts of cards, ranks that pods can't have, or fields
            that the cluster would drop.
    """
    if job.site.source != "kubernetes":
        raise RoundelayError("manifests need the labels of nodes; expected --topology with the "
                             "output of `kubectl get nodes -o json`")  # fmt: skip
    if job.queue and not _NAME.fullmatch(job.queue):
        raise RoundelayError(f"queue {job.queue}; expected small letters, digits and -, such as "
                             "team-a: Kubernetes takes no others in names")  # fmt: skip
    if job.site.room.sliced.ravel()[job.placed.cards].any():
        raise RoundelayError(f"{job.name} has parts of cards (MIG, time slices), whose resources "
                             "have other names, and no manifest says which parts of which cards "
                             "it gets; expected whole cards: leave out --sliced")  # fmt: skip
    return checked(_KINDS[kind](job), known)
