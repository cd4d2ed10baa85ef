"""Readers on what nobody meant to write, in a process of its own: `python fuzzing.py READER ...`.

Files of every kind are changed byte by byte, word by word and value by value. A reader may refuse
them with a RoundelayError, and nothing else; it has so much time for each and so much memory.
"""

import faulthandler
import gzip
import json
import random
import re
import resource
import sys
import time
import zipfile
from contextlib import suppress
from copy import deepcopy
from io import BytesIO
from pathlib import Path

from kineto_traces import gemm, nccl, step, trace
from test_phrases import SAID
from test_timeline import sample

import roundelay as rl
from roundelay import RoundelayError
from roundelay.clusters import cluster, read, write
from roundelay.convert import FAMILIES, convert
from roundelay.diagnose.fabric.controller import controller_findings
from roundelay.diagnose.fabric.domains import domain_findings
from roundelay.diagnose.fabric.queues import queue_findings
from roundelay.diagnose.fabric.shown import shown_findings
from roundelay.diagnose.given import Given
from roundelay.diagnose.hang.ended import ended_findings
from roundelay.diagnose.hang.phrases import phrase_findings
from roundelay.diagnose.hang.stacks import stack_findings
from roundelay.diagnose.hang.watched import watched_findings
from roundelay.diagnose.machine.host import TOLD as OF_HOST
from roundelay.diagnose.own import TOLD
from roundelay.diagnose.speed.bandwidths import bandwidth_findings
from roundelay.diagnose.speed.facts_reader import read_facts
from roundelay.diagnose.speed.iterations import iteration_findings
from roundelay.diagnose.times.kernel_shares import table_of_kernels_findings
from roundelay.diagnose.times.pieces import piece_findings
from roundelay.diagnose.times.profile_shares import profile_summary_findings
from roundelay.diagnose.together import diagnose
from roundelay.executors.algos import prove_msccl
from roundelay.executors.plans import prove_mscclpp
from roundelay.formats.bandwidth import read_bandwidth_lines
from roundelay.formats.chakra import gathered_graphs, read_chakra
from roundelay.formats.chrome import read_chrome, write_chrome
from roundelay.formats.deepep import read_deepep
from roundelay.formats.ended import read_ended_lines
from roundelay.formats.flight import read_flight
from roundelay.formats.gids import read_gids
from roundelay.formats.hostlist import hosts
from roundelay.formats.hypernode import read_hypernodes
from roundelay.formats.ib_ports import read_ib_ports
from roundelay.formats.iblink import read_iblinkinfo, read_ibnet_flat
from roundelay.formats.ibnet import read_ibnetdiscover
from roundelay.formats.inspector import read_inspector
from roundelay.formats.inspector_prom import read_inspector_prom
from roundelay.formats.interfaces import read_interfaces
from roundelay.formats.iterations import read_iterations
from roundelay.formats.kernel_tables import read_kernel_tables
from roundelay.formats.kineto import read_kineto
from roundelay.formats.kueue import read_kueue
from roundelay.formats.lspci import read_lspci
from roundelay.formats.lstopo import read_lstopo
from roundelay.formats.msccl_xml import broken_limits, read_msccl
from roundelay.formats.mscclpp_older import read_mscclpp_older
from roundelay.formats.mscclpp_plan import read_mscclpp
from roundelay.formats.nccl_graph import read_nccl_graph
from roundelay.formats.nccl_log import read_nccl_log
from roundelay.formats.nccl_tests import read_nccl_tests, read_nccl_tests_json
from roundelay.formats.nccl_topology import read_logged_topology, read_nccl_topology
from roundelay.formats.numactl import read_numactl
from roundelay.formats.pickled import read_pickle
from roundelay.formats.pieces import read_pieces
from roundelay.formats.profile_summary import read_profile_summary
from roundelay.formats.ras import read_ras
from roundelay.formats.rocm_topo import read_rocm_topo
from roundelay.formats.schedule import read_schedule, write_schedule
from roundelay.formats.scontrol import read_nodes, read_shown
from roundelay.formats.slurm import read_topology_conf
from roundelay.formats.slurm_blocks import read_block_table
from roundelay.formats.slurm_lists import read_slurm_lists
from roundelay.formats.slurm_write import write_topology_conf, write_topology_yaml
from roundelay.formats.smi_links import read_smi_links
from roundelay.formats.smi_query import read_smi_query
from roundelay.formats.smi_table import read_smi_table
from roundelay.formats.stacks import read_stacks_lines
from roundelay.formats.timeline import read_timeline, write_timeline
from roundelay.formats.topo_matrix import read_peers, read_topo_matrix
from roundelay.formats.topograph import read_topograph
from roundelay.formats.topology_yaml import read_topology_yaml
from roundelay.formats.tuner import read_tuner
from roundelay.formats.watchdog import read_watchdog
from roundelay.formats.xml import read_xml
from roundelay.formats.yaml_nodes import read_yaml
from roundelay.simulate.nccl import predict

