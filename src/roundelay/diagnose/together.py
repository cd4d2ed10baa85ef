"""Any mixture of files in, findings out, in the order of what matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from ..errors import RoundelayError
from ..formats.chakra import read_chakra
from ..formats.fabric import Fabric
from ..formats.flight import read_flight
from ..formats.iblink import read_iblinkinfo, read_ibnet_flat
from ..formats.ibnet import read_ibnetdiscover
from ..formats.inspector import read_inspector_lines
from ..formats.kineto import read_kineto
from ..formats.kueue import read_kueue
from ..formats.machine import Machine
from ..formats.msccl_xml import read_msccl
from ..formats.nccl_graph import read_nccl_graph
from ..formats.nccl_log import read_nccl_lines
from ..formats.nccl_tests import read_nccl_tests
from ..formats.nccl_topology import read_nccl_topology
from ..formats.note import Note
from ..formats.plain import text_of
from ..formats.ras import read_ras
from ..formats.rocm_topo import read_rocm_topo
from ..formats.slurm import read_topology_conf
from ..formats.topo_matrix import read_topo_matrix
from ..formats.topograph import read_topograph
from ..formats.topology_yaml import read_topology_yaml
from ..formats.watchdog import read_watchdog_lines
from ..i18n import message
from ..topology import Cluster
from . import Machine as Named
from . import check
from .calls import call_findings, jobs_of
from .case import machine_of
from .diagnosis import Diagnosis
from .expected import Predict
from .fabrics import fabric_findings
from .finding import Evidence, Finding, tell
from .given import Given
from .graphs import graph_findings
from .logs import log_findings
from .machines import machine_findings
from .measured import measured_findings
from .orders import dump_findings, trace_findings
from .placements import kueue_findings, nodelist_findings
from .plans import msccl_findings, plan_findings, read_plan
from .ras import ras_findings
from .recognise import kinds_of
from .times import graph_time_findings, inspected_findings, time_findings
from .watched import watched_findings

NOT_READ: Final = MappingProxyType(
    {
        "schedule": message("a schedule file, which verify, cost and show take"),
    }
)
"""What is recognised, and what it is."""


@dataclass(frozen=True)
class Model:
    """What rules about speed need: see `check`."""

    cluster: Cluster | None
    predict: Predict
    machine: Named


def diagnose(
    files: Sequence[Given], cluster: Cluster | None, predict: Predict, machine: Named
) -> Diagnosis:
    """Read what there is, and say what is to be said.

    Args:
        files: any mixture.
        cluster: where tables were measured; without one, the cards that they name tell.
        predict: the model.
        machine: gives named machines.

    Raises:
        RoundelayError: no file can be read.
    """
    found, model = Diagnosis(), Model(cluster, predict, machine)
    for given in files:
        try:
            kinds = kinds_of(given)
            if not kinds:
                raise RoundelayError(
                    "nothing known is in it; expected such as a topology, a log of NCCL, a table "
                    "of nccl-tests, a flight recorder dump, messages of a watchdog, a trace, a "
                    "plan, or a topology of Slurm or Kueue"
                )
            for kind in kinds:
                _take(found, given, kind, model)
            found.files.append((given.name, kinds))
        except (RoundelayError, OSError) as error:  # one that cannot be read hides no other
            why = str(error).removeprefix(f"{given.name}: ")
            if len(files) == 1:
                raise RoundelayError(f"{given.name}: {why}") from None
            found.files.append((given.name, ()))
            what = message("left out: {error}", error=why)
            found.notes.append((given.name, Note(0, what)))
    if found.files and not any(kinds for _, kinds in found.files):
        file, note = found.notes[0]
        raise RoundelayError(f"none of {len(files)} files can be read. {file}: {note.what}")
    found.findings[:0] = [
        *_dumped(found), *time_findings(found.traces), *trace_findings(found.traces),
        *ras_findings(found.reports), *inspected_findings(found.inspected),
    ]  # fmt: skip
    found.sort()
    return found


def _dumped(found: Diagnosis) -> list[Finding]:
    jobs = jobs_of(found.dumps)
    if len(jobs) > 1:
        what = message("dumps of one rank are of several jobs; each folder, and each file of "
                       "several ranks, is judged by itself")  # fmt: skip
        found.notes += [(job[0].file, Note(0, what)) for job in jobs]
    return [f for job in jobs for f in (*call_findings(job), *dump_findings(job))]


def _take(found: Diagnosis, given: Given, kind: str, model: Model) -> None:
    if kind in NOT_READ:
        what = message("{what}: known, but there is nothing to say of it yet", what=NOT_READ[kind])
        found.notes.append((given.name, Note(0, what)))
        return
    TAKE[kind](found, given, model)


def _machine(read: Callable[[bytes], Machine]) -> Callable[[Diagnosis, Given, Model], None]:
    def take(found: Diagnosis, given: Given, model: Model) -> None:
        data = given.whole()
        machine = read(data)
        lines = text_of(data).split("\n")
        found.machines.append((given.name, machine))
        found.findings += machine_findings(given.name, machine, lines)
        found.notes += [(given.name, note) for note in machine.notes]

    return take


def read_machine(given: Given) -> Machine:
    """The machine that a file describes.

    Raises:
        RoundelayError: it describes none.
    """
    kinds = kinds_of(given)
    read = next((READ[kind] for kind in kinds if kind in READ), None)
    if read is None:
        raise RoundelayError(
            f"{given.name}: no topology; expected NCCL's XML, nvidia-smi topo -m or rocm-smi "
            "--showtopo"
        )
    return read(given.whole())


def _told(
    read: Callable[[bytes], Any], tell: Callable[[str, Any], list[Finding]]
) -> Callable[[Diagnosis, Given, Model], None]:
    def take(found: Diagnosis, given: Given, model: Model) -> None:
        value = read(given.whole())
        found.findings += tell(given.name, value)
        found.notes += [(given.name, note) for note in getattr(value, "notes", ())]

    return take


def _fabric(
    read: Callable[[bytes], Fabric | Sequence[Fabric]],
) -> Callable[[Diagnosis, Given, Model], None]:
    def take(found: Diagnosis, given: Given, model: Model) -> None:
        value = read(given.whole())
        for fabric in (value,) if isinstance(value, Fabric) else value:
            file = f"{given.name}: {fabric.name}" if fabric.name else given.name
            found.hosts |= set(fabric.all_hosts)
            found.findings += fabric_findings(file, fabric)
            found.notes += [(given.name, note) for note in fabric.notes]

    return take


def _log(found: Diagnosis, given: Given, model: Model) -> None:
    log = read_nccl_lines(given.lines())
    found.hosts |= {thread.host for thread in log.threads.values()} - {""}
    found.findings += log_findings(given.name, log)
    found.notes += [(given.name, note) for note in log.notes]


def _watchdog(found: Diagnosis, given: Given, model: Model) -> None:
    found.findings += watched_findings(given.name, read_watchdog_lines(given.lines()))


def _flight(found: Diagnosis, given: Given, model: Model) -> None:
    dumps = read_flight(given.whole(), given.name)
    for dump in dumps:
        found.notes += [(given.name, note) for note in dump.notes]
        if dump.rank is None:
            what = message("no rank in the dump, and no number at the end of its name; left out")
            found.notes.append((given.name, Note(0, what)))
    found.dumps += dumps


def _trace(found: Diagnosis, given: Given, model: Model) -> None:
    with given.stream() as file:
        trace = read_kineto(file, given.name)
    if trace.rank is not None and trace.rank in {other.rank for other in found.traces}:
        what = message("another trace of rank {rank}; who is late is told by the first of them",
                       rank=trace.rank)  # fmt: skip
        found.notes.append((given.name, Note(0, what)))
    found.hosts |= {trace.host} - {""}
    found.notes += [(given.name, Note(*note)) for note in trace.notes]
    found.traces.append(trace)


def _execution(found: Diagnosis, given: Given, model: Model) -> None:
    graph = read_chakra(given.whole())
    found.findings += graph_time_findings(given.name, graph)
    found.notes += [(given.name, note) for note in graph.notes]


def _ras(found: Diagnosis, given: Given, model: Model) -> None:
    reports, notes = read_ras(given.whole())
    found.reports += [(given.name, report) for report in reports]
    found.reports.sort(key=lambda pair: pair[1].time)
    found.hosts |= {host for report in reports for host in report.hosts}
    found.notes += [(given.name, note) for note in notes]


def _inspector(found: Diagnosis, given: Given, model: Model) -> None:
    inspection = read_inspector_lines(given.lines())
    found.hosts |= {call.host for call in inspection.calls} - {""}
    found.notes += [(given.name, note) for note in inspection.notes]
    found.inspected.append((given.name, inspection))


def _speed(found: Diagnosis, given: Given, model: Model) -> None:
    data = given.whole()
    cluster = model.cluster or _measured_on(found, given.name, data, model.machine)
    try:
        report = check(data, given.name, cluster, model.predict, model.machine)
    except RoundelayError as error:
        if data.lstrip().startswith(b"{") or found.hosts:  # a log may hold a few words of a table
            what = message("left out: {error}", error=str(error))
            found.notes.append((given.name, Note(0, what)))
            return
        found.findings.append(tell(
            "no_table", given.name, {"what": str(error)}, ["{what}."],
            "Mend that first; there is no figure to judge.", (Evidence(given.name, 0, ""),),
            fault=True,
        ))  # fmt: skip
        return
    found.findings += measured_findings(given.name, data)
    found.findings += report.findings
    found.notes += [(given.name, note) for note in report.notes]


def _measured_on(found: Diagnosis, name: str, data: bytes, machine: Named) -> Cluster | None:
    """The named machine with the cards that a table lists, as many nodes of it."""
    if data.lstrip().startswith(b"{"):
        return None
    try:
        tables = read_nccl_tests(data).tables
    except RoundelayError:
        return None
    for table in tables:
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


READ: Final = MappingProxyType(
    {
        "nccl_topology": read_nccl_topology, "topo_matrix": read_topo_matrix,
        "rocm_topo": read_rocm_topo,
    }
)  # fmt: skip
"""What describes a machine."""
TAKE: Final = MappingProxyType(
    {
        **{kind: _machine(read) for kind, read in READ.items()},
        "nccl_graph": _told(read_nccl_graph, graph_findings),
        "nccl_log": _log, "watchdog": _watchdog, "flight": _flight, "nccl_tests": _speed,
        "facts": _speed, "topology_conf": _fabric(read_topology_conf),
        "trace": _trace, "execution_trace": _execution, "ras": _ras, "inspector": _inspector,
        "ibnetdiscover": _fabric(read_ibnetdiscover), "ibnet_flat": _fabric(read_ibnet_flat),
        "iblinkinfo": _fabric(read_iblinkinfo), "topograph": _fabric(read_topograph),
        "topology_yaml": _fabric(read_topology_yaml), "kueue": _told(read_kueue, kueue_findings),
        "nodelist": _told(text_of, nodelist_findings), "msccl": _told(read_msccl, msccl_findings),
        "mscclpp": _told(read_plan, plan_findings),
    }
)  # fmt: skip
"""What is done with each kind."""
