"""What lines of NCCL's log stand for: each cause is told for a line of its kind, and no other."""

import re

import pytest

from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.nccl.causes import CAUSES
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict

HEAD = "a1:7:9 [0] "
IB = "transport/net_ib.cc:9"
SOCKET = "misc/socket.cc:9"

# Source file, text of the warning, kind of the finding, words of its reason.
WARNINGS = [
    # The program and its settings.
    ("bootstrap.cc:9", "Bootstrap Root : rank 3 of 8 ranks has already checked in", "rank_twice",
     "rank 3 of 8"),
    ("bootstrap.cc:9", "Bootstrap Root : mismatch in rank count from procs 8 : 16",
     "ranks_differ", "8 and 16"),
    ("bootstrap.cc:9", "Message truncated : received 128 bytes instead of 64", "messages_differ",
     "128 bytes came where 64"),
    ("init.cc:9", "invalid device count (0) requested", "bad_ranks", "rank"),
    ("init.cc:9", "Your program may be hanging, this may be caused by a collective mismatch around "
     "rank 5.", "calls_differ", "near rank 5"),
    ("misc/argcheck.cc:9", "Broadcast : sendbuff (nil) is not a valid pointer", "bad_buffer",
     "gives Broadcast .*sendbuff"),
    ("misc/argcheck.cc:9", "AllReduce : sendbuff allocated on device 0 mismatchs with NCCL device "
     "3",
     "other_card", "card 0, .* of card 3"),
    ("misc/argcheck.cc:9", "Reduce : invalid root 9 (root should be in the 0..8 range)",
     "bad_argument", "calls Reduce .*invalid root 9"),
    ("misc/argcheck.cc:9", "Reduce : invalid root 0 (root should be in the 0..0 range)",
     "communicator_unusable", "not .*usable"),
    ("misc/argcheck.cc:9", "ncclCommDestroy : comm argument is NULL", "bad_argument",
     "comm argument is NULL"),
    ("init.cc:9", "Attempt to use communicator before the previous operation returned ncclSuccess",
     "too_early", "an error came earlier"),
    ("enqueue.cc:9", "No algorithm/protocol available for function AllGather with datatype int8. "
     "NCCL_ALGO was set to tree.", "no_algorithm", "no algorithm for AllGather"),
    ("transport/net_socket.cc:9", "NET/Socket : peer 10.0.0.9<1> message truncated :",
     "sizes_differ", "how many bytes"),
    ("enqueue.cc:9", "Error : no algorithm/protocol available", "no_algorithm", "no algorithm"),
    ("proxy.cc:9", "Proxy Call to rank 3 failed (Connect)", "proxy_failed", "rank 3 .*Connect"),
    ("proxy.cc:9", "[Service thread] Accept failed Resource temporarily unavailable", "torn_down",
     "ignored"),
    ("init.cc:9", "Invalid config blocking attribute value -2147483648", "versions_differ",
     r"\(blocking\).*another version"),
    ("init.cc:9", "Invalid config maxCTAs attribute value 0", "bad_setting", "value"),
    # Sockets.
    (SOCKET, "Net : Call to recv from 10.0.0.9<1> failed : Connection reset by peer", "peer_lost",
     "Connection reset"),
    (SOCKET, "Call to connect failed : Connection timed out", "unanswered", "nothing answers"),
    (SOCKET, "Call to connect failed : Connection refused", "refused", "nobody listens"),
    (SOCKET, "Call to connect failed : No route to host", "no_route", "no way to the address"),
    (SOCKET, "socketStartConnect: Connect to 10.0.0.9<41231> failed : Connection timed out",
     "unanswered", "10.0.0.9: nothing answers"),
    (SOCKET, "Net : Call to recv from 10.0.0.9<1> failed : Connection timed out", "peer_silent",
     "no answer any more"),
    (SOCKET, "Call to bind failed : Cannot assign requested address", "no_address", "fe80"),
    ("proxy.cc:9", "[Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 6",
     "proxy_failed", "rank 3 .*by the other side"),
    (IB, "NET/IB : Got async event : client reregistration", "sm_notice", "a notice"),
    (IB, "NET/IB : mlx5_2:1 Got async event : LID change", "sm_moved", "another address"),
    (IB, "NET/IB : mlx5_2:1 Got non-fatal async event: port active(9)", "link_down",
     "down or not steady"),
    (IB, "NET/IB : Got completion from peer 10.0.0.9<1> with error 14, opcode 0", "network_error",
     "error 14 .a number of ibv_wc_status"),
    (SOCKET, "socketTryAccept: Accept failed: Bad file descriptor", "socket_closed",
     "another thread"),
    (SOCKET, "Call to bind failed : Address already in use", "no_port", "Address already"),
    (SOCKET, "Net : error encountered when getting address info : Name or service not known",
     "no_name", "name of a host"),
    (SOCKET, "ncclSocketInit: connecting to address with family 0 is neither AF_INET(2) nor "
     "AF_INET6(10)", "address_empty", "different versions"),
    ("proxy.cc:9", "[Service thread] Unknown command 5 from localRank -1", "stranger", "scanner"),
    # Memory and limits of the host.
    ("misc/shmutils.cc:9", "Error while attaching to shared memory segment /dev/shm/nccl- (size 0)"
     ", error: No such file or directory (2)", "segment_unnamed", "without a name"),
    ("misc/shmutils.cc:9", "Error: failed to open /dev/shm/nccl-x1: Permission denied",
     "segment_refused", "Permission denied"),
    ("misc/ipcsocket.cc:9", "UDS: Sending data over socket /tmp/nccl-1 failed : Connection refused "
     "(111)", "no_local_socket", "Connection refused"),
    # Plugins.
    ("net_fastsocket.cc:9", "Cannot get incoming CPU.", "harmless", "ignored"),
    ("sharp_plugin.c:9", "SHARP group create: Streaming Tree lock failed (-18)", "sharp_busy",
     "no tree left"),
    ("transport.cc:9", "Cannot initialize CollNet, using point-to-point network instead",
     "no_sharp", "not to be had"),
    ("ofi.c:9", "NET/OFI The tuner plugin can not be loaded when explicitly choosing an algorithm "
     "or protocol with NCCL_ALGO/NCCL_PROTO", "tuner_refused", "tuner"),
    ("ofi.c:9", "NET/OFI Only EFA provider is supported", "no_efa", "no network card of EFA"),
    ("ofi.c:9", "NET/OFI Couldn't open EP. RC: -12, ERROR: Out of memory", "efa_refuses",
     "versions"),
    ("ofi.c:9", "NET/OFI Request completed with error. RC: 4. Error: unknown error",
     "efa_transfer", "rank at the other end"),
    ("init.cc:9", "Error: network Foo not found.", "plugin_refused", "plugin"),
    # RDMA.
    (IB, "NET/IB: Got completion from peer 10.0.0.9<1> with status=IBV_WC_RETRY_EXC_ERR(12) "
     "opcode=IBV_WC_SEND(0) vendor_err=129", "network_error", "error 12"),
    (IB, "NET/IB : Got completion from peer 10.0.0.9<1> with status=9 opcode=0 len=0 vendor err "
     "138",
     "request_refused", "error 9"),
    (IB, "NET/IB : mlx5_2:1 Got non-fatal async event: port error(10)", "link_down", "port error"),
    (IB, "NET/IB : Got async event : local catastrophic error", "network_card_failed", "failed"),
    (IB, "NET/IB : mlx5_2:1 async fatal event on QP (0x7f): local access violation work queue "
     "error",
     "queue_failed", "local access violation"),
    (IB, "NET/IB : mlx5_2:1 GID table changed", "gid_changed", "address"),
    (IB, "NET/IB : Unable to open device mlx5_2", "no_device_access", "may not be opened"),
    ("misc/ibvwrap.cc:9", "Call to ibv_modify_qp failed with error No such device", "no_rdma_way",
     "network namespace"),
    ("misc/ibvwrap.cc:9", "Call to ibv_modify_qp failed with 110 Connection timed out, on dev "
     "mlx5_0:1, curr state INIT, next state RTR", "no_rdma_way", r"\(Connection timed out\)"),
    ("misc/ibvwrap.cc:9", "Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_0:1",
     "no_rdma_way", "port is down"),
    ("misc/ibvwrap.cc:9", "Call to ibv_reg_mr failed with error Bad address",
     "memory_not_registered", "Bad address"),
    ("misc/ibvwrap.cc:9", "Call to ibv_create_cq failed", "memory_not_pinned", "locked memory"),
    # What NCCL finds of the machine.
    ("graph/xml.cc:9", "Could not find real path of /sys/class/pci_bus/0000:01/../../0000:01:00.0",
     "no_sysfs", "WSL"),
    ("graph/search.cc:9", "Could not find a path for pattern 4, falling back to simple order",
     "no_ways_found", "pattern 4"),
    ("graph/paths.cc:9", "Failed to find reverse path from remNode 0/1000 nlinks 3 to node 0/2000",
     "one_way_link", "one end only"),
    ("graph/search.cc:9", "XML Import Channel : dev 4 not found.", "graph_file",
     "NCCL_GRAPH_FILE"),
    ("graph/topo.h:9", "Could not find NET with id 0", "not_in_topology", r"device \(NET\)"),
    ("transport.cc:9", "No transport found for rank 0[1000] -> rank 1[2000]", "no_transport",
     "rank 0 to rank 1"),
    ("mnnvl.cc:9", "MNNVL (cliqueSize 8) is available but not working on this system.", "imex",
     "IMEX"),
    # CUDA, HIP and the driver.
    ("enqueue.cc:9", "Cuda failure 'named symbol not found'", "no_kernel", "named symbol"),
    ("enqueue.cc:9", "HIP failure 'invalid kernel file'", "no_kernel", "invalid kernel file"),
    ("init.cc:9", "Cuda failure 101 'invalid device ordinal'", "no_such_card", "does not see"),
    ("init.cc:9", "Cuda failure 'all CUDA-capable devices are busy or unavailable'", "card_busy",
     "busy"),
    ("init.cc:9", "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
     "driver_unfit", "driver version"),
    ("misc/nvmlwrap.cc:9", "nvmlDeviceGetHandleByPciBusId() failed: Not Found", "nvml_fails",
     "Not Found"),
    ("proxy.cc:9", "Cuda failure 'unspecified launch failure'", "program_failed", "kernel"),
    ("proxy.cc:9", "Cuda failure 'uncorrectable NVLink error detected during the execution'",
     "card_broken", "hardware"),
    ("transport/p2p.cc:9", "Cuda failure 1 'invalid argument'", "no_peer_access", "P2P by IPC"),
    ("transport/p2p.cc:9", "hipIpcGetMemHandle failed : invalid argument", "no_peer_access",
     "hipIpcGetMemHandle"),
    ("transport/nvls.cc:9", "Cuda failure 1 'invalid argument'", "nvls_failed", "NVSwitch"),
    ("allocator.cc:9", "[Rem Allocator] Allocation failed", "out_of_memory", "memory is full"),
    ("nccl/src/register/register.cc:9 (ncclRegister)", "Cuda failure 500 'named symbol not found'",
     "buffer_not_registered", "ncclMemAlloc"),
    ("include/alloc.h:9", "Cuda failure 801 'operation not supported'", "not_to_be_had",
     "operation not supported"),
    ("include/alloc.h:9", "Cuda failure 1 'invalid argument'", "call_refused", "invalid argument"),
    ("misc/cudawrap.cc:9", "Cuda failure 900 'operation not permitted when stream is capturing'",
     "captured", "CUDA graph"),
    ("misc/nvmlwrap.cc:9", "Failed to open libnvidia-ml.so.1", "no_cuda", "libnvidia-ml"),
    ("include/alloc.h:9", "Failed to CUDA calloc async 608 bytes", "out_of_memory", "is full"),
    ("transport/p2p.cc:9", "Failed to import fabric handle", "handle_refused", "IMEX"),
    ("init.cc:9", "Cuda failure 802 'system not yet initialized'", "no_fabric_manager",
     "fabric manager"),
    ("init.cc:9", "Cuda failure 'CUDA driver is a stub library'", "stub_driver", "stub"),
    ("enqueue.cc:9", "Cuda failure 'too many resources requested for launch'", "launch_refused",
     "too many resources"),
    ("misc/nvmlwrap.cc:9", "nvmlInit_v2() failed: Driver/library version mismatch",
     "driver_unfit", "without a restart"),
    ("misc/rocm_smi_wrap.cc:9", "rsmi_init failed", "rocm_fails", "rsmi_init"),
    ("proxy.cc:9", "[Proxy Service] Failed to set CUDA device 3", "helper_without_card",
     "helper thread"),
    # What kernels ask for, and newer ways.
    ("dev_runtime.cc:9", "Communicator does not support symmetric memory!", "no_symmetric",
     "symmetric memory"),
    ("misc/gdrwrap.cc:9", "gdr_open failed", "no_gdrcopy", "gdrdrv"),
    ("gin/gin_host.cc:9", "No GIN-capable devices found.", "no_gin", "GIN"),
    # The machine and the ranks' agreement on it.
    ("graph/paths.cc:9", "Could not find any local path from gpu 3 to net.", "no_way_to_net",
     "no way leads"),
    ("graph/rings.cc:9", "Error : ring 0 does not contain rank 2", "rings_differ", "do not fit"),
    ("init.cc:9", "Failed to determine local ranks rank 3 hostHash 1f pidHash 1f localRank -1",
     "hosts_unclear", "on its own host"),
    ("graph/topo.cc:9", "Rank 3 requires NIC 2 but that NIC is not available for rank 3",
     "not_in_topology", "does not have"),
    ("graph/xml.cc:9", "Could not open XML topology file /x/y.xml : No such file or directory",
     "topology_file", "opened: /x/y.xml"),
    ("graph/xml.cc:9", "XML Topology has wrong version 2, 1 needed", "topology_file",
     "another version"),
    # Networks of others.
    ("nccl_ofi_rdma.c:9", "NET/OFI Request 0x1 completed with error. RC: 113. Error: 4119 "
     "(Unresponsive remote (was previously responsive)). Completed length: 0", "efa_peer",
     "no answer from the other side"),
    ("net_tcpx.cc:9", "0x1:0x2, nic 0, eth1, 10.0.0.1<9><-10.0.0.2<8> rx rx ctrl timeout cnt 7",
     "tcpx", "manager"),
    # The program, its settings, limits.
    ("group.cc:9", "ncclGroupEnd: not in a group call.", "bad_group", "not in a group call"),
    ("enqueue.cc:9", "FP8 reduction support begins with sm90 capable devices.", "bad_type", "FP8"),
    ("proxy.cc:9", "Proxy append out of bounds", "inner_check", "check inside NCCL"),
    ("tuning.cc:9", 'Unrecognized element token "RINGS" when parsing "RINGS"', "bad_setting",
     "does not take"),
    ("misc/shmutils.cc:9", "Error while creating shared memory segment /dev/shm/nccl-K1 (size 64), "
     "error: Cannot allocate memory (12)", "no_memory_left", "no memory left"),
    (SOCKET, "socketStartConnect: Connect to fe80::1%eno1<41231> failed : No route to host",
     "link_local", "link-local"),
    (SOCKET, "socketStartConnect: Connect to 127.0.0.1<41231> failed : Connection refused",
     "loopback", "this host itself"),
    ("msccl_parser.cc:9", "MSCCL: protocol Foo is not supported.", "msccl_refused",
     "protocol Foo"),
    ("misc/rocmwrap.cc:9", "Failed to load ROCr missing symbol hsa_init", "rocm_fails",
     "ROCr missing symbol"),
    ("ras/ras.cc:9", "RAS failed to establish a client listening socket at localhost<28028>",
     "ras_port", "ignored"),
    ("ras/rasnet.cc:9", "RAS keep-alive timeout error (60s) on socket connection with 10.0.0.9<7>",
     "ras_peer_silent", "hears nothing"),
    # Queues and ports of network cards.
    ("misc/ibvwrap.cc:9", "Call to ibv_create_qp failed with error Invalid argument",
     "queue_refused", "Invalid argument"),
    ("misc/ibvwrap.cc:9", "ibv_post_send() failed with error Cannot allocate memory, Bad WR 0x1",
     "post_failed", "failed before"),
    ("misc/ibvwrap.cc:9", "Call to ibv_alloc_pd failed", "verbs_failed", "simple call"),
    (IB, "NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE",
     "mixed_links", "InfiniBand .* Ethernet"),
    (IB, "NET/IB : Local mergedDev mlx5_0+mlx5_1 has a different number of devices=2 as remote "
     "mlx5_0 1", "nics_differ", "differently"),
    # Space of addresses, rails, UCX, and what is no rank.
    ("allocator.cc:9", "Allocation failed. No suitable space found to accommodate size=0x80000000 "
     "within limit=0x1000000000", "window_space", "64 GiB.*no free stretch of 2 GiB"),
    ("transport/shm.cc:9", "Cuda failure 217 'peer access is not supported between these two "
     "devices'", "no_peer_access", "shm.cc.*not in P2P"),
    ("ucx_plugin.c:9", "Failed: UCX error ucx_plugin.c:9 '-3' Out of memory", "ucx_refuses",
     "refuses a call .Out of memory"),
    (SOCKET, "socketFinalizeAccept: wrong magic 682f2054534f50 != 123456789abcdef", "stranger",
     "speaks HTTP"),
    (SOCKET, "socketFinalizeAccept: wrong magic fedcba9876543210 != 123456789abcdef", "stranger",
     "another kind"),
    (SOCKET, "socketFinalizeAccept: wrong magic 2d302e322d485353 != 123456789abcdef", "stranger",
     "SSH or TLS"),
    (SOCKET, "connecting to address  with family 1 is neither AF_INET(2) nor AF_INET6(10)",
     "address_empty", "is none"),
    ("f:9", "NET/OFI Unable to find a protocol that worked.  Failing initialization.", "no_efa",
     "finds no network card"),
    ("f:9", "NET/OFI Initializing plugin failed", "no_efa", "finds no network card"),
]  # fmt: skip
HARMLESS = {"harmless", "torn_down", "ras_port", "sm_notice"}


