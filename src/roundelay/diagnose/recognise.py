"""What a file is, told by what stands in it and not by its name. It may be more than one thing."""

from __future__ import annotations

import re
from typing import Final

from .given import HEAD, Given

# No mark may look at a byte more than a few hundred times, whatever the file: from the start of a
# line it runs on once, and between two words only so far.
_MARKS: Final[tuple[tuple[str, re.Pattern[bytes]], ...]] = (
    ("topo_matrix", re.compile(rb"^(?>[^\n]*?\bGPU\d+[\s|]+(?:GPU|NIC|mlx))[^\n]*+\n"
                               rb"(?:[^\n]*+\n){0,3}?[^\w\n]*+(?:GPU|NIC|mlx5_)\d+[\s|]+(?:X|NV\d+|SYS|NODE|PHB|PXB|PIX|SOC)\b",
                               re.M)),
    ("rocm_topo", re.compile(rb"between two GPUs")),
    ("topology_conf", re.compile(rb"^[ \t]*(?:SwitchName|BlockName|RingName)\s*=", re.M | re.I)),
    ("ibnetdiscover", re.compile(rb'^(?:Switch|Ca|Hca|Rt)\s+\d+\s+"', re.M)),
    ("ibnet_flat", re.compile(rb"^(?:CA|SW|RT)\s+\d+\s+\d+\s+0x[0-9a-f]+\s+\d+x\s+[A-Z]{3}", re.M)),
    ("iblinkinfo", re.compile(rb"\d\[[^\[\]\n]*\]\s*==\([^\n]{0,200}\)==>")),
    ("topology_yaml", re.compile(rb"^[ \t]*-[ \t]+topology:\s", re.M)),
    ("kueue", re.compile(rb"^[ \t]*(?:apiVersion:\s*[\"']?)?kueue\.x-k8s\.io/", re.M)),
    ("topograph", re.compile(rb"^switches:[ \t]*\r?\n(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]+[\w.-]+:",
                             re.M)),
    ("nodelist", re.compile(rb"\bSLURM_(?:JOB_)?NODELIST=\w")),
    ("nccl_log", re.compile(rb"[NR]?CCL (?:INFO|WARN|TRACE)\b|"
                            rb":\d{1,9}:\d{1,9} \[\d{1,4}\] \S{1,80}:\d{1,5} WARN |"
                            rb"^[^\w\n]{0,40}(?:\[\w{1,40}\]:)? ?Last error:[ \t\r]*$", re.M)),
    ("ras", re.compile(rb"# +in group +per comm|#\d+-\d+ \([0-9a-f]+\) (?:MISMATCH|INCOMPLETE)|"
                       rb"unreachable via the RAS network")),
    ("watchdog", re.compile(rb"WorkNCCL\(|detected by watchdog|CollectiveFingerPrint\(|NCCLRAS|"
                            rb"gloo/transport|ProcessGroup\w{1,40} does not support|"
                            rb"Invalid scalar type|connectFullMesh|Timed out waiting \d+|"
                            rb"next_op=\w.{0,400}missing_ranks|watchdog got stuck for|"
                            rb"Using the loopback address|Not all ranks joining collective|"
                            rb"gloo::EnforceNotMet")),
    ("nccl_tests", re.compile(rb"\bbusbw\b|# nThread|Avg bus bandwidth|Test (?:CUDA|NCCL) failure|"
                              rb"^[^\n]*\b\d+ +\d+ +(?:u?int\d+|half|float|double|bfloat16) +"
                              rb"(?:none|sum|prod|max|min|avg|mulsum|all|\d+\.\d+)\b|"
                              rb"(?:[Dd]ispatch|[Cc]ombine)[^\n]{0,200}bandwidth[^\n]{0,80}GB/s|"
                              rb"GB/s \((?:RDMA|NVL)\)", re.M)),
)  # fmt: skip
_XML: Final = re.compile(rb"<(system|cpu|pci|gpu|nic|graphs|graph|algo)\b")
_CHAKRA: Final = re.compile(rb"[\x80-\xff]*[\x03-\x7f]\x0a[\x03-\x08\x0b\x0c\x0e-\x1f]\d+\.\d+\.\d")
"""A length, and a message that begins with a version."""
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
XML_KINDS: Final = {b"graphs": "nccl_graph", b"graph": "nccl_graph", b"algo": "msccl"}


def kinds_of(given: Given) -> tuple[str, ...]:
    """The kinds that a file may be, the likeliest first; none where nothing is known of it.

    Raises:
        RoundelayError: it is a damaged gzip file.
    """
    head = given.head()
    if head.startswith(_UTF16):
        head = head.decode("utf-16", "replace").encode()
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if head[:1] == b"\x80" or (
        head[:1] in b"(]}" and b"entries" in head and b"\n" not in start[:1]
    ):
        return ("flight",)
    if _CHAKRA.match(head):
        return ("execution_trace",)
    if start[:1] in (b"{", b"["):
        kind = _json(head)
        if kind or start[:1] == b"{":
            said = dict(_MARKS)["watchdog"].search(head) is not None
            return (kind or "facts", *(["watchdog"] if said and not kind else []))
    element = _XML.search(head)
    if element and (start[:1] == b"<" or b"NCCL INFO" not in head):
        return (XML_KINDS.get(element[1], "nccl_topology"),)
    return tuple(kind for kind, mark in _MARKS if mark.search(head)) or _later(given, head)


def _later(given: Given, head: bytes) -> tuple[str, ...]:
    """A long log may begin with much that is another program's."""
    if len(head) < HEAD:
        return ()
    wanted = [(kind, mark) for kind, mark in _MARKS if kind in ("nccl_log", "watchdog")]
    for line in given.lines():
        if found := tuple(kind for kind, mark in wanted if mark.search(line)):
            return found
    return ()


def _json(head: bytes) -> str:
    if re.search(rb'"(?:coll_perf|p2p_perf|dump_stats)"', head):
        return "inspector"
    if b'"communicators"' in head and re.search(rb'"(?:missing_ranks|collective_counts)"', head):
        return "ras"
    if b'"traceEvents"' in head or b'"deviceProperties"' in head:
        return "trace"
    if b'"entries"' in head and re.search(rb'"(?:pg_config|process_group|profiling_name)"', head):
        return "flight"
    if b'"roundelay/schedule"' in head:
        return "schedule"
    if b'"threadblocks"' in head:
        return "mscclpp"
    if b'"workload_graph"' in head or (b'"nodes"' in head and b'"schema"' in head):
        return "execution_trace"
    return ""
