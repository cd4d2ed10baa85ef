"""From one file format to another, where that has a meaning.

Formats fall into families; within one, any that is read can become any that is written:

- plans: schedule files, MSCCL XML, MSCCL++ plans. What is written is read back and proved again.
- timelines: ours, and traces for Perfetto and Chrome.
- switches: Slurm's two files, InfiniBand's tools, models of topograph, clusters.
- machines: NCCL's topology, as a cluster file.
- calls: dumps of the flight recorder, as a pickle or JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final

from .clusters import ENDINGS, cluster, write
from .clusters import read as read_cluster
from .diagnose.given import Given
from .diagnose.machine.likeness import cluster_of
from .diagnose.recognise import kinds_of
from .errors import RoundelayError
from .executors.algos import from_msccl, prove_msccl
from .executors.msccl import to_msccl
from .executors.mscclpp import to_mscclpp
from .executors.ordering import NotProved
from .executors.plans import from_mscclpp, prove_mscclpp
from .formats.chrome import read_chrome, write_chrome
from .formats.fabric import Fabric
from .formats.flight import read_flight
from .formats.flight_write import write_flight
from .formats.iblink import read_iblinkinfo, read_ibnet_flat
from .formats.ibnet import read_ibnetdiscover
from .formats.msccl_xml import PROTOCOLS, Algo, read_msccl, write_msccl
from .formats.mscclpp_plan import ExecutionPlan, read_mscclpp, write_mscclpp
from .formats.nccl_topology import read_nccl_topology
from .formats.schedule import read_schedule, write_schedule
from .formats.slurm import read_topology_conf
from .formats.slurm_write import tree_of, write_topology_conf, write_topology_yaml
from .formats.timeline import read_timeline, write_timeline
from .formats.topograph import read_topograph
from .formats.topology_yaml import read_topology_yaml, topology_named
from .schedule import Schedule
from .verify import verify


@dataclass(frozen=True)
class Options:
    """What a writer may be told.

    Attributes:
        protocol: of MSCCL.
        instances: thread blocks of MSCCL++ that share each step.
        name: of the one of several topologies to take; if empty, the default or the first.
    """

    protocol: str = PROTOCOLS[0]
    instances: int = 1
    name: str = ""


@dataclass(frozen=True)
class Converted:
    """The outcome.

    Attributes:
        source, target: formats.
        data: the file.
        proved: whether what is written was read back and proved; None where it is no plan, or too
            large, which `why` then says.
    """

    source: str
    target: str
    data: bytes
    proved: bool | None = None
    why: str = ""


def _topology(data: bytes, name: str) -> Fabric:
    return topology_named(read_topology_yaml(data), name)


MOVES: Final = 10**7
"""Chunk moves, and chunks of all ranks, of a schedule that is proved."""
FAMILIES: Final = MappingProxyType(
    {
        "plan": (("schedule", "msccl", "mscclpp"), ("schedule", "msccl", "mscclpp")),
        "timeline": (("timeline", "trace"), ("timeline", "chrome")),
        "switches": (
            ("topology_conf", "topology_yaml", "ibnetdiscover", "ibnet_flat", "iblinkinfo",
             "topograph", "cluster"),
            ("topology.conf", "topology.yaml", "cluster"),
        ),
        "machine": (("nccl_topology",), ("cluster",)),
        "calls": (("flight",), ("flight", "flight-json")),
    }
)  # fmt: skip
"""Of each family, formats that are read and formats that are written."""
SUFFIXES: Final = MappingProxyType(
    {
        ".xml": ("msccl",), ".conf": ("topology.conf",), ".yaml": ("topology.yaml",),
        ".yml": ("topology.yaml",), ".toml": ("cluster",), ".timeline": ("timeline",),
        ".json": ("schedule", "mscclpp", "chrome", "flight-json"), ".pickle": ("flight",),
        ".pkl": ("flight",),
    }
)  # fmt: skip
"""Formats that a file's name may mean."""
TARGETS: Final = tuple(
    dict.fromkeys(target for _, targets in FAMILIES.values() for target in targets)
)
READ: Final[MappingProxyType[str, Callable[[bytes, Given, Options], Any]]] = MappingProxyType(
    {
        "schedule": lambda data, given, options: read_schedule(data),
        "msccl": lambda data, given, options: read_msccl(data),
        "mscclpp": lambda data, given, options: read_mscclpp(data),
        "timeline": lambda data, given, options: read_timeline(data),
        "trace": lambda data, given, options: read_chrome(data),
        "topology_conf": lambda data, given, options: read_topology_conf(data),
        "topology_yaml": lambda data, given, options: _topology(data, options.name),
        "ibnetdiscover": lambda data, given, options: read_ibnetdiscover(data),
        "ibnet_flat": lambda data, given, options: read_ibnet_flat(data),
        "iblinkinfo": lambda data, given, options: read_iblinkinfo(data),
        "topograph": lambda data, given, options: read_topograph(data),
        "cluster": lambda data, given, options: (
            read_cluster(data, given.name) if given.path or given.data else cluster(given.name)
        ),
        "nccl_topology": lambda data, given, options: cluster_of(
            read_nccl_topology(data), given.name, cluster
        ),
        "flight": lambda data, given, options: read_flight(data, given.name),
    }
)


