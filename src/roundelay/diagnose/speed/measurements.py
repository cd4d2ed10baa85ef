"""Measurements among the files: tables, lines of DeepEP's tests, and facts."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ...errors import RoundelayError
from ...formats.nccl_tests import Measured, NoTable, read_nccl_tests_json
from ...formats.note import Note
from ...i18n import message
from ...topology import Cluster
from .. import Machine as Named
from .. import Text, check, judged_text, read_text
from ..diagnosis import Diagnosis, Model
from ..finding import Evidence, Figures, Finding, tell
from ..given import Given
from .case import machine_of
from .facts import Facts
from .measured import measured_findings

KNOWN: Final = ("card", "ranks", "nodes", "cards", "nics", "nic", "nic_per_card", "inside", "busbw",
                "algbw", "peak", "average", "measured", "network", "expected", "before", "after",
                "by_nodes", "by_ranks", "by_version", "by_pair", "runs", "p2p", "layouts",
                "layout_times", "times", "sizes",
                "settings", "machine")  # fmt: skip
"""Facts that are told where nothing follows from them."""
MEASURED: Final = frozenset(("busbw", "algbw", "peak", "measured", "before", "by_nodes", "by_ranks",
                             "by_version", "by_pair", "runs", "average", "times",
                             "layouts", "layout_times", "p2p", "copies"))  # fmt: skip
CARRIERS: Final = frozenset(("card", "nic", "nic_per_card", "inside", "machine"))
"""Facts of which one of each kind is needed to judge."""
_WANTED: Final = MappingProxyType({
    "gpu": frozenset(("card", "machine")), "nodes": frozenset(("nodes",)),
    "nics_per_node": frozenset(("nics",)), "nic_Gbps": frozenset(("nic",)),
})  # fmt: skip
"""Names to be written down, and the facts that they give."""


def take_facts(found: Diagnosis, given: Given, model: Model) -> None:
    """Facts in JSON."""
    try:
        report = check(given.whole(), given.name, model.cluster, model.predict, model.machine)
    except RoundelayError as error:
        what = message("left out: {error}", error=str(error).removeprefix(f"{given.name}: "))
        found.notes.append((given.name, Note(0, what)))
        return
    found.findings += report.findings or _understood(given.name, report.facts)
    found.notes += [(given.name, note) for note in report.notes]


def _understood(file: str, facts: Facts | None) -> list[Finding]:
    """Of facts of which nothing can be said: what is known of them, and what is missing."""
    known = {name: value for name in KNOWN if (value := getattr(facts, name, None))}
    if not known:
        return []
    shown = [f"{name} = {_shown(value)}" for name, value in known.items()]
    reason = ["Understood: {known}."]
    if not MEASURED & set(known):
        reason.append("What was measured is missing: busbw_GBps at the largest size.")
    figures: Figures = {"known": "; ".join(shown)}
    if not CARRIERS & set(known):
        figures["missing"] = ", ".join(name for name, fields in _WANTED.items()
                                       if not fields & set(known))  # fmt: skip
        reason.append("What carries it is missing: {missing}.")
    if len(reason) == 1:
        reason.append("Nothing that is looked for is off by these figures.")
    return [tell("understood", file, figures, reason,
                 "Write these into the object, too, or give the table that nccl-tests prints.",
                 confidence=0.5)]  # fmt: skip


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(each)}".strip() for key, each in list(value.items())[:6])
    return f"{value:g}" if isinstance(value, float) else str(value)[:80]


def take_text(found: Diagnosis, given: Given, model: Model) -> None:
    """Tables, or lines of DeepEP's tests; of a log that has neither, only a note is told."""
    try:
        text = read_text(given.lines)
    except NoTable as error:
        if given.name in found.measured:
            return
        if any(name == given.name for name, _ in found.logs):  # a log may hold words of a table
            what = message("left out: {error}", error=str(error))
            found.notes.append((given.name, Note(0, what)))
            return
        found.findings.append(tell(
            "no_table", given.name, {"what": str(error)}, ["{what}."],
            "Mend that first; there is no figure to judge.",
            (Evidence(given.name, error.line.number, error.line.text.strip()[:300]),), fault=True,
        ))  # fmt: skip
        return
    _judge(found, given.name, text, model)


def take_json(found: Diagnosis, given: Given, model: Model) -> None:
    """A table that nccl-tests has written with -J."""
    _judge(found, given.name, Text((), read_nccl_tests_json(given.whole())), model)


def _judge(found: Diagnosis, name: str, text: Text, model: Model) -> None:
    measured = text.measured or Measured((), (), ())
    found.hosts |= {device.host for device in (*measured.apart, *measured.listed)}
    cluster = model.cluster or _measured_on(found, name, measured, model.machine)
    report = judged_text(text, name, cluster, model.predict, model.cluster is None)
    between = any((table.nodes or 1) > 1 for table in measured.tables)
    rows = () if between and model.cluster is None else report.rows  # the network is only assumed
    found.findings += measured_findings(name, measured, cluster, rows)
    found.findings += report.findings
    found.notes += [(name, note) for note in report.notes]


def _measured_on(found: Diagnosis, name: str, measured: Measured, machine: Named) -> Cluster | None:
    """The named machine with the cards that a table lists, as many nodes of it."""
    for table in measured.tables:
        found.hosts |= {device.host for device in table.devices}
        cards = sorted({device.name for device in table.devices})
        kind = next(filter(None, map(machine_of, cards)), None)
        if kind and table.nodes and table.ranks and table.ranks > 1:
            where = f"{kind}:{table.nodes}"
            try:
                cluster = machine(where)
            except RoundelayError:
                continue
            what = message("judged as {where}, by its cards; --cluster names another", where=where)
            found.notes.append((name, Note(table.line, what)))
            return cluster
    return None
