"""What Roundelay's commands take and write: clusters, jobs, arrivals, tables, logs and reports."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import Any, Final

import msgspec

from ...clusters import ENDINGS
from ...clusters import read as read_cluster
from ...errors import RoundelayError
from ...formats.plain import text_of
from ...i18n import counted
from ...place.job import Exchange
from ...place.reading import job_of
from ...place.sim import read_log, read_trace
from ...selection import Table
from ...units import format_size, format_time
from ..finding import Evidence, Figures, Finding, names, tell
from ..speed.possible import CARD, GB, NIC, Odd, odd_findings

LISTED: Final = 8


def cluster_findings(file: str, data: bytes) -> list[Finding]:
    """What a cluster file describes, and rates of it that cannot be.

    Raises:
        RoundelayError: it describes no possible cluster.
    """
    toml = b"[inside]" in data
    name = file if file.endswith(ENDINGS) else f"{file}.{'toml' if toml else 'yaml'}"
    cluster = read_cluster(data, name)
    nics = cluster.nics
    odd = [Odd("high", what, rate / GB, most, Evidence(file, 0, f"{what} rate"))
           for what, rate, most in (("inside", cluster.inside.rate, CARD), ("nics", nics.rate, NIC))
           if rate / GB > most]  # fmt: skip
    figures: Figures = {
        "name": cluster.name, "nodes": cluster.nodes, "cards": cluster.cards,
        "size": cluster.size, "generation": cluster.generation, "kind": cluster.inside.kind,
        "inside_GBps": cluster.inside.rate / GB, "nics": nics.count, "nic_GBps": nics.rate / GB,
    }  # fmt: skip
    reason = ["A cluster file: {name}, {nodes:node|nodes} of {cards:card|cards} ({generation}), "
              "{size:card|cards} in all; they reach one another by a {kind}, {inside_GBps} GB/s "
              "one way a card."]  # fmt: skip
    if nics.count:
        reason.append("A node has {nics:network card|network cards} of {nic_GBps} GB/s one way.")
    return [*odd_findings(file, odd, "machine"), tell(
        "cluster_file", file, figures, reason,
        "Give it to --cluster, here with what was measured there: then it is said what is to be "
        "expected.", (Evidence(file, 1, cluster.title or cluster.name),), confidence=0.95,
        area="machine",
    )]  # fmt: skip


def job_findings(file: str, data: bytes) -> list[Finding]:
    """What a job exchanges.

    Raises:
        RoundelayError: it is no job.
    """
    job = job_of(data, file, data.lstrip()[:1] == b"{")
    figures: Figures = {
        "name": job.name, "ranks": job.ranks, "layout": " x ".join(map(str, job.layout)),
        "exchanges": names([_exchange(e) for e in job.exchanges], LISTED) or "-",
    }  # fmt: skip
    return [tell(
        "job_file", file, figures,
        ["A job file: {name}, {ranks:rank|ranks} ({layout}); in a step it exchanges: {exchanges}."],
        "roundelay place FILE --cluster ... says where its ranks should go, and what that is "
        "worth.", (Evidence(file, 1, job.name),), confidence=0.95, area="machine",
    )]  # fmt: skip


def _exchange(one: Exchange) -> str:
    groups, members = one.groups.shape
    within = counted(groups, "group", "groups")
    return (f"{one.name} ({one.pattern}, {format_size(int(one.size))}, "
            f"{counted(one.calls, 'call', 'calls')}, {within} of {members})")  # fmt: skip


def arrival_findings(file: str, data: bytes) -> list[Finding]:
    """Jobs that arrive over time.

    Raises:
        RoundelayError: a line is no job.
    """
    text = text_of(data)
    jobs = read_trace(text, file)
    cards = [job.cards for job in jobs]
    figures: Figures = {
        "jobs": len(jobs), "span": format_time(jobs[-1].submit - jobs[0].submit),
        "least": min(cards), "most": max(cards), "median": float(median(cards)),
        "hours": sum(job.cards * job.seconds for job in jobs) / 3600,
    }  # fmt: skip
    reason = ["Arrivals of {jobs:job|jobs} within {span}, of {least} to {most} cards (median "
              "{median}); together they ask for {hours} card-hours."]  # fmt: skip
    if "duration_s" not in text.split("\n", 1)[0]:
        reason.append("Lengths are in steps, so hours rest on the median that is given.")
    return [tell(
        "arrivals", file, figures, reason,
        "roundelay cluster-sim --cluster ... --trace FILE runs them, by policy of placing.",
        (Evidence(file, 1, text.split("\n", 1)[0][:200]),), confidence=0.95, area="machine",
    )]  # fmt: skip


def log_findings(file: str, data: bytes) -> list[Finding]:
    """What `cluster-sim --events` has written.

    Raises:
        RoundelayError: what it tells cannot have happened.
    """
    log = read_log(data)
    figures: Figures = {
        "cluster": log.cluster, "nodes": log.nodes, "jobs": len(log.jobs),
        "policies": names([f"{t.policy} ({len(t.events)})" for t in log.policies]),
    }  # fmt: skip
    return [tell(
        "jobs_over_time", file, figures,
        ["What happened to {jobs:job|jobs} on {cluster} ({nodes:node|nodes}), by policy (events): "
         "{policies}."],
        "roundelay page FILE.html --jobs FILE shows it, event by event.",
        (Evidence(file, 1, log.cluster),), confidence=0.95, area="machine",
    )]  # fmt: skip


def table_findings(file: str, data: bytes) -> list[Finding]:
    """Which algorithm when, as `tune` has measured it.

    Raises:
        RoundelayError: it is no such table.
    """
    table = Table.read(text_of(data), file)
    if not table.rules:
        raise RoundelayError("a table of algorithms without a rule; expected [[rule]]")
    by = Counter(rule.collective for rule in table.rules)
    figures: Figures = {
        "rules": len(table.rules), "measured": table.measured or "?",
        "by": names([f"{name} {count}" for name, count in by.items()]) or "-",
    }  # fmt: skip
    return [tell(
        "algorithm_table", file, figures,
        ["A table of algorithms for Roundelay, {rules:rule|rules}: {by}; measured on: {measured}."],
        "Name it in ROUNDELAY_TABLE on machines like that one only.",
        (Evidence(file, 1, table.measured),), confidence=0.95, area="speed",
    )]  # fmt: skip


class _Report(msgspec.Struct):
    """A report of this command, as JSON."""

    ok: bool
    findings: list[dict[str, Any]]


def report_findings(file: str, data: bytes) -> list[Finding]:
    """A report of `diagnose` or `check`.

    Raises:
        RoundelayError: it is none.
    """
    try:
        report = msgspec.json.decode(data, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"no report of roundelay diagnose: {error}") from None
    kinds = [str(finding.get("kind"))[:80] for finding in report.findings]
    figures: Figures = {"findings": len(kinds), "kinds": names(kinds, LISTED) or "-"}
    return [tell(
        "report", file, figures,
        ["A report that Roundelay has written, with {findings:finding|findings}: {kinds}."],
        "Give the files that it was made from; a report of a report says nothing new.",
        (Evidence(file, 1, names(kinds, 3)),), confidence=0.95, area="speed",
    )]  # fmt: skip
