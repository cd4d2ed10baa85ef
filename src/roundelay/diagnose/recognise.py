"""What a file is, told by what stands in it and not by its name. It may be more than one thing."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from ..formats.saved import MARK, NAME
from . import is_json_of_tests
from .fabric.controller import MARK as _CONTROLLER
from .given import HEAD, Given
from .hang.phrases import speaks
from .machine.host import MARKS as _OF_HOST

# No mark may look at a byte more than a few hundred times, whatever the file: from the start of a
# line it runs on once, and between two words only so far.
_MARKS: Final[tuple[tuple[str, re.Pattern[bytes]], ...]] = (
    ("topo_matrix", re.compile(rb"^(?>[^\n]*?\bGPU\d+[\s|]+(?:GPU|NIC|mlx|CPU Aff))[^\n]*+\n"
                               rb"(?:[^\n]*+\n){0,3}?[^\w\n]*+(?:GPU|NIC|mlx5_)\d+[\s|]+(?:X|NV\d+|SYS|NODE|PHB|PXB|PIX|SOC)\b",
                               re.M)),
    ("topo_matrix", re.compile(rb"^[^\w\n]{0,9}GPU0[ \t|]{1,20}GPU1[ \t|][^\n]{0,4000}CPU Affinity",
                               re.M)),
    ("topo_matrix", re.compile(rb"^[^\w\n]{0,9}GPU0[ \t|]+X[ \t|]+(?:NV\d+|[A-Z]{3,4})\b[^\n]*+\n"
                               rb"[^\w\n]{0,9}GPU1[ \t|]", re.M)),
    ("lstopo", re.compile(rb"^[ \t]{1,80}HostBridge(?: L#\d{1,4})?[ \t\r]*$", re.M)),
    ("rocm_topo", re.compile(rb"between two GPUs|\(Topology\) Numa Node: |"
                             rb"^[ \t>]{0,9}LINK TYPE TABLE:?[ \t\r]*$", re.M)),
    ("topology_conf", re.compile(rb"^[ \t]*(?:SwitchName|BlockName|RingName)\s*=", re.M | re.I)),
    ("ibnetdiscover", re.compile(rb'^(?:Switch|Ca|Hca|Rt)\s+\d+\s+"', re.M)),
    ("ibnet_flat", re.compile(rb"^(?:CA|SW|RT)\s+\d+\s+\d+\s+0x[0-9a-f]+\s+\d+x\s+[A-Z]{3}", re.M)),
    ("iblinkinfo", re.compile(rb"\d\[[^\[\]\n]*\]\s*==\([^\n]{0,200}\)==>")),
    ("topology_yaml", re.compile(rb"^[ \t]*-[ \t]+topology:\s", re.M)),
    ("kueue", re.compile(rb"^[ \t]*(?:apiVersion:\s*[\"']?)?kueue\.x-k8s\.io/|"
                         rb"kueue\.x-k8s\.io/podset-[\w-]{1,40}topology[\"']?: |"
                         rb"^[ \t-]{0,40}topologyAssignment:[ \t]*\r?$", re.M)),
    ("topograph", re.compile(rb"^switches:[ \t]*\r?\n(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]+[\w.-]+:|"
                             rb"^capacity_blocks:[ \t]*\r?\n|^[ \t]+capacity_blocks:", re.M)),
    ("nodelist", re.compile(rb"\bSLURM_(?:JOB_)?NODELIST=\w")),
    ("inspector_prom", re.compile(rb"^\s{0,9}nccl_(?:p2p_)?(?:bus_bandwidth_gbs|"
                                  rb"(?:collective_)?exec_time_microseconds)\{", re.M)),
    ("nccl_log", re.compile(rb"[NR]?CCL (?:INFO|WARN|TRACE)\b|\bnccl[A-Z]\w{3,30}Error\b|"
                            rb"(?:NCCL|RCCL|Nccl|nccl)[^\n]{0,300}?(?:unhandled (?:cuda|system) "
                            rb"error|remote process exited)|"
                            rb"(?:NCCL|RCCL|Nccl|nccl)[^\n]{0,150}?(?:[Ee]rror|ERROR|fail|:)"
                            rb"[^\n]{0,99}?(?:internal error|invalid (?:argument|usage))|"
                            rb"(?:Cuda|CUDA|HIP) failure:? [^'\n]{0,120}'[^'\n]{1,200}'|"
                            rb"(?:CUDA|Cuda|HIP)(?: driver| runtime)? error\b:? ?[^\n]|"
                            rb"\b(?:(?:cuda|hip)Error(?:Illegal|Launch|Invalid|Memory|NoKernel|"
                            rb"NoDevice|OutOf|System|Insufficient|Peer|NoBinary)|CUDA_ERROR_[A-Z])"
                            rb"\w\w|\bError 80[234]: [^\n]|"
                            rb"Transport retry count exceeded|no usable transports/devices|"
                            rb"(?:Unresponsive re|Unreachable re|UNDELIVERABLE)[^\n]|"
                            rb"Memory access fault by GPU[^\n]|HW Exception by GPU[^\n]|"
                            rb"Cannot re-initialize CUDA in forked|"
                            rb"peer access is not supported between|CUBLAS_STATUS_\w|"
                            rb"(?:CUDA|HIP) failure \d{1,4}: [^\n]|"
                            rb"Expected \d+ threads to join the rendezvous[^\n]|"
                            rb"submitted to be reduced, gathered or broadcasted by subset|"
                            rb"CUDA unknown error|Please set max locked memory|"
                            rb"HSA_STATUS_ERROR|GDR driver version[^\n]|gdr_open failed|"
                            rb"undefined symbol: p?nccl\w|"
                            rb"libibverbs: Warning|NCCL warning\(error\)|"
                            rb"Call to ibv_\w{1,40} failed|"
                            rb"NET/(?:IB|OFI)\w{0,3} ?: ?(?!Using|\d)\w[^\n]|"
                            rb"Duplicate GPU detected|"
                            rb"\[\d{1,4}\] [\w/.-]{1,80}\.(?:cc|cu|h):\d{1,5} WARN |"
                            rb"Function: \w{1,60} Line: \d{1,9}: NET/OFI |"
                            rb"^[^\w\n]{0,40}(?:\[\w{1,40}\]:)? ?Last error:[ \t\r]*$", re.M)),
    ("ras", re.compile(rb"# +in group +per comm|#\d+-\d+ \([0-9a-f]+\) (?:MISMATCH|INCOMPLETE)|"
                       rb"unreachable via the RAS network")),
    ("watchdog", re.compile(rb"WorkNCCL\(|Rank \d{1,15}:\s+_?[A-Z_]{3,40}, TensorShape=\[|"
                            rb"detected by watchdog|CollectiveFingerPrint\(|NCCLRAS|"
                            rb"gloo/(?:transport|[a-z_]{1,30}\.(?:cc|h):\d)|makeDeviceFor|"
                            rb"ProcessGroup\w{1,40} does not support|"
                            rb"Invalid scalar type|connectFullMesh|Timed out waiting \d+|"
                            rb"next_op=\w.{0,400}missing_ranks|watchdog got stuck for|"
                            rb"Using the loopback address|Not all ranks joining collective|"
                            rb"gloo::EnforceNotMet|Timeout at NCCL work: \d|"
                            rb"Received a dump signal due|\] Timeout at collective: \w")),
    ("store", re.compile(rb"store->get\(|store[ -]based barrier on rank|client socket has |"
                         rb"RendezvousTimeoutError|RendezvousConnection|RendezvousClosedError|"
                         rb"EADDRINUSE|[Ff]ailed to recv, got 0 bytes|recvValue failed|"
                         rb"(?:send|recv)\w{1,30} failed on SocketImpl|flag on TCPStore|"
                         rb"socket (?:cannot be initialized|has failed to)|"
                         rb"Error: Wait timeout\b|hostname of the client socket cannot|"
                         rb"[Tt]imeout waiting for key|server socket has failed|"
                         rb"wait timeout after \d|waiting for clients\. \d|gai error: -|"
                         rb"connect\(\) timed out\. Original|: Socket Timeout")),
    ("ended", re.compile(rb"OutOfMemoryError|oom[-_]kill|Out Of Memory|exited on signal|"
                         rb"NVRM: Xid|\bSignal: [A-Z][a-z ]{1,30} \(\d|\bSXid \(|"
                         rb"exitcode\s*:|return code = -?\d|EXIT STRING: |"
                         rb"KILLED BY SIGNAL|memory: Killed process \d|exitCode: +[1-9]|"
                         rb"exit with status code \d|Exited with exit code|"
                         rb"terminated with (?:signal SIG|(?:exit )?code -?\d)|"
                         rb"died with <Signals|Exit code: +\d|"
                         rb"Traceback \(most recent call|"
                         rb"\btasks? [\d,-]{1,99}: (?:Killed|Segmentation|Bus error)|"
                         rb"line \d{1,9}: +\d{1,9} (?:Killed|Segmentation|Bus error)|"
                         rb"Fatal Python error|"
                         rb"^(?:\[rank\d{1,7}\]:)?\s{0,9}[\w.]{1,99}(?:Error|Exception): \S",
                         re.M)),
    ("bandwidth", re.compile(rb"P2P=(?:En|Dis)abled [\w ()]{0,40}Matrix|"
                             rb"memcpy (?:CE|SM) [CG]PU\(row\)|CANNOT Access Peer Device|"
                             rb"copy peak bandwidth GB/s|Device Bandwidth, \d+ Device|"
                             rb"^[ #|]{0,99}(?:size|payload|bytes)\b"
                             rb"(?![^\n]{0,200}\btime\b[^\n]{0,200}\bbusbw)[^\n]{0,200}?"
                             rb"(?:\bBW\b|bandwidth|algbw|Latency|t_avg|t_min|throughput)|"
                             rb"^[^\n]{0,9}(?:Transfer |Message )Size[^\n]{0,40}Bandwidth|"
                             rb"average bandwidth of \w{1,40} with a|"
                             rb"[\d.]{1,9} [KMG]?Bytes {1,9}[\d.]{1,9} [KMG]?bits/sec",
                             re.M | re.I)),
    ("iterations", re.compile(rb"elapsed time per iteration \(ms\):")),
    ("stacks", re.compile(rb"^[^\n]{0,60}Thread (?:0x)?[\dA-Fa-f]{1,20} \((?:active|idle)|"
                          rb"^[^\n]{0,60}(?:Current t|T)hread 0x[\da-f]{1,20}[^\n]{0,40} \(most "
                          rb"recent call first\):|^#0 [^\n]{1,400}\n#1 ", re.M)),
    ("nccl_tests", re.compile(rb"\bbusbw\b|# nThread|Avg bus bandwidth|Test (?:CUDA|NCCL) failure|"
                              rb"^[^\n]*\b\d+ +\d+ +(?:u?int\d+|half|float|double|bfloat16) +"
                              rb"(?:none|sum|prod|max|min|avg|mulsum|all|\d+\.\d+)\b|"
                              rb"(?:[Dd]ispatch|[Cc]ombine)[^\n]{0,200}bandwidth[^\n]{0,80}GB/s|"
                              rb"GB/s \((?:RDMA|NVL)\)", re.M)),
    ("slurm_lists", re.compile(rb"^[ \t>#/]{0,20}JOBID[ \t][^\n]{0,200}NODELIST\(REASON\)|"
                               rb"^[ \t>#/]{0,20}PARTITION[ \t]{1,20}AVAIL[ \t]{1,20}TIMELIMIT|"
                               rb"^[ \t>#/]{0,20}NODELIST[ \t]{1,40}NODES[ \t]{1,9}PARTITION[ \t]|"
                               rb"^[ \t>#/]{0,20}REASON[ \t]{1,40}USER[ \t]{1,40}TIMESTAMP", re.M)),
    ("block_table", re.compile(rb"^[ \t>#|]{0,20}Block Name[ \t]{0,40}\|[ \t]{0,20}Size"
                               rb"[ \t]{0,20}\|[ \t]{0,20}Nodes\b", re.M)),
    ("shown", re.compile(rb"\bNodeName=\S{1,200} (?:Arch=|State=|CoresPerSocket=)|"
                         rb"\bJobId=\d{1,12} JobName=")),
    ("controller", _CONTROLLER),
    ("kernel_table", re.compile(rb"^[ \t>|#/]{0,99}Time ?\(%\)[^\n]{0,300}\b"
                                rb"(?:Name|Operation|Range)[ \t\r|]*$|"
                                rb"^[ \t>|#/]{0,99}Name[ \t|]{2,99}Self C[^\n]{0,600}# of Calls|"
                                rb"^[^\n]{0,40}\brank\b[^\n]{0,200}(?:time|lap)_pctg\b", re.M)),
    ("profile_summary", re.compile(rb"^[ \t]{0,9}\|[ \t]{0,9}(?:Kernel(?: Name)?|Name|Metric|"
                                   rb"Op\w{0,9}|API|Function|Event)[ \t]{0,99}\|(?=[^\n]{0,200}"
                                   rb"(?:Duration|Time|Total|Sum)[ _]?\(?(?:ns|us|ms|s|sec)\b)",
                                   re.M | re.I)),
    ("hypernode", re.compile(rb"^[ \t]{0,9}(?:- )?kind:[ \t]*HyperNode\b|"
                             rb"^[ \t]{0,9}networkTopology:[ \t\r]*\n"
                             rb"[ \t]{1,20}(?:mode|highestTier)", re.M)),
    *_OF_HOST,
)  # fmt: skip
_OWN: Final[tuple[tuple[str, re.Pattern[bytes]], ...]] = (
    ("timeline", re.compile(rb"\Aroundelay/timeline \d")),
    ("tuner", re.compile(rb"^(?:# ?collective_type,min_bytes|[a-z_]{3,20}[ \t]{0,20},"
                         rb"[ \t]{0,20}\d{1,20}[ \t]{0,20},[ \t]{0,20}\d{1,20}[ \t]{0,20},"
                         rb"[ \t]{0,20}(?:tree|ring|collnet_\w{1,10}|nvls\w{0,10}|pat)\b)", re.M)),
    ("arrivals", re.compile(rb"\A(?=[^\n]{0,400}\barrival_s\b)(?=[^\n]{0,400}\b(?:gpus|cards)\b)"
                            rb"[^\n]{0,400}\b(?:duration_s|steps)\b")),
    ("algorithms", re.compile(rb"^\[\[rule\]\][ \t]*\r?\n", re.M)),
    ("cluster", re.compile(rb"^\[inside\][ \t]*(?:#[^\n]*)?\r?\n|^inside:[ \t]*\r?\n[ \t]+\w+:",
                           re.M)),
    ("job", re.compile(rb"^\[(?:model|volumes)\][ \t]*(?:#[^\n]*)?\r?\n|^\[\[exchange\]\]",
                       re.M)),
)  # fmt: skip
"""Of our own files that are text, in the order in which they are looked for."""
_LOG: Final = re.compile(rb'\A\s*\{\s*"cluster":\s*"[^"]{0,400}",\s*"nodes":\s*\d+,\s*"cards"')
_PIECE: Final = re.compile(
    rb'"(?:ph"\s*:\s*"|ctrl_?[Dd]eps"\s*:|comm_type"\s*:|'
    rb'(?:node_?)?[Tt]ype"\s*:\s*"[A-Z]{4}_[A-Z_]{0,20}NODE")'
)
"""What an event of a trace has, or a node of an execution trace."""
_PROFILED: Final = re.compile(rb'"cat"\s*:\s*"(?:COLL|P2P|GROUP)"')
"""Of what NCCL's example of a profiler writes."""
PIECES: Final = 200
"""Events of a list from which it is a trace, and no part that somebody has cut out."""
_HWLOC: Final = re.compile(rb"<topology\b[^>]{0,200}>\s*<object\b|hwloc2?\.dtd")
_XML: Final = re.compile(rb"<(system|cpu|pci|gpu|nic|graphs|graph|algo)\b")
_LOGGED: Final = re.compile(rb"NCCL INFO[ \t]{1,99}</?(?:system|cpu|pci|gpu|nic|nvlink|net)\b")
_CHAKRA: Final = re.compile(rb"[\x80-\xff]*[\x03-\x7f]\x0a[\x03-\x08\x0b\x0c\x0e-\x1f]\d+\.\d+\.\d")
"""A length, and a message that begins with a version."""
_LATER: Final = MappingProxyType(
    {
        "nccl_log": (b"CCL INFO", b"CCL WARN", b"CCL TRACE", b"CUDA error: "),
        "watchdog": (b"WorkNCCL(", b"detected by watchdog", b"CollectiveFingerPrint(", b"NCCLRAS",
                     b"gloo/transport", b"onnectFullMesh", b"monitoredBarrier", b"Timed out wait",
                     b"next_op=", b"watchdog got stuck", b"Using the loopback address",
                     b"Not all ranks joining", b"gloo::EnforceNotMet", b"Timeout at NCCL work",
                     b"Received a dump sig", b"] Timeout at collective"),
        "store": (b"store->get(", b"store based barrier on rank", b"client socket has ",
                  b"failed on SocketImpl", b"flag on TCPStore",
                  b"RendezvousTimeout", b"EADDRINUSE", b"got 0 bytes", b"recvValue failed",
                  b"imeout waiting for key", b"wait timeout after", b"waiting for clients"),
        "ended": (b"OutOfMemoryError", b"oom_kill", b"oom-kill", b"Out Of Memory",
                  b"exited on signal", b"NVRM: Xid", b"exitcode", b"Traceback (most recent call",
                  b": Killed", b": Segmentation", b": Bus error", b" CANCELLED AT ", b"MPI_ABORT",
                  b"Exited with exit code",
                  b"SXid ("),
    }
)  # fmt: skip
"""Words by which a text is of a kind, wherever in it they stand."""
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
    if head.startswith(MARK) and NAME.encode() in head:
        return ("flight",)
    if _CHAKRA.match(head):
        return ("execution_trace",)
    if start[:1] in (b"{", b"[") and not start.startswith(b"{'"):  # Python's own is a log's
        kind = _json(head)
        if kind or start[:1] == b"{":
            said = dict(_MARKS)["watchdog"].search(head) is not None
            return (kind or "facts", *(["watchdog"] if said and not kind else []))
    if own := next((kind for kind, mark in _OWN if mark.search(head)), ""):
        return (own,)
    if _HWLOC.search(head):
        return ("hwloc",)
    element = _XML.search(head)
    if element and start[:1] != b"<" and len(_LOGGED.findall(head)) > 2:
        return ("logged_topology",)
    if element and (start[:1] == b"<" or b"NCCL INFO" not in head):
        said = element[1] == b"algo" and start[:1] != b"<" and b"CCL WARN" in head
        return (XML_KINDS.get(element[1], "nccl_topology"), *(["nccl_log"] if said else []))
    found = dict.fromkeys(kind for kind, mark in _MARKS if mark.search(head))
    if "ended" not in found and speaks(head):
        found["ended"] = None
    return _later(given, head, tuple(found))


