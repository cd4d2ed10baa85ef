"""`roundelay moe`: dispatch to experts by each scheme, between processes or on the clock."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from ..moe.balance import Balance, balances
from ..moe.bench import BYTES, SAMPLE, SENDERS, Figure, Load, card_of, measured, on_clock
from ..moe.bench import sender_seconds as seconds_of
from ..moe.gate import MOST_SKEW
from ..moe.schemes import SCHEMES
from ..run import job_from_environment
from ..run.launch import launch, python_command, rank_environments
from ..topology import Cluster
from ..units import format_size, format_time
from .base import Command, language, say
from .launch import _tell
from .moe_balance import entries, told
from .moe_load import leave_out, load_here, load_on, present, read
from .moe_schedule import DEFAULTS, drawn, proved, written
from .output import emit, figure, table
from .targets import cluster_option, only_one, ranks_option

MOST_RANKS: Final = 64
"""Processes that are started here, at most."""
TIMEOUT: Final = 300.0


class _Again(Command):
    """A command that knows its words, to run itself again in other processes."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, then parse them."""
        ctx.meta[__name__] = list(args)
        return super().parse_args(ctx, args)


@click.command(
    cls=_Again,
    short_help="dispatch tokens to experts: prove, show and time each scheme",
    help="`moe bench` sends tokens to experts and back by three schemes: flat_expert, a copy for "
    "each expert; flat_card, a copy for each card; and two_hop, a copy for each node that is "
    "forwarded inside it. It prints copies and bytes between nodes and inside, and the time: "
    "between processes of this machine (-n), or on the clock (--cluster). `moe verify` proves the "
    "schedules, `moe show` shows the steps of one, and `moe export` writes one to a file, which "
    "verify, show, cost and simulate take.",
)
@click.argument("action", metavar="bench|verify|show|export",
                type=click.Choice(("bench", *DEFAULTS)))  # fmt: skip
@click.argument("scheme", required=False, type=click.Choice(list(SCHEMES)), metavar="[SCHEME]")
@ranks_option(None, "processes of this machine that really exchange (default 4)")
@cluster_option()
@click.option(
    "--nodes",
    type=click.IntRange(1),
    help="nodes that the ranks are divided among (default 2; of a cluster, its own; verify 8)",
)
@click.option("--cards", type=click.IntRange(1),
              help="cards of a node (default: what -n leaves; show 2, verify 8)")  # fmt: skip
@click.option("--experts", type=click.IntRange(1),
              help="routed experts in all (default 256; show 8)")  # fmt: skip
@click.option("--top-k", type=click.IntRange(1),
              help="experts of a token (default 8; show 2)")  # fmt: skip
@click.option(
    "--tokens",
    type=click.IntRange(1),
    help="tokens of each card (default 4096; between processes 256; verify 32; show 1)",
)
@click.option("--hidden", type=click.IntRange(1),
              help="numbers of a token (default 7168; between processes 1024)")  # fmt: skip
@click.option(
    "--max-nodes",
    type=click.IntRange(1),
    help="nodes that the gate lets a token go to (default: all)",
)
@click.option(
    "--scores",
    default="uniform",
    metavar="[uniform|FILE]",
    help="scores of the gate: uniform, or [token, expert] in a file of numpy.save",
)
@click.option("--skew", type=click.FloatRange(0, MOST_SKEW),
              help="draw scores so that the k-th most liked expert has the weight k^-SKEW (default "
              "0: all alike)")  # fmt: skip
@click.option("--redundant", type=click.IntRange(0),
              help="slots beside one for each expert, given to the busiest; bench says what that "
              "brings (default: every expert once, in order)")  # fmt: skip
@click.option("--dtype", type=click.Choice(list(BYTES)),
              help="how tokens are sent (default fp8; between processes float32); what went as fp8 "
              "comes back as bfloat16, between processes as float32")  # fmt: skip
