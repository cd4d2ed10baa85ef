"""Measure this machine: how fast messages go between its ranks, and between hosts.

`probe_here` starts ranks of its own on this host; `probe_job` measures among the ranks of a job
that runs already. `as_cluster` makes a cluster of what was found.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ..arrays import Array
from ..bench.controller import short_folder
from ..bench.job import Command, Job
from ..bench.machine import available_bytes, cache_bytes, cores, machine
from ..bench.ours import environment
from ..errors import NotBuilt, RoundelayError
from ..run.launch import rank_environments
from .clusters import as_cluster
from .figures import Measured, Probed, middle, per_byte, rates, times
from .measures import Measures

if TYPE_CHECKING:
    from ..communicator import Communicator

__all__ = ["Measured", "Probed", "as_cluster", "probe_here", "probe_job"]

LARGE: Final = 16 << 20
"""Bytes of a message that is all bandwidth, at most."""
ROUNDS: Final = 4
REPEATS: Final = 5
"""Of each measurement in each round."""
MOST_RANKS: Final = 256
MOST_CORES: Final = 8192
"""That a kernel counts."""
HOSTS: Final = 16
"""Other hosts that are measured from the first, at most; spread over all."""
_PATIENCE: Final = 60.0

Ask = Callable[..., list[float]]
"""Has one measurement done, by its name and arguments; the seconds of each repetition."""


def probe_here(ranks: int | None = None) -> Probed:
    """Measure this host, between ranks that are started for it and end with it.

    Args:
        ranks: how many; without it, one a core.

    Raises:
        NotBuilt: the native core is not there.
        RoundelayError: too few or too many ranks, or one of them failed.
    """
    n = max(2, min(cores(), MOST_RANKS)) if ranks is None else ranks
    if not 2 <= n <= MOST_RANKS:
        raise RoundelayError(f"{n} ranks; expected 2 to {MOST_RANKS}, as messages are measured")
    if find_spec("roundelay._native") is None:
        raise NotBuilt("nothing can be measured")
    with short_folder() as folder:
        address = folder / "probe.sock"
        job = Job("probe", n, _command(n, address), folder, address)
        with contextlib.closing(job):
            job.wait()

            def ask(do: str, **arguments: Any) -> list[float]:
                found: list[float] = job.ask(_PATIENCE, do, **arguments)[0]["seconds"]
                return found

            limits = _limits(n, cores(), _room(n))
            figures = _inside(ask, list(range(n)), limits)
    return Probed(1, n, machine(), figures, {}, limits.cache)


def _command(ranks: int, address: Path) -> Command:
    line = [sys.executable, "-m", f"{__package__}.worker", str(address)]
    return Command([line] * ranks, rank_environments(environment(), ranks))


def probe_job(comm: Communicator) -> Probed:
    """Measure among the ranks of a job; every rank must call it, and all get the same.

    Args:
        comm: all ranks of the job.

    Raises:
        RoundelayError: there is one rank only, or hosts have different numbers of ranks.
    """
    sizes = {len(ranks) for ranks in comm.nodes}
    if len(sizes) > 1 or comm.ranks < 2:
        raise RoundelayError(
            f"hosts with {' and '.join(map(str, sorted(sizes)))} ranks; expected as many on each, "
            "and 2 or more in all"
        )
    handlers = Measures(comm).handlers

    def ask(do: str, **arguments: Any) -> list[float]:
        found: list[float] = handlers[do](**arguments)["seconds"]
        return found

    n = len(comm.nodes[0])
    limits = _limits(n, _cores_of(comm), comm.all_reduce(_room(n), op="min"))
    figures = _inside(ask, list(comm.nodes[0]), limits)
    by_host = _between(comm, ask, limits.large // 4) if len(comm.nodes) > 1 else {}
    if by_host:
        latencies, widths = zip(*by_host.values(), strict=True)
        figures["network_latency"] = middle(latencies)
        figures["network_rate"] = middle(widths)
    return Probed(len(comm.nodes), n, machine(), figures, by_host, limits.cache)


class _Limits(NamedTuple):
    """What the measurements of a host keep to.

    Attributes:
        large: bytes of a message that is all bandwidth, which memory has room for on every rank.
        cache: bytes of a collective whose buffers, twice as large, stay in caches; 0: not known.
        crowded: whether there are more ranks than cores.
    """

    large: int
    cache: int
    crowded: bool


def _room(ranks: int) -> Array:
    """Bytes that each of a host's ranks may have, of memory and of a core's own cache."""
    memory = (available_bytes() or 1 << 34) // (16 * ranks)
    return np.array([memory, cache_bytes()], np.int64)


def _limits(ranks: int, cores: int, room: Array) -> _Limits:
    crowd = max(1, -(-ranks // cores))  # ranks of a core
    memory, cache = (int(nbytes) for nbytes in room)
    return _Limits(max(1 << 16, min(LARGE, memory)) & ~4095, cache // (2 * crowd), crowd > 1)


def _cores_of(comm: Communicator) -> int:
    """Cores that the ranks may use together; launchers give each its own."""
    mine = np.zeros(MOST_CORES, np.uint8)
    mine[list(os.sched_getaffinity(0))] = 1
    return int(comm.all_reduce(mine, op="max").sum())


def _inside(ask: Ask, ranks: list[int], limits: _Limits) -> dict[str, Measured]:
    """Figures of one host; those of messages where it has two ranks or more.

    All are measured in turn, several times, so that a slow moment of the machine meets all alike.
    """
    n, large = len(ranks), limits.large
    wanted: dict[str, dict[str, Any]] = {
        "copy": {"nbytes": large}, "reduce": {"nbytes": large}, "call": {},
    }  # fmt: skip
    if n > 1:
        pair = {"a": ranks[0], "b": ranks[1]}
        wanted["turn" if limits.crowded else "latency"] = (
            {"ranks": ranks} if limits.crowded else pair
        )
        wanted["rate"] = {**pair, "nbytes": large}
        wanted["all_rate"] = {"ranks": ranks, "nbytes": large}
    if n > 1 and limits.cache:
        wanted["cached"] = {"ranks": ranks, "nbytes": limits.cache * (n - 1) // (2 * n)}
    seconds: dict[str, list[float]] = {name: [] for name in wanted}
    for _ in range(ROUNDS):
        for name, arguments in wanted.items():
            seconds[name] += ask(_BY.get(name, name), times=REPEATS, **arguments)
    return {
        "latency" if name == "turn" else name: _figure(
            name, wanted[name].get("nbytes", 0), n, found
        )
        for name, found in seconds.items()
    }


_BY: Final = MappingProxyType({"rate": "one_way", "all_rate": "everyone", "cached": "everyone"})
"""Figures that are not called as what measures them."""


def _figure(name: str, nbytes: int, n: int, seconds: list[float]) -> Measured:
    if name == "reduce":
        return per_byte(name, nbytes, seconds)
    if not nbytes:
        return times(name, seconds)
    together = nbytes if name == "rate" else n * nbytes
    return rates(name, together, seconds, "B/s" if name == "copy" else "B/s oneway")


def _between(comm: Communicator, ask: Ask, nbytes: int) -> dict[int, tuple[Measured, Measured]]:
    """Latency and rate from the first host to others, the rate by messages of so many bytes."""
    found = {}
    for host in _some(len(comm.nodes)):
        pair = {"a": comm.nodes[0][0], "b": comm.nodes[host][0], "times": REPEATS}
        found[host] = (
            times("network_latency", ask("latency", **pair)),
            rates("network_rate", nbytes, ask("sustained", nbytes=nbytes, **pair), "B/s oneway"),
        )
    return found


def _some(hosts: int) -> Iterable[int]:
    """Hosts but the first: all, or some spread over all."""
    others = min(hosts - 1, HOSTS)
    return dict.fromkeys(1 + i * (hosts - 1) // others for i in range(others))