def _later(given: Given, head: bytes, found: tuple[str, ...]) -> tuple[str, ...]:
    """With what stands behind the head: a long text often ends with what matters."""
    if len(head) < HEAD or (found and not set(found) & {*_LATER, "nccl_tests"}):
        return found
    left = {kind: words for kind, words in _LATER.items() if kind not in found}
    later = set[str]()
    for piece in given.pieces():
        later |= {kind for kind, words in left.items() if any(map(piece.__contains__, words))}
        left = {kind: words for kind, words in left.items() if kind not in later}
        if not left:
            break
    return (*found, *(kind for kind in _LATER if kind in later))


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
    if is_json_of_tests(head):
        return "nccl_tests_json"
    if b'"ping_ns"' in head and b'"rows"' in head:
        return "bench"
    if b'"exchanges_per_token"' in head:
        return "walk"
    if _LOG.search(head):
        return "jobs_log"
    if b'"findings"' in head and b'"confidence"' in head:
        return "report"
    if re.search(rb'"(?:exchange|model|volumes)"\s*:\s*[\[{]', head):
        return "job"
    if b'"topologyAssignment"' in head or re.search(rb'"kueue\.x-k8s\.io/[pv]', head):
        return "kueue"
    if b'"threadblocks"' in head:
        return "mscclpp"
    if b'"workload_graph"' in head or (b'"nodes"' in head and b'"schema"' in head):
        return "execution_trace"
    if _PIECE.search(head) is None:
        return ""
    listed = head.lstrip()[:1] == b"[" and _PROFILED.search(head) is None
    return "trace" if listed and head.count(b'"ph"') > PIECES else "pieces"
