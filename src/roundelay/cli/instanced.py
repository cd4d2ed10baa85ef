"""Options of `inference-sim` that write what Kubernetes takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ..place.kubernetes.instances import PORT, Instances, files
from ..place.kubernetes.nodes import CARDS, resource
from ..topology import Cluster
from ..units import format_time
from .base import say
from .defined import crds_option, definitions
from .output import write_whole

F = TypeVar("F", bound=Callable[..., Any])


def write_options(function: F) -> F:
    """The options --write, --name, --image, --program, --prometheus and --crds."""
    for option in reversed((
        click.option("--write", "folder", type=click.Path(path_type=Path, file_okay=False),
                     metavar="DIR", help="write manifests of Kubernetes for the one --policy into "
                     "this folder: a LeaderWorkerSet of instances, and what scales it"),
        click.option("--name", default="inference", show_default=True,
                     help="name of the service in the manifests"),
        click.option("--image", default="registry.example/serve:1", show_default=True,
                     help="the image of the containers"),
        click.option("--program",
                     help="what each pod of an instance runs (default: `roundelay llm` with --tp, "
                     "--batch and --queue, on one host)"),
        click.option("--prometheus", metavar="URL",
                     default="http://prometheus-operated.monitoring:9090", show_default=True,
                     help="where KEDA asks for the metrics"),
        crds_option(),
    )):  # fmt: skip
        function = option(function)
    return function


def instances(row: Mapping[str, Any], where: Cluster | None, figures: Mapping[str, Any],
              asked: Mapping[str, Any]) -> Instances:  # fmt: skip
    """What was simulated, as a service.

    Args:
        row: of the policy.
        where: whose hosts have the cards; None: one host has all of an instance.
        figures: options of the simulation, by name.
        asked: values of `write_options`.

    Raises:
        UsageError: cards that hosts can't have alike, or a program that is missing.
        RoundelayError: what Kubernetes doesn't take.
    """
    cards, each = figures["tp"], figures["tp"]
    if where is not None:
        each = min(cards, where.cards // where.hosts)
    if cards % each:
        raise click.UsageError(f"--tp {cards}, and a host of {where.name if where else ''} has "
                               f"{each} cards; expected a multiple, as pods of an instance are "
                               "alike")  # fmt: skip
    program, kind = asked["program"], resource(where) if where else CARDS[0]
    if program is None and cards > each:
        raise click.UsageError(f"an instance has {cards // each} hosts, and `roundelay llm` runs "
                               "on one; expected --program, such as one that reads LWS_LEADER_"
                               "ADDRESS, LWS_GROUP_SIZE and LWS_WORKER_INDEX")  # fmt: skip
    if program is None:
        kind = "cpu"  # what it computes with
        program = (f"roundelay llm --tp {cards} --batch {figures['batch']} --queue "
                   f"{figures['queue']} --host 0.0.0.0 --port {PORT}")  # fmt: skip
    fixed = row["policy"] == "fixed"
    return Instances(
        asked["name"], row["policy"], figures["least"],
        row["instances_most"] if fixed else figures["most"], row["target"], figures["batch"],
        figures["calm"], figures["start"], cards // each, each,
        kind, asked["image"], program, asked["prometheus"],
        (_figures(row), _server(asked["program"]), *_hosts(where, cards // each)),
    )  # fmt: skip


def _figures(row: Mapping[str, Any]) -> str:
    last = row["first_token_p99_s"]
    first = f"; 99 % had their first token within {format_time(last)}" if last is not None else ""
    return (f"By {row['policy']}, as simulated: {row['in_time']:.1%} of requests in time{first}; "
            f"{row['instances_mean']:.3g} instances in the mean, {row['instances_most']} at most, "
            f"{row['card_hours']:.4g} card hours.")  # fmt: skip


def _server(program: str | None) -> str:
    if program is None:
        return ("`roundelay llm` serves a small model on processors: this is to try how it scales. "
                "Name the server of your model by --program.")  # fmt: skip
    return (f"The leader's program must listen on port {PORT}, and have /health, and at /metrics "
            "roundelay_llm_running and roundelay_llm_requests (requests running; running or "
            "waiting), or the names here must be those it has.")  # fmt: skip


def _hosts(where: Cluster | None, pods: int) -> Iterator[str]:
    if where is None:
        yield "No --cluster says what a host has: an instance is taken to be one pod."
    if pods > 1:
        yield ("`roundelay place --for lws` asks for domains of the network, too, so that an "
               "instance stays together.")  # fmt: skip


def write(found: Instances, asked: Mapping[str, Any]) -> None:
    """Write the manifests into the folder of --write, if what --crds names keeps them whole.

    Raises:
        RoundelayError: it doesn't.
        OSError: a file can't be written.
    """
    texts, folder = files(found, definitions(asked["crds"])), asked["folder"]
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_whole(folder / name, text)
        click.echo(say("wrote {path}", path=folder / name), err=True)
