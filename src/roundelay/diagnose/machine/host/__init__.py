"""What commands print that are run on a host, to see its cards, links and network cards."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from ...finding import Finding
from .addresses import gid_findings, interface_findings
from .cards import table_findings
from .numa import numa_findings
from .nvlinks import link_findings
from .pci import pci_findings
from .ports import port_findings
from .queried import query_findings

__all__ = ["MARKS", "TOLD"]

MARKS: Final[tuple[tuple[str, re.Pattern[bytes]], ...]] = (
    ("smi_table", re.compile(rb"\| NVIDIA-SMI \d|"
                             rb"^[#/ \t>]{0,20}\|[ \t]{1,9}\d{1,3}[ \t]{1,9}\S[^|\n]{0,60}"
                             rb"\|[ \t]{0,9}"
                             rb"[0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d[ \t]|"
                             rb"Unable to determine the device handle for|"
                             rb"couldn't communicate with the NVIDIA driver|"
                             rb"Driver/library version mismatch|^No devices were found\r?$", re.M)),
    ("smi_links", re.compile(rb"^[ \t>]{0,9}Link \d{1,3}, P2P is supported: |"
                             rb"NVML: Unable to retrieve NVLink information as all links|"
                             rb"^[ \t>]{0,9}Link \d{1,3}: (?:\d{1,4}(?:\.\d{1,6})? GB/s|"
                             rb"<?[Ii]nactive|(?:Replay|Recovery|CRC) )", re.M)),
    ("smi_query", re.compile(rb"={3,}NVSMI LOG={3,}|^[ \t]{0,20}(?:GPU Link Info|Remapped Rows|"
                             rb"ECC Errors|Retired Pages|"
                             rb"Clocks (?:Event|Throttle) Reasons)[ \t\r]*$|"
                             rb"^[ \t]{0,20}Fabric[ \t\r]*\n[ \t]{0,20}State[ \t]*:", re.M)),
    ("lspci", re.compile(rb"\bLnkSta:[ \t]*Speed |\bACSCtl:[ \t]*SrcValid")),
    ("ib_ports", re.compile(rb"^[ \t]{0,9}(?:CA '[\w.:-]{1,40}'|hca_id:[ \t]|Infiniband device '|"
                            rb"[\w.:-]{1,40} port \d{1,3} (?:\([^)\n]{1,80}\) )?==> )", re.M)),
    ("gids", re.compile(rb"^[ \t]{0,9}[\w.-]{1,40}[ \t]{1,9}\d{1,3}[ \t]{1,9}\d{1,4}[ \t]{1,9}"
                        rb"(?:[0-9a-f]{4}:){7}[0-9a-f]{4}[ \t]", re.M)),
    ("interfaces", re.compile(rb"^[ \t]{0,9}\d{1,5}: [\w.@:-]{1,40}: <[\w,-]{0,200}> mtu \d|"
                              rb"^[\w.:-]{1,40}: flags=\d{1,6}<[\w,]{0,200}>[ \t]+mtu \d|"
                              rb"^[\w.:@-]{1,40}[ \t]{1,20}Link encap:|"
                              rb"^lo[ \t]{1,30}UNKNOWN[ \t]", re.M)),
    ("numactl", re.compile(rb"^[ \t]{0,9}node \d{1,4} (?:cpus:|size: \d)", re.M)),
)  # fmt: skip
"""By what a text is told to be of such a command."""

TOLD: Final[MappingProxyType[str, Callable[[str, bytes], list[Finding]]]] = MappingProxyType(
    {
        "smi_table": table_findings, "smi_links": link_findings, "smi_query": query_findings,
        "lspci": pci_findings, "ib_ports": port_findings, "gids": gid_findings,
        "interfaces": interface_findings, "numactl": numa_findings,
    }
)  # fmt: skip
"""By kind of text: takes its name and bytes, and raises RoundelayError where it is none."""