SLOWEST = 20
"""Seconds that one small input may take, on a busy machine."""
MEMORY = 3 << 29
"""Bytes that a reader may take on top of what the process has."""
TABLE = b"""# nThread 1 nGpus 1 minBytes 8 maxBytes 1073741824 step: 2(factor) warmup iters: 5
#  Rank  0 Group  0 Pid      1 on  hostalpha device  0 [0x00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid      2 on  hostalpha device  1 [0x01] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong     time
   1048576        262144     float     sum      -1    52.10   20.12   20.12      0    51.0
1073741824     268435456     float     sum      -1   8200.0  130.94  130.94      0   8201.0
# Avg bus bandwidth    : 75.5
"""
DEEPEP = b"""[tuning] Best dispatch (FP8): SMs 24, NVL chunk 8: 43.1 GB/s (RDMA), 141.2 GB/s (NVL)
[rank 0] Dispatch + combine bandwidth: 42.25 GB/s, avg_t=1 us
[rank 1] Dispatch bandwidth: 0.10 GB/s, avg_t=1 us | Combine bandwidth: 1.24 GB/s, avg_t=1
"""
JOBS = (b'{"cluster":"x","nodes":2,"cards":8,"levels":[],"jobs":[{"kind":"a","cards":8,"block":8,'
        b'"submit_s":0.0,"work_s":9.0}],"policies":[{"policy":"ours","events":[]}]}')  # fmt: skip
BENCH = (b'{"machine":{},"ping_ns":90.0,"versions":{},"rows":[{"collective":"all_reduce",'
         b'"algorithm":"ring","ranks":2,"bytes":1000000,"dtype":"float32","in_place":true,"time_us":100.0,'
         b'"algbw_GBps":10.0,"busbw_GBps":10.0,"wrong":0}],"geometric_mean":0.9}')  # fmt: skip
WALK = (b'{"prompt":"a","text":"b","ranks":2,"steps":[{"name":"token","token":0}],"tokens":4,'
        b'"token_us":9000.0,"compute_us":7000.0,"wait_us":100.0,"exchanges_per_token":60,'
        b'"exchange_share":0.2}')  # fmt: skip
TESTS = (b'{"version":"2.17.1","args":["./build/all_reduce_perf","-J","x"],"nccl_version":22703,'
         b'"config":{"validation":"true","devices":[{"rank":0,"group":0,"pid":1,"hostname":"h",'
         b'"device":0,"device_hex":"0x01","device_info":"NVIDIA H100 80GB HBM3"},{"rank":1,'
         b'"hostname":"h","device":1,"device_info":"NVIDIA H100 80GB HBM3"}]},"results":[{"size":'
         b'1048576,"count":262144,"type":"float","redop":"sum","root":-1,"out_of_place":{"time":52.1,'
         b'"alg_bw":20.13,"bus_bw":20.13,"nwrong":0},"in_place":null},{"size":1073741824,"count":'
         b'268435456,"type":"float","redop":"sum","root":-1,"out_of_place":{"cpu_time":3300.0,'
         b'"alg_bw":325.4,"bus_bw":325.4,"nwrong":"N/A"},"in_place":null}],"out_of_bounds":{"count":0,'
         b'"okay":"true"},"average_bus_bandwidth":{"bandwidth":172.7,"okay":"true"}}')  # fmt: skip