def findings(text):
    return diagnose([Given("f", data=text.encode())], None, predict, cluster).findings


@pytest.mark.parametrize(("place", "text", "kind", "words"), WARNINGS)
def test_a_warning_is_told_by_its_cause(place, text, kind, words):
    found = findings(f"{HEAD}{place} NCCL WARN {text}\n")
    assert [f.kind for f in found[:1]] == [kind], [str(f.reason) for f in found]
    assert found[0].fault is (kind not in HARMLESS)
    assert re.search(words, str(found[0].reason)), str(found[0].reason)


def test_every_cause_fills_its_sentences():
    """A figure in braces is one of a named group, or one that all findings have."""
    for cause in CAUSES:
        groups = set(cause.pattern.groupindex)
        for text in (*cause.reason, cause.advice):
            wanted = {re.split("[}:]", part)[0] for part in text.split("{")[1:]}
            names = groups | {"times", "host"}
            names |= {"needed_bytes"} if groups & {"bytes", "needed"} else set()
            names |= {"has_bytes"} if "has" in groups else set()
            names |= {"sent", "wanted"} if {"came", "room"} <= groups else set()
            assert wanted <= names, (cause.kind, wanted - names)


def test_what_another_kind_explains_is_not_told():
    found = findings(
        f"{HEAD}transport/nvls.cc:9 NCCL WARN Cuda failure 1 'invalid argument'\n"
        f"{HEAD}transport/nvls.cc:19 NCCL WARN rank 0 failed to NVLS register sendbuff 0x7\n"
    )
    assert [f.kind for f in found] == ["buffer_not_registered"]


