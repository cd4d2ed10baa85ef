"""Readers on what nobody meant to write: changed, cut and mixed files are read or refused."""

import random
import time
from pathlib import Path

import pytest

from roundelay import RoundelayError
from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.formats.chakra import read_chakra
from roundelay.formats.flight import read_flight
from roundelay.formats.ibnet import read_ibnetdiscover
from roundelay.formats.ibnet_ports import read_ibnetdiscover_ports
from roundelay.formats.inspector import read_inspector
from roundelay.formats.kineto import read_kineto
from roundelay.formats.nccl_graph import read_nccl_graph
from roundelay.formats.nccl_log import read_nccl_log
from roundelay.formats.nccl_topology import read_nccl_topology
from roundelay.formats.nodelists import read_nodelists
from roundelay.formats.pickled import read_pickle
from roundelay.formats.ras import read_ras
from roundelay.formats.rocm_topo import read_rocm_topo
from roundelay.formats.slurm import read_topology_conf
from roundelay.formats.topo_matrix import read_topo_matrix
from roundelay.formats.tuner import read_tuner
from roundelay.formats.watchdog import read_watchdog
from roundelay.simulate.nccl import predict

FILES = sorted((Path(__file__).parent / "files").iterdir())
SEEDS = [path.read_bytes() for path in FILES]
SECONDS = 1.0
LONG = 600.0
SLOWEST = 20.0
"""Seconds that one small input may take, on a busy machine."""


def any_file(data):
    diagnose([Given("x1", data=data)], None, predict, cluster)


READERS = [read_nccl_topology, read_nccl_graph, read_topo_matrix, read_rocm_topo, read_nccl_log,
           read_flight, read_pickle, read_watchdog,
           read_topology_conf, read_ibnetdiscover, read_tuner, read_kineto,
           read_chakra, read_ras, read_inspector, read_ibnetdiscover_ports, read_nodelists,
           any_file]  # fmt: skip
WORDS = [b"<", b">", b"\n", b"\x00", b"\xff", b"-1", b"9" * 40, b"1e999", b"nan", b'"', b"{", b"[",
         b"GPU0", b"NCCL INFO ", b"X", b"SYS", b"NV18", b"r\xff\xff\xff\x7f", b"\x80\x02",
         b" " * 99]  # fmt: skip


def changed(chance, data):
    """A few changes of bytes, words, pieces and order."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(out) + 1)
        to = min(len(out), at + chance.choice((1, 4, 30, 300)))
        match chance.randrange(6):
            case 0:
                out[at:to] = b""
            case 1:
                out[at:at] = chance.choice(WORDS)
            case 2:
                out[at:to] = chance.randbytes(to - at)
            case 3:
                out[at:at] = out[at:to] * chance.randint(1, 20)
            case 4:
                other = chance.choice(SEEDS)
                start = chance.randrange(len(other))
                out[at:at] = other[start : start + 200]
            case _:
                del out[at:]
    return bytes(out)


def fuzz(read, seconds, seed):
    chance, end = random.Random(seed), time.monotonic() + seconds
    tried = 0
    while time.monotonic() < end:
        data = changed(chance, chance.choice(SEEDS))
        begun = time.monotonic()
        try:
            read(data)
        except RoundelayError:
            pass
        except Exception as error:
            raise AssertionError(f"{read.__name__} (seed {seed}): {data!r}") from error
        assert time.monotonic() - begun < SLOWEST, data
        tried += 1
    assert tried


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_what_is_changed_is_read_or_refused(read):
    fuzz(read, SECONDS, 1)


@pytest.mark.soak
@pytest.mark.timeout(LONG + 120)
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_what_is_changed_is_read_or_refused_for_long(read):
    fuzz(read, LONG, random.SystemRandom().randrange(2**32))
