"""Say whether what was measured is as it should be, and what to look at if not.

`check` reads printed tables of nccl-tests, lines of DeepEP's tests, or facts in a JSON object. Each
rule looks for one thing, by figures alone; the model's times come from outside, so that rules know
no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, NamedTuple

from ..errors import RoundelayError
from ..formats.deepep import Printed, printed_in
from ..formats.nccl_log import lines_of
from ..formats.nccl_tests import (
    Measured,
    NoTable,
    Note,
    Table,
    bus_factor,
    read_nccl_tests_json,
    read_nccl_tests_lines,
)
from ..i18n import Message, Translate, message
from ..topology import Cluster
from .finding import Evidence, Finding
from .given import HEAD
from .speed.cards import instance_of
from .speed.case import Case, generation_of, machine_of
from .speed.expected import Judged, Predict, Prediction, fitted, judge
from .speed.facts import Facts
from .speed.facts_reader import read_facts
from .speed.possible import Bounds, odd_findings, sound_facts, sound_table
from .speed.rules import findings

__all__ = ["Evidence", "Finding", "Judged", "Predict", "Prediction", "Report", "check"]

Machine = Callable[[str], Cluster]
"""A named machine, such as "dgx-h100"."""


@dataclass(frozen=True)
class Report:
    """What came out.

    Attributes:
        findings: in order of weight.
        rows: of tables, each form beside what is expected; none without a cluster.
        notes: what was odd in the text, by line; 0 stands for all of it.
        facts: that were judged, if no table was.
    """

    findings: tuple[Finding, ...]
    rows: tuple[Judged, ...]
    notes: tuple[Note, ...]
    facts: Facts | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is off."""
        return not any(finding.fault for finding in self.findings)

    def as_json(self, translate: Translate) -> dict[str, Any]:
        """The value of `--json`."""
        return {
            "ok": self.ok,
            "findings": [finding.as_json(translate) for finding in self.findings],
            "rows": [row.as_json() for row in self.rows],
            "notes": [{"line": n.line, "text": n.what.tell(translate)} for n in self.notes],
        }


def check(
    data: bytes, file: str, cluster: Cluster | None, predict: Predict, machine: Machine
) -> Report:
    """Judge a measurement.

    Args:
        data: a file: tables of nccl-tests or its JSON, lines of DeepEP's tests, or a JSON object
            of facts.
        file: its name, for evidence.
        cluster: where it was measured; without one, facts are judged by the card they name.
        predict: the model.
        machine: gives named machines.

    Raises:
        RoundelayError: nothing in the file can be judged; the message says what was found.
    """
    if is_json_of_tests(data[:HEAD]):
        return judged_text(Text((), read_nccl_tests_json(data)), file, cluster, predict)
    if data.lstrip().startswith(b"{"):
        return _of_facts(read_facts(data, file), cluster, predict, machine)
    return judged_text(read_text(lambda: lines_of(BytesIO(data))), file, cluster, predict)


def is_json_of_tests(head: bytes) -> bool:
    """Whether a file that begins so is what nccl-tests writes with -J."""
    return head.lstrip()[:1] == b"{" and b'"results"' in head and b'"bus_bw"' in head


class Text(NamedTuple):
    """What a text holds: lines of DeepEP's tests, or tables."""

    printed: tuple[Printed, ...]
    measured: Measured | None


def read_text(raws: Callable[[], Iterable[bytes]]) -> Text:
    """The figures in lines, which are gone through once.

    Args:
        raws: gives the lines; called again where nothing is found.

    Raises:
        NoTable: there are no figures; the message says what was found instead.
    """
    printed: list[Printed] = []

    def passing() -> Iterator[bytes]:
        printed.clear()
        for number, raw in enumerate(raws(), 1):
            if line := printed_in(number, raw):
                printed.append(line)
            yield raw

    try:
        measured = read_nccl_tests_lines(passing)
    except NoTable:
        if not printed:
            raise
        return Text(tuple(printed), None)
    return Text(tuple(printed), measured)


def judged_text(
    text: Text, file: str, cluster: Cluster | None, predict: Predict, assumed: bool = False
) -> Report:
    """Judge the figures of a text; see `check`, and `Case.assumed`."""
    measured = text.measured
    if text.printed or measured is None:
        return _judged(_of_deepep(text.printed, file, cluster), cluster, predict, ())
    reports = [_of_table(table, file, cluster, predict, assumed) for table in measured.tables]
    notes = [*measured.notes, *(note for report in reports for note in report.notes)]
    return Report(
        tuple(f for report in reports for f in report.findings),
        tuple(r for report in reports for r in report.rows),
        tuple(notes),
    )


def _of_facts(facts: Facts, cluster: Cluster | None, predict: Predict, machine: Machine) -> Report:
    one = instance_of(facts.machine) if facts.machine else None
    if one is not None:
        facts.card = facts.card or one.card
        if not one.machine and not (facts.nics or facts.nic or facts.nic_per_card):
            facts.nics, facts.nic = one.nics, one.nic
    name = one.machine if one and one.machine else machine_of(facts.card or "")
    assumed = cluster is None and name is not None
    if cluster is None and name is not None:
        cluster = machine(name)
        if facts.nodes and cluster.hosts == 1:
            cluster = _scaled(cluster, facts.nodes)
    _busbw_of_algbw(facts)
    notes = [
        Note(0, message("not understood, and left out: {name}", name=n)) for n in facts.unknown
    ]
    notes += [
        Note(0, message("{name} = {value} cannot be what its name says, and is left out",
                        name=name, value=value)) for name, value in facts.odd
    ]  # fmt: skip
    return _judged(facts, cluster, predict, tuple(notes), assumed)