@pytest.mark.parametrize(
    ("kinds", "lines"),
    [
        (["proxy_failed"],
         [("proxy.cc:9", "Proxy Call to rank 1 failed (Connect)"),
          (SOCKET, "Net : Connection closed by remote peer a1<59227>")]),
        (["program_failed"],
         [("enqueue.cc:9", "Cuda failure 'unspecified launch failure'"),
          ("enqueue.cc:9", "Cuda failure 'the operation cannot be performed in the present "
           "state'")]),
        (["sizes_differ"],
         [("transport/net_socket.cc:9", "NET/Socket : peer 10.0.0.9<1> message truncated : "
           "receiving 8 bytes instead of 4"),
          ("init.cc:9", "Attempt to use communicator before the previous operation returned "
           "ncclSuccess")]),
        (["not_to_be_had"],
         [("include/alloc.h:9", "Cuda failure 801 'operation not supported'"),
          ("include/alloc.h:19", "Failed to CUDA host alloc 147456 bytes")]),
    ],
)  # fmt: skip
def test_a_follower_is_not_told_beside_its_cause(kinds, lines):
    for order in (lines, lines[::-1]):
        text = "".join(f"{HEAD}{place} NCCL WARN {said}\n" for place, said in order)
        assert [f.kind for f in findings(text)] == kinds


