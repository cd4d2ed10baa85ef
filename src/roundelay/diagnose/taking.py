"""A file of each kind is read, and what it holds is put beside what other files hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Final

from ..errors import RoundelayError
from ..formats.bandwidth import read_bandwidth_lines
from ..formats.chakra import read_chakra
from ..formats.chrome import read_chrome
from ..formats.ended import read_ended_lines
from ..formats.fabric import Fabric
from ..formats.flight import read_flight
from ..formats.iblink import read_iblinkinfo, read_ibnet_flat
from ..formats.ibnet import read_ibnetdiscover
from ..formats.inspector import read_inspector_lines
from ..formats.inspector_prom import read_inspector_prom
from ..formats.iterations import read_iterations
from ..formats.kineto import read_kineto
from ..formats.kueue import read_kueue
from ..formats.lstopo import read_lstopo
from ..formats.machine import Machine
from ..formats.msccl_xml import read_msccl
from ..formats.nccl_graph import read_nccl_graph
from ..formats.nccl_log import read_nccl_lines
from ..formats.nccl_topology import read_logged_topology, read_nccl_topology
from ..formats.note import Note
from ..formats.pieces import read_pieces
from ..formats.plain import text_of
from ..formats.ras import read_ras
from ..formats.rocm_topo import read_rocm_topo
from ..formats.slurm import read_topology_conf
from ..formats.slurm_blocks import read_block_table
from ..formats.stacks import read_stacks_lines
from ..formats.topo_matrix import read_peers, read_topo_matrix, tables_of
from ..formats.topograph import read_topograph
from ..formats.topology_yaml import read_topology_yaml
from ..formats.watchdog import read_watchdog_lines
from ..i18n import message
from .diagnosis import Diagnosis, Model
from .fabric.block_tables import block_table_findings
from .fabric.controller import controller_findings
from .fabric.domains import domain_findings
from .fabric.fabrics import fabric_findings
from .fabric.placements import kueue_findings, nodelist_findings
from .fabric.queues import queue_findings
from .fabric.shown import shown_findings
from .finding import Finding
from .given import Given
from .hang.phrases import phrase_findings
from .hang.stores import store_findings
from .machine.alike import alike_findings
from .machine.graphs import graph_findings
from .machine.host import TOLD as OF_HOST
from .machine.machines import machine_findings
from .machine.peers import peer_findings
from .plans import msccl_findings, plan_findings, read_plan
from .recognise import kinds_of
from .speed.bandwidths import bandwidth_findings
from .speed.iterations import iteration_findings
from .speed.measurements import take_facts, take_json, take_text
from .times import graph_time_findings
from .times.kernel_shares import table_of_kernels_findings
from .times.pieces import piece_findings
from .times.profile_shares import profile_summary_findings

EXPECTED: Final = (
    "expected such as a topology, a log of NCCL, a table of nccl-tests, a flight recorder dump, "
    "messages of a watchdog, a trace, a plan, or a topology of Slurm or Kueue"
)


def taken(found: Diagnosis, given: Given, kinds: tuple[str, ...], model: Model) -> tuple[str, ...]:
    """Read a file as each kind that it may be; those that it was.

    Raises:
        RoundelayError: it can be read as none of them.
    """
    failed: dict[str, RoundelayError] = {}
    for kind in kinds:
        try:
            _take(found, given, kind, model)
        except RoundelayError as error:
            failed[kind] = error
            if len(failed) == len(kinds):
                raise next(iter(failed.values())) from None
    return tuple(kind for kind in kinds if kind not in failed)


def _take(found: Diagnosis, given: Given, kind: str, model: Model) -> None:
    TAKE.get(kind, _own(kind))(found, given, model)


def _own(kind: str) -> Callable[[Diagnosis, Given, Model], None]:
    def take(found: Diagnosis, given: Given, model: Model) -> None:
        from .own import TOLD  # which takes long to load

        found.findings += TOLD[kind](given.name, given.whole())

    return take


def _printed(
    findings: Callable[[str, bytes], list[Finding]],
) -> Callable[[Diagnosis, Given, Model], None]:
    def take(found: Diagnosis, given: Given, model: Model) -> None:
        found.findings += findings(given.name, given.whole())

    return take


def _machine(read: Callable[[bytes], Machine]) -> Callable[[Diagnosis, Given, Model], None]:
    def take(found: Diagnosis, given: Given, model: Model) -> None:
        data = given.whole()
        machine = read(data)
        lines = text_of(data).split("\n")
        found.machines.append((given.name, machine))
        found.findings += machine_findings(given.name, machine, lines)
        found.notes += [(given.name, note) for note in machine.notes]

    return take


def _matrices(found: Diagnosis, given: Given, model: Model) -> None:
    """The tables of `nvidia-smi topo`; a text may have those of several machines."""
    data = given.whole()
    tables = tables_of(data)
    lines = text_of(data).split("\n")
    first = True
    read: list[tuple[str, Machine]] = []
    for line, table in tables:
        if peers := read_peers(table):
            found.findings += peer_findings(given.name, peers, lines)
            continue
        machine = read_topo_matrix(table)
        name = given.name if first else f"{given.name}:{line}"
        found.machines.append((name, machine))
        found.findings += machine_findings(name, machine, lines)
        found.notes += [(given.name, note) for note in machine.notes]
        first = False
        read.append((name, machine))
    found.findings += alike_findings(read)


def read_machine(given: Given) -> Machine:
    """The machine that a file describes.

    Raises:
        RoundelayError: it describes none.
    """
    kinds = kinds_of(given)
    read = next((READ[kind] for kind in kinds if kind in READ), None)
    if read is None:
        raise RoundelayError(
            f"{given.name}: no topology; expected NCCL's XML, nvidia-smi topo -m, rocm-smi "
            "--showtopo, or a file of Slurm, InfiniBand's tools or topograph about switches"
        )
    return read(given.whole())


def read_fabrics(given: Given) -> tuple[Fabric, ...]:
    """The switches that a file describes, of each topology in it; none where it is another kind.

    Raises:
        RoundelayError: it is of such a kind and not sound.
    """
    read = next((FABRICS[kind] for kind in kinds_of(given) if kind in FABRICS), None)
    found = () if read is None else read(given.whole())
    return (found,) if isinstance(found, Fabric) else tuple(found)


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
    log = read_nccl_lines(given.lines(), given.name)
    found.hosts |= {thread.host for thread in log.threads.values()} - {""}
    found.logs.append((given.name, log))
    found.notes += [(given.name, note) for note in log.notes]


def _watchdog(found: Diagnosis, given: Given, model: Model) -> None:
    found.said.append((given.name, read_watchdog_lines(given.lines(), given.name)))


def _store(found: Diagnosis, given: Given, model: Model) -> None:
    stored = store_findings(given.name, given.lines())
    found.findings += stored
    taken = {one.line for f in stored if f.kind == "port_taken" for one in f.evidence}
    found.told.setdefault(given.name, set()).update(taken)


def _ended(found: Diagnosis, given: Given, model: Model) -> None:
    spoken = phrase_findings(given.name, given.lines())
    found.findings += spoken.findings
    found.told.setdefault(given.name, set()).update(spoken.told)
    ends = read_ended_lines(given.lines(), given.name)
    found.ended += [end for end in ends if end.line.number not in spoken.later]


def _stacks(found: Diagnosis, given: Given, model: Model) -> None:
    found.stacks += read_stacks_lines(given.lines(), given.name)


def _bandwidth(found: Diagnosis, given: Given, model: Model) -> None:
    told = bandwidth_findings(given.name, read_bandwidth_lines(given.lines()))
    found.measured |= {given.name} if told else set()
    found.findings += told


def _iterations(found: Diagnosis, given: Given, model: Model) -> None:
    found.findings += iteration_findings(given.name, read_iterations(given.lines()))


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
    other = trace.other.get("otherData")
    if isinstance(other, dict) and "roundelay" in other:
        from .own import timeline_findings

        found.findings += timeline_findings(given.name, read_chrome(given.whole()))
        return
    if trace.rank is not None and trace.rank in {other.rank for other in found.traces}:
        what = message("another trace of rank {rank}; who is late is told by the first of them",
                       rank=trace.rank)  # fmt: skip
        found.notes.append((given.name, Note(0, what)))
    found.hosts |= {trace.host} - {""}
    found.notes += [(given.name, Note(*note)) for note in trace.notes]
    found.traces.append(trace)


def _execution(found: Diagnosis, given: Given, model: Model) -> None:
    data = given.whole()
    try:
        graph = read_chakra(data)
    except RoundelayError:
        if not _part(found, given.name, data):
            raise
        return
    found.findings += graph_time_findings(given.name, graph)
    found.notes += [(given.name, note) for note in graph.notes]


def _pieces(found: Diagnosis, given: Given, model: Model) -> None:
    if not _part(found, given.name, given.whole()):
        raise RoundelayError(f"{given.name}: nothing known is in this JSON; {EXPECTED}")


def _hwloc(found: Diagnosis, given: Given, model: Model) -> None:
    raise RoundelayError(
        f"{given.name}: the file of hwloc (lstopo), which has no links between cards; expected "
        "NCCL's own, which any program writes that uses NCCL with NCCL_TOPO_DUMP_FILE=topo.xml, or "
        "the output of nvidia-smi topo -m"
    )


def _part(found: Diagnosis, name: str, data: bytes) -> bool:
    """Of what is cut out of a trace, or cut off; whether there is any."""
    pieces, notes = read_pieces(data)
    told = piece_findings(name, pieces)
    found.findings += told
    found.notes += [(name, note) for note in notes]
    return bool(told)


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


def _inspector_prom(found: Diagnosis, given: Given, model: Model) -> None:
    series, notes = read_inspector_prom(given.lines())
    found.hosts |= {one.node for one in series} - {""}
    found.notes += [(given.name, note) for note in notes]
    found.averaged.append((given.name, series))


READ: Final = MappingProxyType(
    {
        "nccl_topology": read_nccl_topology, "topo_matrix": read_topo_matrix,
        "rocm_topo": read_rocm_topo, "lstopo": read_lstopo, "logged_topology": read_logged_topology,
    }
)  # fmt: skip
"""What describes a machine."""
FABRICS: Final[MappingProxyType[str, Callable[[bytes], Fabric | Sequence[Fabric]]]] = (
    MappingProxyType(
        {
            "topology_conf": read_topology_conf, "topology_yaml": read_topology_yaml,
            "ibnetdiscover": read_ibnetdiscover, "ibnet_flat": read_ibnet_flat,
            "iblinkinfo": read_iblinkinfo, "topograph": read_topograph,
        }
    )
)  # fmt: skip
"""What describes switches."""
TAKE: Final = MappingProxyType(
    {
        **{kind: _machine(read) for kind, read in READ.items()}, "topo_matrix": _matrices,
        "nccl_graph": _told(read_nccl_graph, graph_findings),
        "nccl_log": _log, "watchdog": _watchdog, "ended": _ended, "store": _store,
        "bandwidth": _bandwidth, "iterations": _iterations,
        "stacks": _stacks,
        "flight": _flight, "nccl_tests": take_text,
        "nccl_tests_json": take_json,
        "facts": take_facts, **{kind: _fabric(read) for kind, read in FABRICS.items()},
        "trace": _trace, "execution_trace": _execution, "pieces": _pieces, "hwloc": _hwloc,
        "ras": _ras, "inspector": _inspector,
        "inspector_prom": _inspector_prom,
        "kueue": _told(read_kueue, kueue_findings),
        "nodelist": _told(text_of, nodelist_findings), "msccl": _told(read_msccl, msccl_findings),
        "mscclpp": _told(read_plan, plan_findings),
        "hypernode": _printed(domain_findings),
        "kernel_table": _printed(table_of_kernels_findings),
        "profile_summary": _printed(profile_summary_findings),
        "block_table": _told(read_block_table, block_table_findings),
        "slurm_lists": _printed(queue_findings), "shown": _printed(shown_findings),
        "controller": _printed(controller_findings),
        **{kind: _printed(findings) for kind, findings in OF_HOST.items()},
    }
)  # fmt: skip
"""What is done with each kind."""
