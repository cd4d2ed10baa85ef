"""What files hold, and what is to be said of them, in the order of what matters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from ..formats.ended import End
from ..formats.flight import Dump
from ..formats.inspector import Inspection
from ..formats.inspector_prom import Mean, Series
from ..formats.kineto import Trace
from ..formats.machine import Machine
from ..formats.nccl_log import NcclLog
from ..formats.note import Note
from ..formats.ras import Ras
from ..formats.stacks import Stack
from ..formats.watchdog import Watched
from ..i18n import Translate
from ..topology import Cluster
from . import Machine as Named
from .finding import Finding
from .speed.expected import Predict

AREAS: Final = ("hang", "machine", "speed", "time")
"""Where a job hangs, how fast it would be matters less."""
BROKEN: Final = frozenset(
    {"card_failed", "linkless", "few_links", "no_route", "network_error", "no_shared_memory",
     "memory_not_pinned", "process_lost", "ranks_missing", "out_of_memory", "killed", "crashed",
     "switch_failed", "raised", "ended_first", "docker_address", "duplicate_card", "memory_refused",
     "no_rdma_way", "no_fabric_manager", "stub_driver", "efa_peer", "rings_differ", "mixed_links",
     "no_memory_left", "queue_refused", "rocm_fails", "launch_refused", "versions_differ",
     "no_interface", "no_cuda", "no_peer_access", "segment_gone", "topology_file",
     "no_files_left", "no_threads_left", "rank_twice", "ranks_differ", "bad_ranks", "bad_buffer",
     "other_card", "bad_argument", "no_port", "no_name", "address_empty", "segment_unnamed",
     "segment_refused", "handle_refused", "plugin_refused", "request_refused", "link_down",
     "network_card_failed", "queue_failed", "memory_not_registered", "no_sysfs", "one_way_link",
     "graph_file", "no_transport", "imex", "nvls_failed", "driver_unfit", "nvml_fails",
     "no_kernel", "no_such_card", "card_busy", "card_broken", "program_failed",
     "too_many_ranks", "port_taken", "store_unreachable", "no_id", "unused_parameters",
     "ready_twice", "graph_changed", "models_differ", "no_group", "not_launched", "wrong_device",
     "not_in_group", "no_backend", "size_unfit", "index_out_of_range", "kernel_failed",
     "aborted_first", "hung_up", "told_to_stop", "program_ended", "no_slots", "no_program",
     "not_started", "host_lost", "unreachable_host", "no_pmi", "time_limit", "preempted",
     "request_unfit", "evicted", "not_scheduled", "disk_full", "task_lost", "cache_unfit",
     "card_in_use", "broke_off", "agent_lost", "memory_errors", "fabric_not_ready",
     "no_subnet_manager", "no_address", "rails_differ", "ucx_refuses", "window_space", "nvls_full",
     "experts_silent"}
)  # fmt: skip
"""What must be mended before anything else is worth a look."""
ASIDE: Final = frozenset({"incomplete", "unknown_kinds", "plan_refused", "ids_twice"})
"""What is said of the files, more than of what they describe."""


@dataclass(frozen=True)
class Model:
    """What rules about speed need: see `check`."""

    cluster: Cluster | None
    predict: Predict
    machine: Named


@dataclass
class Diagnosis:
    """What files hold and what is to be said of them.

    Attributes:
        files: each file's name and the kinds it was read as.
        findings: in the order of what matters.
        notes: what was odd, by file.
        machines: that were described, by file.
        hosts: names of hosts, to be replaced where asked for.
        measured: files with tables of programs other than nccl-tests.
        dumps: of flight recorders, which are judged together.
        traces: of ranks, which are judged together.
        logs: of NCCL, by file, which are judged together.
        said: messages of watchdogs, by file, which are judged together.
        ended: processes that have ended, as their logs tell.
        told: by file, lines of which a finding tells more than that a process has ended.
        stacks: of processes that stand still, which are judged together.
        reports: of RAS, by file.
        inspected: what NCCL Inspector wrote, by file.
        averaged: what it wrote for Prometheus, by file.
    """

    files: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[tuple[str, Note]] = field(default_factory=list)
    machines: list[tuple[str, Machine]] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    measured: set[str] = field(default_factory=set)
    dumps: list[Dump] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    logs: list[tuple[str, NcclLog]] = field(default_factory=list)
    said: list[tuple[str, Watched]] = field(default_factory=list)
    ended: list[End] = field(default_factory=list)
    told: dict[str, set[int]] = field(default_factory=dict)
    stacks: list[Stack] = field(default_factory=list)
    reports: list[tuple[str, Ras]] = field(default_factory=list)
    inspected: list[tuple[str, Inspection]] = field(default_factory=list)
    averaged: list[tuple[str, dict[Series, Mean]]] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is off."""
        return not any(finding.fault for finding in self.findings)

    def sort(self) -> None:
        """What is off first, then by area and weight; else the order stays."""
        self.findings.sort(key=lambda f: (not f.fault, AREAS.index(f.area), _weight(f.kind)))

    def as_json(self, translate: Translate) -> dict[str, Any]:
        """The value of `--json`."""
        return {
            "ok": self.ok,
            "files": [{"file": name, "kinds": list(kinds)} for name, kinds in self.files],
            "findings": [finding.as_json(translate) for finding in self.findings],
            "notes": [
                {"file": file, "line": note.line, "text": note.what.tell(translate)}
                for file, note in self.notes
            ],
        }


def _weight(kind: str) -> int:
    return 0 if kind in BROKEN else 2 if kind in ASIDE else 1