def _judged(
    facts: Facts,
    cluster: Cluster | None,
    predict: Predict,
    notes: tuple[Note, ...],
    assumed: bool = False,
) -> Report:
    sound, odd = sound_facts(facts, Bounds.of(cluster))
    told = findings(Case(sound, cluster, predict=predict, assumed=assumed))
    return Report((*odd_findings(facts.file, odd), *told), (), notes, facts)


def _scaled(cluster: Cluster, nodes: int) -> Cluster | None:
    """As many nodes of it; None of a machine whose network is not described."""
    try:
        return cluster.scaled(nodes)
    except RoundelayError:
        return None


def _busbw_of_algbw(facts: Facts) -> None:
    """Where only algbw is given: busbw, by the collective's factor."""
    ranks = facts.ranks or (facts.nodes or 1) * (facts.cards or 0)
    name = facts.collectives[0] if facts.collectives else ""
    if facts.busbw or ranks < 2 or not facts.algbw:
        return
    try:
        factor = float(bus_factor(name, ranks))
    except KeyError:
        return
    facts.busbw = {label: rate * factor for label, rate in facts.algbw.items()}
    facts.evidence.setdefault("busbw", facts.evidence.get("algbw", ()))


def _of_deepep(printed: Sequence[Printed], file: str, cluster: Cluster | None) -> Facts:
    facts = Facts(file, nodes=cluster.nodes if cluster else None)
    for line in printed:
        where = Evidence(file, line.line, line.text)
        if line.together is not None and line.together > (facts.together or 0.0):
            facts.together = line.together
            facts.evidence["together"] = (where,)
        if line.apart is not None:
            facts.apart = line.apart
            facts.evidence["apart"] = (*facts.evidence.get("apart", ()), where)
        if line.best is not None and line.best[0] > (facts.printed_rdma or 0.0):
            facts.printed_rdma, facts.printed_nvlink = line.best
            facts.evidence["printed_rdma"] = (where,)
        elif line.best is not None and not facts.printed_rdma:
            facts.printed_nvlink = max(facts.printed_nvlink or 0.0, line.best[1])
            facts.evidence.setdefault("printed_nvlink", (where,))
    return facts


def _of_table(
    table: Table, file: str, cluster: Cluster | None, predict: Predict, assumed: bool
) -> Report:
    sound, odd = sound_table(table, file, Bounds.of(cluster))
    told = tuple(odd_findings(file, odd))
    if sound is None:
        return Report(told, (), ())
    report = _of_sound(sound, file, cluster, predict, assumed)
    return Report((*told, *report.findings), report.rows, report.notes)


def _of_sound(
    table: Table, file: str, cluster: Cluster | None, predict: Predict, assumed: bool
) -> Report:
    facts, notes = _table_facts(table, file), []
    rows: tuple[Judged, ...] = ()
    why: Message | None
    if cluster is None:
        cards = {device.name for device in table.devices}
        name = next(filter(None, map(machine_of, sorted(cards))), None)
        hint = f"{name}:{table.nodes}" if name and table.nodes else "dgx-h100:2"
        why = message(
            "rows are not compared: name the cluster, such as --cluster {hint}", hint=hint
        )
    elif (card := _other_card(table, cluster)) is not None:
        why = message(
            "rows are not compared: the table is of {card}, and the cards of the cluster are "
            "{generation}; name the cluster where it was measured",
            card=card, generation=cluster.generation,
        )  # fmt: skip
        cluster = None
    else:
        cluster = fitted(cluster, table)
        rows, why = judge(table, cluster, predict)
        if cluster.hosts > 1:
            facts.nodes = None  # a host is not a node here
    if why is not None:
        notes.append(Note(table.line, why))
    case = Case(facts, cluster, table, rows, predict, assumed)
    return Report(tuple(findings(case)), rows, tuple(notes))


def _other_card(table: Table, cluster: Cluster) -> str | None:
    """A card that the table lists and that is of another generation than the cluster's."""
    for device in table.devices:
        known = generation_of(device.name)
        if known is not None and known != cluster.generation:
            return device.name
    return None


WAYS: Final = frozenset(
    ("NCCL_IB_DISABLE", "NCCL_NET", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_SOCKET_IFNAME",
     "NCCL_NET_GDR_LEVEL")
)  # fmt: skip
"""Settings of a command that take a way from data; others are often set on purpose, to compare."""


def _table_facts(table: Table, file: str) -> Facts:
    best = max(
        ((t.busbw, row) for row in table.rows for _, t in row.timings()), key=lambda pair: pair[0]
    )
    names = {device.name for device in table.devices}
    cited: tuple[Evidence, ...] = (Evidence(file, best[1].line, best[1].text),)
    return Facts(
        file, collectives=(table.collective,) if table.collective else (),
        card=names.pop() if len(names) == 1 else None, ranks=table.ranks, nodes=table.nodes,
        busbw={"": best[0]}, average=table.average, evidence={"busbw": cited},
        max_bytes=max(row.size for row in table.rows) or None,
        settings={name: value for name, value in table.settings if name in WAYS},
    )  # fmt: skip
