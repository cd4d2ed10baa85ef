"""Measurements among the files: tables, lines of DeepEP's tests, and facts."""

from __future__ import annotations

from ..errors import RoundelayError
from ..formats.nccl_tests import Measured, NoTable, read_nccl_tests_json
from ..formats.note import Note
from ..i18n import message
from ..topology import Cluster
from . import Machine as Named
from . import Text, check, judged_text, read_text
from .case import machine_of
from .diagnosis import Diagnosis, Model
from .finding import Evidence, tell
from .given import Given
from .measured import measured_findings


def take_facts(found: Diagnosis, given: Given, model: Model) -> None:
    """Facts in JSON."""
    try:
        report = check(given.whole(), given.name, model.cluster, model.predict, model.machine)
    except RoundelayError as error:
        what = message("left out: {error}", error=str(error).removeprefix(f"{given.name}: "))
        found.notes.append((given.name, Note(0, what)))
        return
    found.findings += report.findings
    found.notes += [(given.name, note) for note in report.notes]


def take_text(found: Diagnosis, given: Given, model: Model) -> None:
    """Tables, or lines of DeepEP's tests; of a log that has neither, only a note is told."""
    try:
        text = read_text(given.lines)
    except NoTable as error:
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
    report = judged_text(text, name, cluster, model.predict)
    found.findings += measured_findings(name, measured, cluster, report.rows)
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