PEERS = b"\tGPU0\tGPU1\tGPU2\n GPU0\tX\tOK\tNS\n GPU1\tOK\tX\tCNS\n GPU2\tNS\tCNS\tX\n"
ENDED = b"""Traceback (most recent call last):
ValueError: bad shard 7
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
  rank      : 3 (local_rank: 3)
  exitcode  : -9 (pid: 22335)
srun: error: a1: task 6: Out Of Memory
[ 12.3] NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus.
"""
OLDER = (b'{"name":"p","collective":"allreduce","protocol":"LL","inplace":true,"gpus":[{"id":0,'
         b'"inputChunks":1,"threadblocks":[{"id":0,"ops":[{"name":"ppkt"}]}]}]}')  # fmt: skip
PIECES = (b'{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather_bf16_RING_LL(x)","dur":9.5,'
          b'"args":{"grid":[2,1,1],"Group size":4,"In msg nelems":8,"dtype":"Float"}},\n...\n'
          b'[{"cat":"COLL","ph":"b","name":"AllReduce","args":{"Count":4,"Datatype":"ncclInt8"}}]'
          b'{"id":"4","name":"nccl:all_reduce","type":"COMP_NODE","ctrlDeps":["3"]}{"schema":"1",'
          b'"nodes":[{"id":3,"name":"process_group:init","ctrl_deps":2,"inputs":{"values":["[{'
          b'\\"pg_name\\":\\"0\\",\\"ranks\\":[0, 1]}]"]}}]}')  # fmt: skip
STACKS = (b'Process 41: python t.py --local_rank=1\n\nThread 41 (active): "MainThread"\n'
          b"    barrier (torch/distributed/distributed_c10d.py:3696)\n    keep (ck.py:9)\n"
          b'Thread 0x00007f21a9a1c000 (most recent call first):\n  File "/x/torch/distributed/'
          b'distributed_c10d.py", line 2 in all_reduce\n  File "t.py", line 3 in main\n'
          b'Thread 2 (Thread 0x7f (LWP 7) "p"):\n#0  0x7f in poll () from /l.so\n'
          b"#1  ncclCommInitRank (a=1) at init.cc:7\n")  # fmt: skip
DESYNC = (b"\t - [0] Timeout at collective: ALLREDUCE, #42\n\t - To our best knowledge, ranks [2,"
          b" 3] are the lagging ranks that caused this timeout.\n\t   - [3] joined but didn't "
          b"finish collective #41 (count from 1)\n\t     [1] finished collective #41, but didn't "
          b"join collective #42\n\t   #41 started ranks:\n\t     [3] started ALLREDUCE\n[PG ID 0"
          b" PG GUID 0 Rank 1] Received a dump signal due to a collective timeout from  rank 6. "
          b"Last enqueued NCCL work: 90, last completed NCCL work: 90.This\n")  # fmt: skip
PHRASED = b"".join(text.encode() for text, *_ in SAID)
FACTS = b'{"op": "all_reduce", "gpu": "H100", "gpus": 8, "busbw_GBps": 360, "advertised": 900}'