def test_a_start_whose_failure_is_explained_is_not_called_stuck():
    start = f"{HEAD}NCCL INFO comm 0x1 rank 0 nranks {{}} cudaDev 0 busId 1000 - Init START\n"
    why = f"{HEAD}graph/search.cc:9 NCCL WARN XML Import Channel : dev 1 not found.\n"
    for ranks in (1, 16):
        found = findings(start.format(ranks) + why)
        assert [f.kind for f in found if f.fault] == ["graph_file"]


def test_an_old_line_without_a_process_s_number_is_read():
    found = findings("*the host* [0] include/socket.h:185 WARN Call to connect failed : Connection "
                     "refused\nNCCL failure x.cu:110 'unhandled system error'\n")  # fmt: skip
    assert [f.kind for f in found] == ["refused"]


def test_a_program_s_error_that_repeats_nccl_s_is_no_cause():
    found = findings(
        f"{HEAD}include/socket.h:361 NCCL WARN Call to connect failed : Connection timed out\n"
        "Traceback (most recent call last):\n"
        "a.b.UnknownError: ncclCommInitRank failed: unhandled system error\n"
    )
    assert [f.kind for f in found] == ["unanswered"]


def test_an_old_plugin_of_libfabric_is_read():
    found = findings("WARN: Function: find_ofi_provider Line: 543: NET/OFI Couldn't find any "
                     "optimal provider\nWARN: Function: main Line: 6: NET/OFI OFI NCCL failure: "
                     "2\n")  # fmt: skip
    assert [f.kind for f in found] == ["no_efa"]


