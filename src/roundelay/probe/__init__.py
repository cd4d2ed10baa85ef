"""Measure this machine: how fast messages go between its ranks, and between hosts.

`probe_here` starts ranks of its own on this host; `probe_job` measures among the ranks of a job
that runs already. `as_cluster` makes a cluster of what was found.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..bench.controller import short_folder
from ..bench.job import Command, Job
from ..bench.machine import available_bytes, cores, machine
from ..bench.ours import environment
from ..bench.race import NotBuilt
from ..communicator import Communicator
from ..errors import RoundelayError
from ..run.launch import rank_environments
from .clusters import as_cluster
from .figures import Measured, Probed, middle, per_byte, rates, times
from .measures import Measures

__all__ = ["Measured", "Probed", "as_cluster", "probe_here", "probe_job"]

LARGE: Final = 16 << 20
"""Bytes of a message that is all bandwidth; less where memory is short."""
ROUNDS: Final = 4
REPEATS: Final = 5
"""Of each measurement in each round."""
MOST_RANKS: Final = 256
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
        raise NotBuilt(
            "the native core is not built, so nothing can be measured; expected roundelay._native. "
            "Build it with a C++20 compiler: pip install ."
        )
    with short_folder() as folder:
        address = folder / "probe.sock"
        job = Job("probe", n, _command(n, address), folder, address)
        with contextlib.closing(job):
            job.wait()

            def ask(do: str, **arguments: Any) -> list[float]:
                found: list[float] = job.ask(_PATIENCE, do, **arguments)[0]["seconds"]
                return found

            figures = _inside(ask, list(range(n)), _large(n))
    return Probed(1, n, machine(), figures, {})


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

    large = _large(len(comm.nodes[0]), comm)
    figures = _inside(ask, list(comm.nodes[0]), large)
    by_host = _between(comm, ask, large) if len(comm.nodes) > 1 else {}
    if by_host:
        latencies, widths = zip(*by_host.values(), strict=True)
        figures["network_latency"] = middle(latencies)
        figures["network_rate"] = middle(widths)
    return Probed(len(comm.nodes), len(comm.nodes[0]), machine(), figures, by_host)


def _inside(ask: Ask, ranks: list[int], large: int) -> dict[str, Measured]:
    """Figures of one host; those of messages where it has two ranks or more.

    All are measured in turn, several times, so that a slow moment of the machine meets all alike.
    """
    n = len(ranks)
    wanted: dict[str, dict[str, Any]] = {
        "copy": {"nbytes": large}, "reduce": {"nbytes": large}, "call": {},
    }  # fmt: skip
    if n > 1:
        pair = {"a": ranks[0], "b": ranks[1]}
        wanted["latency"] = pair
        wanted["one_way"] = {**pair, "nbytes": large}
        wanted["everyone"] = {"ranks": ranks, "nbytes": large}
    seconds: dict[str, list[float]] = {do: [] for do in wanted}
    for _ in range(ROUNDS):
        for do, arguments in wanted.items():
            seconds[do] += ask(do, times=REPEATS, **arguments)
    figures = {
        "copy": rates("copy", n * large, seconds["copy"], "B/s"),
        "reduce": per_byte("reduce", large, seconds["reduce"]),
        "call": times("call", seconds["call"]),
    }
    if n > 1:
        figures |= {
            "latency": times("latency", seconds["latency"]),
            "rate": rates("rate", large, seconds["one_way"], "B/s oneway"),
            "all_rate": rates("all_rate", n * large, seconds["everyone"], "B/s oneway"),
        }
    return figures


def _between(comm: Communicator, ask: Ask, large: int) -> dict[int, tuple[Measured, Measured]]:
    """Latency and rate from the first host to others."""
    found = {}
    for host in _some(len(comm.nodes)):
        pair = {"a": comm.nodes[0][0], "b": comm.nodes[host][0], "times": REPEATS}
        found[host] = (
            times("network_latency", ask("latency", **pair)),
            rates("network_rate", large, ask("one_way", nbytes=large, **pair), "B/s oneway"),
        )
    return found


def _some(hosts: int) -> Iterable[int]:
    """Hosts but the first: all, or some spread over all."""
    others = min(hosts - 1, HOSTS)
    return dict.fromkeys(1 + i * (hosts - 1) // others for i in range(others))


def _large(ranks: int, comm: Communicator | None = None) -> int:
    """Bytes that memory has room for on every rank."""
    room = (available_bytes() or 1 << 34) // (16 * ranks)
    size = max(1 << 16, min(LARGE, room))
    if comm is not None:
        size = int(comm.all_reduce(np.array([size], np.int64), op="min")[0])
    return size & ~4095