def saved(pickled, how=zipfile.ZIP_STORED):
    """What torch.save makes of a pickle."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", how) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
    return packed.getvalue()


def seeds():
    """Files by the name of what they are."""
    files = {path.name: path.read_bytes() for path in (Path(__file__).parent / "files").iterdir()}
    ring = rl.build("all_reduce/ring", 4)
    files |= {
        "schedule.json": write_schedule(ring), "x.timeline": write_timeline(sample()),
        "chrome.json": write_chrome(sample()), "cluster.toml": write(cluster("dgx-h100")).encode(),
        "table.txt": TABLE, "deepep.txt": DEEPEP, "facts.json": FACTS,
        "kineto.json": trace([gemm(0, 6), nccl(5, 9), step(1, 0, 10)]),
        "hosts.txt": b"node[01-16,20],login,r[1-2]n[1-2].x",
        "job.toml": b"tensor = 8\ndata = 2\n[model]\nlayers = 4\nhidden = 8\nsequence = 16\n",
        "job.json": b'{"exchange": [{"name": "a", "pattern": "chain", "groups": [[0, 1], [2, 3]], '
                    b'"size": "1 GiB"}]}',
        "jobs.json": JOBS, "tests.json": TESTS, "bench.json": BENCH, "walk.json": WALK,
        "ended.log": ENDED, "stacks.txt": STACKS, "desync.log": DESYNC,
        "phrases.log": PHRASED, "saved": saved(files["flight1"]),
        "topo_p2p.txt": PEERS, "older.json": OLDER, "pieces.json": PIECES,
        "algorithms.toml": b'[[rule]]\ncollective = "all_reduce"\nalgorithm = "ring"\n',
        "nodelist.txt": b"SLURM_JOB_NODELIST=n[1-3]\nSLURM_JOB_NODELIST=n[3,1-2]\n",
    }  # fmt: skip
    return files


def any_file(data):
    diagnose([Given("x1", data=data)], None, predict, cluster)


def of_host(data):
    """As what each command prints, and then judged."""
    more = (controller_findings, domain_findings, table_of_kernels_findings, queue_findings,
            shown_findings, profile_summary_findings)  # fmt: skip
    for tell in (*OF_HOST.values(), *more):
        with suppress(RoundelayError):
            tell("x", data)


def own(data):
    """As each kind of our own files."""
    for told in TOLD.values():
        try:
            told("x1", data)
        except RoundelayError:
            continue


def any_conversion(data):
    for family in FAMILIES.values():
        for target in family[1]:
            try:
                convert(Given("x1", data=data or b" "), "", target)
            except RoundelayError:
                continue


def msccl(data):
    algo = read_msccl(data)
    broken_limits(algo)
    prove_msccl(algo)


def for_slurm(reader):
    def written(data):
        found = reader(data)
        for fabric in found if isinstance(found, tuple) else (found,):
            for writer in (write_topology_conf, write_topology_yaml):
                try:
                    writer(fabric)
                except RoundelayError:
                    continue

    return written


READERS = {
    "nccl_topology": (read_nccl_topology, "topology.xml"),
    "nccl_graph": (read_nccl_graph, "graph.xml"),
    "topo_matrix": (read_topo_matrix, "topo_m.txt"),
    "topo_peers": (read_peers, "topo_m.txt", "topo_p2p.txt"),
    "rocm_topo": (read_rocm_topo, "showtopo.txt"),
    "nccl_log": (read_nccl_log, "nccl.log"),
    "nccl_tests": (read_nccl_tests, "table.txt"),
    "nccl_tests_json": (read_nccl_tests_json, "tests.json"),
    "deepep": (read_deepep, "deepep.txt"),
    "flight": (read_flight, "flight1", "flight2.json"),
    "pickle": (read_pickle, "flight1"),
    "watchdog": (read_watchdog, "watchdog.log"),
    "ended": (lambda data: ended_findings(read_ended_lines(BytesIO(data))), "ended.log"),
    "phrases": (lambda data: phrase_findings("x", BytesIO(data)), "phrases.log"),
    "stacks": (lambda data: stack_findings(read_stacks_lines(BytesIO(data))), "stacks.txt"),
    "desync": (lambda data: watched_findings("x", read_watchdog(data)), "desync.log"),
    "saved": (lambda data: read_flight(data, "x1"), "saved"),
    "topology_conf": (for_slurm(read_topology_conf), "topology.conf"),
    "topology_yaml": (for_slurm(read_topology_yaml), "topology.yaml"),
    "topograph": (for_slurm(read_topograph), "topograph.yaml"),
    "kueue": (read_kueue, "kueue.yaml"),
    "yaml": (read_yaml, "topology.yaml", "topograph.yaml", "kueue.yaml"),
    "xml": (read_xml, "topology.xml", "graph.xml", "msccl.xml"),
    "scontrol": (read_nodes, "scontrol.txt"),
    "hosts": (lambda data: hosts(data.decode("utf-8", "replace")), "hosts.txt"),
    "ibnetdiscover": (for_slurm(read_ibnetdiscover), "ibnetdiscover.txt"),
    "ibnet_flat": (for_slurm(read_ibnet_flat), "ibnet_flat.txt"),
    "iblinkinfo": (for_slurm(read_iblinkinfo), "iblinkinfo.txt"),
    "tuner": (read_tuner, "tuner.conf"),
    "msccl": (msccl, "msccl.xml"),
    "mscclpp": (lambda data: prove_mscclpp(read_mscclpp(data)), "mscclpp.json"),
    "mscclpp_older": (lambda data: read_mscclpp_older(data).operations(), "older.json"),
    "schedule": (read_schedule, "schedule.json"),
    "timeline": (read_timeline, "x.timeline"),
    "chrome": (read_chrome, "chrome.json"),
    "kineto": (lambda data: read_kineto(BytesIO(data)), "kineto.json"),
    "chakra": (read_chakra, "graph.et"),
    "pieces": (lambda data: piece_findings("x", read_pieces(data)[0]), "pieces.json"),
    "smi_table": (read_smi_table, "host.toml"),
    "smi_links": (read_smi_links, "host.toml"),
    "smi_query": (read_smi_query, "host.toml"),
    "lspci": (read_lspci, "host.toml"),
    "ib_ports": (read_ib_ports, "host.toml"),
    "gids": (read_gids, "host.toml"),
    "interfaces": (read_interfaces, "host.toml"),
    "numactl": (read_numactl, "host.toml"),
    "logged_topology": (read_logged_topology, "placed.toml", "topology.xml"),
    "lstopo": (read_lstopo, "placed.toml"),
    "slurm_lists": (read_slurm_lists, "placed.toml"),
    "block_table": (read_block_table, "placed.toml"),
    "kernel_tables": (read_kernel_tables, "placed.toml"),
    "hypernodes": (read_hypernodes, "placed.toml"),
    "shown": (read_shown, "placed.toml", "scontrol.txt"),
    "profile_summary": (read_profile_summary, "placed.toml"),
    "gathered": (lambda data: [gathered_graphs(p) for p in read_pieces(data)[0]], "placed.toml"),
    "of_host": (of_host, "host.toml", "placed.toml"),
    "ras": (read_ras, "ras.txt"),
    "inspector": (read_inspector, "inspector.jsonl"),
    "inspector_prom": (lambda data: read_inspector_prom(BytesIO(data)), "inspector.prom"),
    "bandwidth": (
        lambda data: bandwidth_findings("x", read_bandwidth_lines(data.splitlines(keepends=True))),
        "bandwidth.txt",
    ),
    "iterations": (
        lambda data: iteration_findings("x", read_iterations(data.splitlines(keepends=True))),
        "iterations.txt",
    ),
    "facts": (lambda data: read_facts(data, "x"), "facts.json"),
    "cluster": (lambda data: read(data, "x.toml"), "cluster.toml"),
    "own": (own, "tuner.conf", "cluster.toml", "job.toml", "job.json", "arrivals.csv", "jobs.json",
            "algorithms.toml", "schedule.json", "x.timeline", "bench.json", "walk.json"),
    "any_file": (any_file,),
    "any_conversion": (any_conversion, "schedule.json", "msccl.xml", "mscclpp.json",
                       "topology.yaml", "x.timeline", "flight1"),
}  # fmt: skip
"""By name: what reads, and the files to change most of the time; none: all."""
WORDS = [b"<", b">", b"\n", b"\x00", b"\xff", b"-1", b"9" * 40, b"1e999", b"nan", b'"', b"{", b"[",
         b"GPU0", b"NCCL INFO ", b"X", b"SYS", b"NV18", b"r\xff\xff\xff\x7f", b"\x80\x02", b"0",
         b"1", b"2147483647", b"4294967296", b"9223372036854775807", b"true", b"null", b"a[1-9]",
         b" " * 99, b"&x ", b"*x ", b"]", b"}", b"- ", b": ", "\u0661\u00b2".encode(),
         "\u00b2".encode()]  # fmt: skip
TOKEN = re.compile(rb"\d+|\"[^\"\n]{0,99}\"")
VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2,
    7,
    64,
    2**31,
    2**63 - 1,
    2**64,
    1.5,
    1e308,
    "",
    "x",
    [],
    {},
    [[]],
]


def changed(chance, data, others):
    """A few changes of bytes, words, values, pieces and order."""
    if data[:1] in b"{[" and chance.random() < 0.5:
        data = _changed_value(chance, data)
    out = bytearray(data)
    for _ in range(chance.randint(0, 6)):
        at = chance.randrange(len(out) + 1)
        to = min(len(out), at + chance.choice((1, 4, 30, 300)))
        match chance.randrange(8):
            case 0:
                out[at:to] = b""
            case 1:
                out[at:at] = chance.choice(WORDS)
            case 2:
                out[at:to] = chance.randbytes(to - at)
            case 3:
                out[at:at] = out[at:to] * chance.randint(1, 20)
            case 4:
                other = chance.choice(others)
                start = chance.randrange(len(other))
                out[at:at] = other[start : start + 200]
            case 5 | 6:
                if token := TOKEN.search(out, at):
                    out[token.start() : token.end()] = chance.choice(WORDS)
            case _:
                if chance.random() < 0.3:
                    del out[at:]
    made = bytes(out)
    return gzip.compress(made, 1)[: chance.choice((10**9, 60))] if chance.random() < 0.02 else made


def _changed_value(chance, data):
    """JSON with some of its values, keys and lists changed."""
    try:
        value = json.loads(data)
    except ValueError:
        return data
    for _ in range(chance.randint(1, 4)):
        at = value
        while isinstance(at, dict | list) and at:
            key = chance.choice(list(at)) if isinstance(at, dict) else chance.randrange(len(at))
            if not isinstance(at[key], dict | list) or not at[key] or chance.random() < 0.15:
                match chance.randrange(4):
                    case 0:
                        del at[key]
                    case 1 if isinstance(at, list):
                        at.insert(key, deepcopy(at[key]))
                    case _:
                        at[key] = deepcopy(chance.choice(VALUES))
                break
            at = at[key]
    return json.dumps(value).encode()


def fuzz(name, seconds, seed):
    """Number of inputs tried in so many seconds."""
    reader, *own = READERS[name]
    files = seeds()
    mine = [files[file] for file in own] or list(files.values())
    others = list(files.values())
    with open("/proc/self/statm") as statm:
        taken = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, resource.RLIM_INFINITY))
    chance, end, tried = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = changed(chance, chance.choice(mine if chance.random() < 0.8 else others), others)
        faulthandler.dump_traceback_later(SLOWEST, exit=True)
        try:
            reader(data)
        except RoundelayError:
            pass
        except BaseException:
            print(f"{name}, seed {seed}, input {tried}: {data!r}", file=sys.stderr)
            raise
        tried += 1
    faulthandler.cancel_dump_traceback_later()
    return tried


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in READERS:
        sys.exit(f"READER SECONDS SEED; readers: {', '.join(READERS)}")
    print(fuzz(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