def test_a_line_without_a_cause_tells_its_part():
    found = findings(f"{HEAD}graph/topo.cc:9 NCCL WARN Something that nobody has written down\n")
    assert [f.kind for f in found] == ["nccl_warns"]
    assert "search for rings and trees" in str(found[0].reason)


def test_a_failure_without_a_warning_is_told_by_its_place():
    found = findings(
        f"{HEAD}NCCL INFO NCCL_IB_ADDR_RANGE set by environment to 10.9.0.0/16\n"
        f"{HEAD}NCCL INFO transport/net_ib.cc:282 (ncclIbConnect) -> 2\n"
        f"{HEAD}NCCL INFO init.cc:1263 -> 2\n"
    )
    assert found[0].kind == "gave_up"
    for words in ("net_ib.cc:282", "ncclSystemError", "RDMA", "NCCL_IB_ADDR_RANGE=10.9.0.0/16"):
        assert words in str(found[0].reason)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO)",
         "ncclUnhandledCudaError"),
        ("it fails with NCCL Error 2: unhandled system error", "ncclSystemError"),
        ("ncclRemoteError: A call failed possibly due to a network error", "ncclRemoteError"),
    ],
)  # fmt: skip
def test_a_bare_result_asks_for_the_log(text, name):
    (found,) = findings(f"Traceback (most recent call last):\n{text}\n")
    assert (found.kind, found.fault) == ("ended_with", True)
    assert name in str(found.reason)
    assert "NCCL_DEBUG=INFO" in str(found.advice)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[FATAL ERROR]: HIP failure: 'invalid device pointer'", "no_peer_access"),
        ("NET/IB: Got completion from peer 10.0.0.9<1> with status=12 opcode=1", "network_error"),
        ("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "duplicate_card"),
        ("libibverbs: Warning: no userspace device-specific driver found for /sys/u0",
         "no_provider"),
        ("NCCL operation ncclCommInitRank(&comm) failed: unhandled cuda error. Last NCCL "
         "warning(error) log entry (may be unrelated) 'Cuda failure 2 'out of memory''.; scope",
         "out_of_memory"),
        ("RuntimeError: CUDA error: invalid device ordinal", "no_such_card"),
        ("UserWarning: CUDA initialization: ... Error 802: system not yet initialized (x.cpp:1)",
         "no_fabric_manager"),
        ("failed: cudaErrorIllegalAddress at kernel.cu:3", "program_failed"),
        ("CUDA failure 700: an illegal memory access was encountered ; GPU=3", "program_failed"),
        ("CUDA error 217 in ipc.cu", "no_peer_access"),
        ("Failed: Cuda error /src/all_reduce.cuh:3 'invalid argument'", "call_refused"),
        ("RuntimeError: HIP error: invalid device function", "no_kernel"),
        ("Memory access fault by GPU node-4 (Agent handle: 0x5) on address 0x7.", "program_failed"),
        ("[n1:5 :0:5] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15"
         " vend 0x81)", "network_error"),
        ("EFA internal error: (4120) Unresponsive remote (reachable by EFA device but handshake "
         "failed)", "efa_peer"),
        ("lib/libtorch_cuda.so: undefined symbol: ncclCommRegister", "versions_differ"),
        ("RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
         "no_cuda"),
        ("ibv_reg_mr(x) failed : Please set max locked memory (ulimit -l) to 'unlimited'",
         "memory_not_pinned"),
        ("RuntimeError: Cannot re-initialize CUDA in forked subprocess.", "no_cuda"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling x", "out_of_memory"),
        ("Expected 4 threads to join the rendezvous, but only 3 of them arrived on time.",
         "rendezvous_stuck"),
        ("UnknownError: NCCL: unhandled system error. Set NCCL_DEBUG=WARN for detail.",
         "ended_with"),
        ("ExternalError:  Nccl error, invalid usage  (at nccl_helper.h:1)", "ended_with"),
    ],
)  # fmt: skip
def test_what_others_say_of_nccl_is_read(text, kind):
    found = findings(f"one\n{text}\n")
    assert found[0].kind == kind
    assert found[0].evidence[0].line == 2