def convert(given: Given, out: str, target: str = "", options: Options | None = None) -> Converted:
    """A file in another format.

    Args:
        given: the file; one that has neither a path nor bytes is a cluster by its name.
        out: the name of the file to be written, whose ending tells the format.
        target: one of `TARGETS`, where the name does not tell.
        options: for writers.

    Raises:
        RoundelayError: it is not known what the file is, or it cannot become what is asked for;
            the message says which pairs there are.
    """
    options = options or Options()
    source = _source(given)
    family = next(name for name, (read, _) in FAMILIES.items() if source in read)
    target = target or _meant(source, family, out)
    if target not in FAMILIES[family][1]:
        raise RoundelayError(
            f"{given.name} is {source}, which cannot become {target}; it can become "
            f"{', '.join(FAMILIES[family][1])}"
        )
    value = READ[source](given.whole() if given.path or given.data else b"", given, options)
    if family == "plan":
        return _plan(source, target, value, options)
    return Converted(source, target, _written(target, value))


def _source(given: Given) -> str:
    if not given.path and not given.data:
        return "cluster"
    known = [source for read, _ in FAMILIES.values() for source in read]
    kinds = kinds_of(given)
    found = next((kind for kind in kinds if kind in known), "")
    if not found and given.name.endswith(ENDINGS):
        return "cluster"
    if not found:
        seen = f"it reads as {', '.join(kinds)}" if kinds else "nothing known is in it"
        raise RoundelayError(f"{given.name}: {seen}; files that can be converted: "
                             f"{', '.join(known)}")  # fmt: skip
    return found


def _meant(source: str, family: str, out: str) -> str:
    """The format that a name's ending means for what is read."""
    named = PurePath(out).name
    if named in TARGETS:
        return named
    fits = [t for t in SUFFIXES.get(PurePath(out).suffix.lower(), ())
            if t in FAMILIES[family][1]]  # fmt: skip
    if len(fits) > 1:
        fits = [target for target in fits if target != source]
    if len(fits) != 1:
        wanted = ", ".join(fits or FAMILIES[family][1])
        raise RoundelayError(f"{out or '-'} does not tell the format; say --to, for {source} one "
                             f"of {wanted}")  # fmt: skip
    return fits[0]


def _plan(source: str, target: str, value: Any, options: Options) -> Converted:
    """Written and proved again; what is of the target's own format stays as it is."""
    if source != target:
        value = _made(target, _schedule(value), options)
    elif isinstance(value, Algo):
        value = replace(value, missing=())
    write: dict[str, Callable[[Any], bytes]] = {
        "schedule": write_schedule, "msccl": write_msccl, "mscclpp": write_mscclpp,
    }  # fmt: skip
    data = write[target](value)
    try:
        wrong = next((verdict.reason for verdict in _proofs(target, data) if not verdict), "")
    except NotProved as error:
        return Converted(source, target, data, None, str(error))
    except RoundelayError as error:
        wrong = str(error)
    return Converted(source, target, data, not wrong, wrong)


def _schedule(value: Any) -> Schedule:
    if isinstance(value, Algo):
        return from_msccl(value, in_place=value.in_place and not value.out_of_place)
    return from_mscclpp(value) if isinstance(value, ExecutionPlan) else value


def _made(target: str, schedule: Schedule, options: Options) -> Any:
    if target == "msccl":
        return to_msccl(schedule, protocol=options.protocol)
    return to_mscclpp(schedule, instances=options.instances) if target == "mscclpp" else schedule


def _proofs(target: str, data: bytes) -> list[Any]:
    if target == "msccl":
        return list(prove_msccl(read_msccl(data)))
    if target == "mscclpp":
        return [prove_mscclpp(read_mscclpp(data))]
    schedule = read_schedule(data)
    if max(schedule.expanded(), schedule.chunks * schedule.ranks) > MOVES:
        raise NotProved(f"{schedule.expanded():,} moves of chunks are too many to prove here")
    return [verify(schedule)]


def _written(target: str, value: Any) -> bytes:
    if target == "timeline":
        return write_timeline(value)
    if target == "chrome":
        return write_chrome(value)
    if target.startswith("flight"):
        if len(value) != 1:
            raise RoundelayError(f"{len(value)} dumps in one file; expected one, of one rank")
        return write_flight(value[0], as_json=target == "flight-json")
    if isinstance(value, Fabric):
        if target == "cluster":
            raise RoundelayError("switches alone are no cluster, whose cards and rates they do not "
                                 "tell; take a named machine with its number of nodes")  # fmt: skip
        return (write_topology_conf if target == "topology.conf" else write_topology_yaml)(value)
    if target == "cluster":
        return write(value).encode()
    tree = tree_of(value)
    return (write_topology_conf if target == "topology.conf" else write_topology_yaml)(tree)
