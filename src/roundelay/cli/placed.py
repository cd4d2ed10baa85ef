"""What `place` and `order` print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import numpy as np

from ..i18n import translator
from ..place import Job, Placement
from ..place.reading import write_job
from ..place.site import Site
from ..topology import Cluster
from ..units import format_time
from .base import language, say
from .output import table
from .targets import Checked
from .traced import read

F = TypeVar("F", bound=Callable[..., Any])
RANKS_SHOWN: Final = 64
"""Ranks in the table of whole nodes."""
NAMES: Final = {
    "as_given": "in the order of the nodes",
    "first_fit": "first fit",
    "best_fit": "best fit, as Kueue and KAI",
    "random": "by chance, in the mean",
    "spread": "spread over the fabric, see --spread",
    "optimum": "the optimum",
}


def job_argument() -> Callable[[F], F]:
    """The argument JOB."""
    return click.argument("job", type=Checked("JOB", read))


def keep_option() -> Callable[[F], F]:
    """The option --write-job."""
    return click.option("--write-job", "kept", metavar="FILE.toml",
                        type=click.Path(dir_okay=False, path_type=Path),
                        help="write JOB into this file, group by group, to be looked at, "
                        "corrected and given as JOB")  # fmt: skip


def keep(job: Job, file: Path | None) -> None:
    """Write the job where it was asked for."""
    if file:
        file.write_text(write_job(job), "utf-8")


def exact_option() -> Callable[[F], F]:
    """The option --exact."""
    return click.option("--exact", is_flag=True,
                        help="find the optimum, too, with HiGHS; for up to about ten "
                        "nodes")  # fmt: skip


def entry(
    found: Placement, cluster: Cluster, site: Site | None, texts: Mapping[str, str]
) -> dict[str, Any]:
    """A placement as JSON; with a site the names of hosts, and what was written by name of file."""
    tell = translator(language())
    node, card = divmod(found.cards, cluster.cards)
    part = found.price.binding
    names = dict.fromkeys(("first_fit", "best_fit", "random", "optimum"))
    spoken = site.named if site else str
    more: dict[str, Any] = {}
    if site:
        more = {"hosts": [site.host(int(card)) for card in found.cards], "files": dict(texts)}
    return {
        "nodes": np.unique(node).tolist(),
        "ranks": [{"rank": rank, "node": int(n), "card": int(c)}
                  for rank, (n, c) in enumerate(zip(node, card, strict=True))],
        "cost_us": found.price.seconds * 1e6,
        "against": {name: None if t is None else t * 1e6
                    for name, t in (names | found.against).items()},
        "binding_link": spoken(part.link) if part else "",
        "because": [spoken(one.tell(tell)) for one in found.because],
        **more,
    }  # fmt: skip


def told(
    job: Job, found: Placement, cluster: Cluster, site: Site | None, texts: Mapping[str, str]
) -> str:
    """A placement for people, and behind it what isn't written into files."""
    seconds, spoken = found.price.seconds, site.named if site else str
    head = [say("placed"), say("exchange of a step"), say("more")]
    rows = [[say("this"), format_time(seconds), ""]]
    for name, other in found.against.items():
        if other is not None:
            more = f"{other / seconds - 1:+.1%}" if seconds else "-"
            rows.append([say(NAMES[name]), format_time(other), more])
    return "\n\n".join([
        say("{job}: {ranks} ranks on {cluster}", job=job.name, ranks=f"{job.ranks:,}",
            cluster=cluster.name),
        _where(found, cluster, site),
        table(head, rows, right="bc"),
        "\n".join(f"- {spoken(one.tell(translator(language())))}" for one in found.because),
        *(f"{name}:\n{text}" for name, text in texts.items()),
    ]).rstrip()  # fmt: skip


def _where(found: Placement, cluster: Cluster, site: Site | None) -> str:
    """A line for the ranks of each node, those of one node together; of each host with a site."""
    node, card = divmod(found.cards, cluster.cards // cluster.hosts if site else cluster.cards)
    first = np.flatnonzero(np.append(True, node[1:] != node[:-1]))
    ends = np.append(first[1:], len(node))
    names = [site.host(int(card)) if site else str(n)
             for card, n in zip(found.cards, node, strict=True)]  # fmt: skip
    rows = [[_span(range(a, b)), names[a], _span(card[a:b].tolist())]
            for a, b in zip(first.tolist(), ends.tolist(), strict=True)]  # fmt: skip
    shown = rows if len(rows) <= RANKS_SHOWN else [*rows[: RANKS_SHOWN - 1], ["...", "", ""]]
    return table(
        [say("ranks"), say("host") if site else say("node"), say("card numbers")],
        shown,
        right="" if site else "b",
    )


def _span(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    if last - first + 1 == len(numbers):
        return str(first) if first == last else f"{first}-{last}"
    return ",".join(map(str, numbers))