def test_a_way_back_beside_followers_only_is_told():
    found = findings(
        f"{HEAD}NCCL INFO misc/socket.cc:567 -> 2\n"
        f"{HEAD}proxy.cc:9 NCCL WARN [Proxy Service 3] Failed to execute operation Connect from "
        "rank 3, retcode 2\n"
    )
    assert "gave_up" in {f.kind for f in found}


RETRY = f"{HEAD}NCCL INFO Call to connect returned Connection refused, retrying\n"


def test_retries_are_told_while_the_start_is_not_through():
    assert findings(RETRY)[0].kind == "retrying"
    through = RETRY + f"{HEAD}NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 - Init COMPLETE\n"
    assert not any(f.fault for f in findings(through))


SYMBOLS = f"{HEAD}NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.\n"


def test_missing_symbols_of_plugins_are_told_only_alone():
    (found,) = findings(SYMBOLS)
    assert (found.kind, found.fault) == ("no_plugin", False)
    (none,) = findings(f"{HEAD}NCCL INFO NET/Plugin : No plugin found (libnccl-net.so)\n")
    assert none.kind == "no_plugin"
    both = findings(SYMBOLS + f"{HEAD}{IB} NCCL WARN NET/IB : mlx5_2:1 GID table changed\n")
    assert "no_plugin" not in {f.kind for f in both}