@click.option("--scales", is_flag=True, help="count the scales of fp8, four bytes for 128 numbers")
@click.option("--sms", type=click.IntRange(1), default=SENDERS,
              help="multiprocessors of a card that send (default 20)")  # fmt: skip
@click.option("--iters", type=click.IntRange(1), default=10, help="timed calls (default 10)")
@click.option("--seed", type=click.IntRange(0), default=1, help="of drawn scores (default 1)")
@click.option("--combine", "back", is_flag=True, help="show or export the way back")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="the file that export writes (default: to stdout)")  # fmt: skip
def command(
    action: str,
    scheme: str | None,
    ranks: list[int] | None,
    where: Cluster | None,
    scores: str,
    sms: int,
    iters: int,
    back: bool,
    output: Path | None,
    as_json: str | None,
    **asked: Any,
) -> int:
    """Time and print, or do what else is asked."""
    leave_out(action, where is not None)
    asked["scores"] = read(scores)
    if action != "bench":
        if ranks or where:
            raise click.UsageError(f"-n and --cluster are for bench; {action} takes --nodes and "
                                   "--cards")  # fmt: skip
        load = Load(**DEFAULTS[action] | present(asked))
        if action == "verify":
            return proved(load, scheme, as_json)
        if action == "show":
            drawn(load, scheme, back, as_json)
        else:
            written(load, scheme, back, output, as_json)
        return 0
    if scheme or back or output:
        raise click.UsageError("bench takes all schemes, there and back; leave out the scheme, "
                               "--combine and -o")  # fmt: skip
    if where is not None:
        if ranks:
            raise click.UsageError("-n is for processes of this machine; leave it out with "
                                   "--cluster")  # fmt: skip
        load = load_on(where, **asked)
        found = balances(load, partial(on_clock, cluster=where), SAMPLE)
        _show(found, as_json, where, sms)
        return 0
    job = job_from_environment()
    if job.ranks == 1 and not os.environ.get(INSIDE):
        count = only_one(ranks) if ranks else 4
        if count > MOST_RANKS:
            raise click.UsageError(f"-n {count}; expected 1 to {MOST_RANKS} processes here")
        load_here(count, **asked)  # what is wrong is said once, before they start
        return _start(count)
    load = load_here(job.ranks, **asked)
    from ..communicator import init

    with init(TIMEOUT) as comm:
        balanced = balances(load, partial(measured, comm=comm, iters=iters))
        if comm.rank == 0:
            _show(balanced, as_json)
    return 0


INSIDE: Final = "ROUNDELAY_MOE_BENCH"
"""Set in the processes that `-n` starts; one alone is a job, too."""


def _start(ranks: int) -> int:
    """The same command again, as the ranks of a job."""
    given = click.get_current_context().meta[__name__]
    words = python_command(["roundelay", "moe", *given, "--lang", language()], module=True)
    told = {**os.environ, INSIDE: "1"}
    return launch(words, rank_environments(told, ranks), _tell, interrupt=signal.SIGTERM)


def _show(
    balanced: list[Balance], as_json: str | None, where: Cluster | None = None, sms: int = SENDERS
) -> None:
    load, figures = balanced[-1].load, balanced[-1].figures
    card = card_of(where) if where else None
    rows = [_row(load, f) for f in figures]
    found: dict[str, Any] = {
        "cluster": where.name if where else None,
        "nodes": load.nodes, "cards": load.cards, "experts": load.experts, "top_k": load.top_k,
        "tokens": load.tokens, "hidden": load.hidden, "dtype": load.dtype, "skew": load.skew,
        "redundant": load.redundant, "rows": rows,
        "balance": entries(balanced),
        "sms": sms if card else None,
        "sms_share": sms / card.sms if card else None,
    }  # fmt: skip
    if card:
        for row, figure in zip(rows, figures, strict=True):
            there, back = seconds_of(figure, sms, card)
            row["senders_us"], row["combine_senders_us"] = there * 1e6, back * 1e6
    emit(found, as_json, lambda: _told(load, found, where))