TUNNEL = f"{HEAD}NCCL INFO Bootstrap : Using [0]ip6tnl0:fe80::1%ip6tnl0<0> [1]eth0:10.0.0.1<0>\n"


def test_a_tunnel_or_loopback_is_no_way_between_hosts():
    found = findings(TUNNEL)
    assert (found[0].kind, found[0].fault) == ("odd_interface", True)
    assert "ip6tnl0 (fe80::1%ip6tnl0)" in str(found[0].reason)
    one = TUNNEL + f"{HEAD}NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0\n"
    assert not any(f.kind == "odd_interface" for f in findings(one))
    second = TUNNEL.replace("[0]ip6tnl0", "[0]eth1:10.0.0.2<0> [1]ip6tnl0")
    assert not any(f.kind == "odd_interface" for f in findings(second))
    loop = f"{HEAD}NCCL INFO Bootstrap : Using lo:127.0.0.1<0>\n"
    assert not any(f.kind == "odd_interface" for f in findings(loop))
    assert findings(loop + loop.replace("a1:", "a2:"))[0].kind == "odd_interface"


def test_plain_lines_of_old_versions_are_no_warnings():
    found = findings(
        "a:1:2 [0] INFO NET/Socket : 1 interfaces found\n"
        "a:1:2 [0] INFO NET/IB : Using interface eth0 for sideband communication\n"
        "a:1:2 [0] transport/net_ib.cu:187 WARN NET/IB : Unable to open device mlx5_0\n"
    )
    assert [f.kind for f in found] == ["no_device_access"]


def test_words_of_a_program_that_look_like_an_error_s_name_are_none():
    found = findings(f"{HEAD}NCCL INFO Using network IB\ncudaErrorHandling enabled, all is well\n")
    assert not [f for f in found if f.fault]


def test_an_exit_code_says_nothing_beside_nccl_s_own_error():
    off = f"{HEAD}NCCL INFO NCCL_P2P_DISABLE set by environment to 1\n"
    odd = f"{HEAD}some.cc:9 NCCL WARN Something that nobody has written down\n"
    code = "Process name: [[1,1],3]\nExit code:    5\n"
    assert "ended_first" in [f.kind for f in findings(off + code)]
    assert "ended_first" in [f.kind for f in findings(code + odd)]
    assert [f.kind for f in findings(odd + code)] == ["nccl_warns"]


def test_lines_of_libraries_without_nccl_s_head_are_read():
    rails = "NET/OFI Unexpected number of remote rails for dev 5. Expected 4 but got 2\n"
    found = findings("NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v9)\n" + rails)
    assert [f.kind for f in found] == ["rails_differ"]
    assert "device 5 one side has 4 rails and the other 2" in str(found[0].reason)
    full = ("ncclUnhandledCudaError: Call to CUDA function failed.\nFailed to bind NVLink SHARP "
            "(NVLS) Multicast memory of size 4096 : CUDA error 2 'out of memory'.\n")  # fmt: skip
    assert [f.kind for f in findings(full)] == ["nvls_failed"]
    slots = "[ERROR] all the NVSwitch multicast resources/slot ids are used for partition id 3.\n"
    assert [f.kind for f in findings(full + slots)] == ["nvls_full"]
    ucx = "[1.5] [a1:7:0] rcache.c:9  UCX  ERROR failed to insert region 0x1 [0x0..0x0]: Invalid\n"
    known = f"{HEAD}ucx_plugin.c:9 NCCL WARN Failed: UCX error ucx_plugin.c:9 '-5' Invalid\n"
    found = findings(ucx + known)
    assert [f.kind for f in found] == ["ucx_refuses"]
    assert "cannot register memory" in str(found[0].reason)


def test_experts_that_wait_in_vain_are_told_before_what_follows():
    fails = (f"{HEAD}misc/strongstream.cc:9 NCCL WARN Cuda failure 'unspecified launch failure'\n"
             f"{HEAD}init.cc:9 NCCL WARN commDestroySync: comm 0x1 rank 1 sync deviceStream error "
             f"1\n{HEAD}init.cc:9 NCCL WARN commReclaim: cleanup comm 0x1 rank 1 failed in "
             "destroy/abort, error 1\n")  # fmt: skip
    assert [f.kind for f in findings(fails)] == ["program_failed"]
    waits = "Warning: NCCL EP timeout for combine receive, rank 6, local_expert_idx 2, src_rank 4\n"
    found = findings(waits + fails)
    assert [f.kind for f in found] == ["experts_silent"]
    assert "Rank 6 waited in vain for tokens of rank 4" in str(found[0].reason)


def test_a_last_error_in_the_middle_of_a_line_is_read():
    found = findings("3: RuntimeError: NCCL error in: x.cpp:1, unhandled system error, NCCL "
                     "version 2.18.1 3: ncclSystemError: System call failed. 3: Last error: 3: "
                     "socketStartConnect: Connect to 127.0.0.1<4321> failed : Connection refused\n"
                     )  # fmt: skip
    assert [f.kind for f in found] == ["loopback"]


def test_ranks_of_one_process_see_one_another_s_cards():
    rank = "{}NCCL INFO comm 0x{} rank {} nRanks 2 nNodes 1 localRanks 2 localRank {}\n"
    one = rank.format("a1:7:8 [0] ", 1, 0, 0) + rank.format("a1:7:9 [1] ", 2, 1, 1)
    two = rank.format("a1:7:8 [0] ", 1, 0, 0) + rank.format("a1:6:9 [1] ", 2, 1, 1)
    fails = "a1:7:8 [0] transport/p2p.cc:9 NCCL WARN hipIpcGetMemHandle failed : invalid argument\n"
    assert "all ranks are of one process" in str(findings(one + fails)[0].reason)
    assert "from one process to another" in str(findings(two + fails)[0].reason)


def test_sockets_of_one_host_are_laid_to_what_is_turned_off():
    ways = "".join(f"{HEAD}NCCL INFO NCCL_{way}_DISABLE set by environment to 1\n"
                   for way in ("P2P", "SHM"))  # fmt: skip
    link = f"{HEAD}NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0\n"
    for text, words in ((ways + link, "between ranks of one host"), (link, "between hosts")):
        told = next(f for f in findings(text) if f.kind == "sockets_only")
        assert words in str(told.reason)


def test_connections_of_several_communicators_are_not_called_one_ring():
    shm = "a1:7:8 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n"
    p2p = "a1:{}:9 [{}] NCCL INFO Channel 00 : 1[1] -> 0[0] via P2P/CUMEM/read\n"
    net = "a1:7:8 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[0] [send] via NET/Socket/0\n"
    reasons = [next(str(f.reason) for f in findings(text) if f.kind == "in_memory")
               for text in (shm + p2p.format(6, 1), shm + p2p.format(6, 0),
                            shm + net + p2p.format(6, 1))]  # fmt: skip
    assert ["bound the ring" in reason for reason in reasons] == [True, False, False]
    assert "More than one process tells of card 0" in reasons[1]
    built = next(str(f.reason) for f in findings(shm) if f.kind == "built")
    assert "shows 0" not in built


PORTS = "{}:7:9 [0] NCCL INFO NET/IB : Using {} [RO]; OOB eth0:10.0.0.1<0>\n"
TWO = "[0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE"


def test_a_host_that_lacks_a_port_of_another_s_is_named():
    found = findings(PORTS.format("a1", TWO) + PORTS.format("a2", "[0]mlx5_0:1/RoCE"))
    assert (found[0].kind, found[0].fault) == ("ports_differ", True)
    assert "Host a2 uses 1 RDMA port and host a1 2: mlx5_1:1" in str(found[0].reason)
    other = PORTS.format("a2", "[0]bnxt_re0:1/RoCE")
    own = PORTS.format("a1", "[0]mlx5_0:1/RoCE") + PORTS.format("a2", "[0]mlx5_0:1/RoCE")
    for more in (PORTS.format("a2", TWO), other, own):
        assert "ports_differ" not in [f.kind for f in findings(PORTS.format("a1", TWO) + more)]


def test_a_warning_before_the_start_does_not_explain_why_it_is_not_through():
    start = f"{HEAD}NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 busId 1000 - Init START\n"
    plugin = f"{HEAD}f:9 NCCL WARN NET/OFI aws-ofi-nccl initialization failed\n"
    assert "start_not_through" in [f.kind for f in findings(plugin + start)]
    assert "start_not_through" not in [f.kind for f in findings(start + plugin)]