def _row(load: Load, f: Figure) -> dict[str, Any]:
    there, back = f.times
    bounds = f.bounds
    return {
        "scheme": f.scheme,
        "max_nodes": load.max_nodes,
        "copies_between_nodes": f.copies.between,
        "copies_in_node": f.copies.inside,
        "bytes_between_nodes": f.sent[0],
        "bytes_in_node": f.inside[0],
        "time_us": there * 1e6,
        "GBps": f.sent[0] / there / 1e9,
        "combine_bytes_between_nodes": f.sent[1],
        "combine_bytes_in_node": f.inside[1],
        "combine_time_us": back * 1e6,
        "combine_GBps": f.sent[1] / back / 1e9,
        "bound_us": bounds[0].time * 1e6 if bounds else None,
        "network_bound_us": bounds[0].between * 1e6 if bounds else None,
        "inside_bound_us": bounds[0].inside * 1e6 if bounds else None,
        "combine_bound_us": bounds[1].time * 1e6 if bounds else None,
        "binding": bounds[0].binding if bounds else None,
    }  # fmt: skip


def _told(load: Load, found: dict[str, Any], where: Cluster | None) -> str:
    limit = say("all") if load.max_nodes is None else str(load.max_nodes)
    lines = [
        say("{nodes:node|nodes} of {cards:card|cards}, {experts:expert|experts}, top {top_k}, "
            "nodes of a token: {limit}; {tokens:token|tokens} of {hidden} {dtype} a card",
            limit=limit,
            **{k: found[k] for k in ("nodes", "cards", "experts", "top_k", "tokens", "hidden",
                                     "dtype")}),
        "",
        _table(found["rows"], bounds=where is not None),
        "",
        *told(found["balance"]),
    ]  # fmt: skip
    if where is not None:
        lines += ["", *_notes(found, where)]
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]], bounds: bool) -> str:
    head = ["scheme", "", "copies between", "copies inside", "bytes between", "bytes inside",
            "time", "GB/s"]  # fmt: skip
    if bounds:
        head += ["bound", "binding"]
    lines = []
    for row in rows:
        for part, name in (("", "dispatch"), ("combine_", "combine")):
            line = [
                row["scheme"] if not part else "", say(name),
                f"{row['copies_between_nodes']:.3f}", f"{row['copies_in_node']:.3f}",
                format_size(row[f"{part}bytes_between_nodes"]),
                format_size(row[f"{part}bytes_in_node"]),
                format_time(row[f"{part}time_us"] * 1e-6), figure(row[f"{part}GBps"]),
            ]  # fmt: skip
            if bounds:
                where = say("network") if row["binding"] == "between" else say("inside")
                line += [format_time(row[f"{part}bound_us"] * 1e-6), where]
            lines.append(line)
    return table([say(h) if h else h for h in head], lines, right="cdefghi")


def _notes(found: dict[str, Any], where: Cluster) -> list[str]:
    last = found["rows"][-1]
    bound, inside = (format_time(last[k] * 1e-6) for k in ("network_bound_us", "inside_bound_us"))
    told = [say("{scheme}: {inside} is the bound of the links inside.", scheme=last["scheme"],
                inside=inside)]  # fmt: skip
    if last["network_bound_us"]:
        told = [say("{scheme}: {bound} is the bound of a network of {rate:.0f} GB/s a card, and "
                    "{inside} that of the links inside.", scheme=last["scheme"], bound=bound,
                    inside=inside, rate=where.network_rate / 1e9)]  # fmt: skip
    if found["sms"]:
        told.append(say("Sending with {sms} multiprocessors takes {share} from computing; they can "
                        "do it in {time}.", sms=found["sms"], share=f"{found['sms_share']:.1%}",
                        time=format_time(last["senders_us"] * 1e-6)))  # fmt: skip
    return told
