"""Metrics for Prometheus: what all open communicators of this process count.

Serving takes the extra `metrics`, which brings prometheus-client. Nothing is added to a call: the
engine counts anyway, and counts are read when somebody asks for the page.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

from .counting import Metrics
from .errors import RoundelayError

VARIABLE: Final = "ROUNDELAY_METRICS"
LOG: Final = logging.getLogger("roundelay")

_CALLS: Final = ("group", "collective", "algorithm", "size")
_WAITS: Final = ("group", "rank", "peer")


class Counted(Protocol):
    """What is served: a communicator."""

    def metrics(self) -> Metrics:
        """See `Communicator`."""


# Other threads go through it, so it is one whose values can be listed in one step.
_OPEN: WeakValueDictionary[int, Counted] = WeakValueDictionary()


def watch(comm: Counted) -> None:
    """Serve this one, too, until `forget`."""
    _OPEN[id(comm)] = comm


def forget(comm: Counted) -> None:
    """Serve it no longer."""
    _OPEN.pop(id(comm), None)


class Server:
    """The page of metrics, at http://ADDRESS:PORT/metrics; a thread serves it.

    Attributes:
        address, port: where.
    """

    def __init__(self, server: Any, thread: Any) -> None:
        """See `serve`."""
        self._server, self._thread = server, thread
        self.address, self.port = server.server_address[:2]

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def serve(port: int, address: str = "127.0.0.1") -> Server:
    """Serve the metrics of this process, from now until it ends.

    Args:
        port: 0 for one that is free.
        address: of this machine; "0.0.0.0" for all of them. There is no password.

    Raises:
        RoundelayError: prometheus-client is not there, or the port cannot be had.
    """
    library = _library()
    registry = library.CollectorRegistry()
    registry.register(Collector())
    try:
        return Server(*library.start_http_server(port, address, registry))
    except (OSError, OverflowError) as error:
        raise RoundelayError(
            f"cannot serve metrics at {address}:{port}: {error}; choose another port"
        ) from None


class Collector:
    """Gives prometheus-client what is counted at the moment."""

    def collect(self) -> Iterator[Any]:
        """All metrics; communicators of one name count as one."""
        found = [c.metrics() for ref in _OPEN.valuerefs() if (c := ref()) is not None]
        calls = _summed(((m.group, *c[:3]), c[3:]) for m in found for c in m.calls)
        yield from _families(_CALLS, calls, [
            ("roundelay_calls", "Calls of collectives that have ended well", sum),
            ("roundelay_bytes", "Bytes of these calls, by the size of the collective", sum),
            ("roundelay_seconds", "Time inside these calls, waits included", sum),
        ])  # fmt: skip
        waits = _summed(
            ((m.group, str(m.rank), str(w.peer)), w[1:]) for m in found for w in m.waits
        )
        yield from _families(_WAITS, waits, [
            ("roundelay_waits", "Long waits for another rank", sum),
            ("roundelay_waiting_seconds", "Time of these waits", sum),
            ("roundelay_longest_wait_seconds", "The longest of these waits", max),
        ])  # fmt: skip


Rows = dict[tuple[str, ...], list[tuple[float, ...]]]
Family = tuple[str, str, Any]


def _summed(pairs: Iterable[tuple[tuple[str, ...], tuple[float, ...]]]) -> Rows:
    """Values by label."""
    rows: Rows = {}
    for labels, values in pairs:
        rows.setdefault(labels, []).append(values)
    return rows


def _families(names: tuple[str, ...], rows: Rows, families: list[Family]) -> Iterator[Any]:
    """A metric for each column; where labels are equal, their sum, or the most."""
    core = _library().core
    for k, (name, text, joined) in enumerate(families):
        kind = core.CounterMetricFamily if joined is sum else core.GaugeMetricFamily
        family = kind(name, text, labels=names)
        for labels, values in rows.items():
            family.add_metric(labels, joined(row[k] for row in values))
        yield family


_LOCK: Final = Lock()
_served: dict[int, Server] = {}


def asked() -> tuple[str, int] | None:
    """Address and port that ROUNDELAY_METRICS names; None where it is not set.

    Raises:
        RoundelayError: it is neither `PORT` nor `ADDRESS:PORT`, or prometheus-client is missing.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    address, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise RoundelayError(
            f"{VARIABLE} is {text!r}; expected a port from 1 to 65535, or ADDRESS:PORT, such as "
            "9400 or 0.0.0.0:9400"
        )
    _library()
    return address.strip("[]") or "127.0.0.1", int(port)


def serve_once(address: str, port: int) -> None:
    """Serve for a whole process, once; a job does not fail where the port is taken."""
    with _LOCK:
        if os.getpid() in _served:
            return
        try:
            _served[os.getpid()] = serve(port, address)
        except RoundelayError as error:
            LOG.warning("%s, or unset %s; this rank goes on without", error, VARIABLE)


def _library() -> Any:
    try:
        import prometheus_client.core
    except ImportError:
        raise RoundelayError(
            "metrics for Prometheus need the package prometheus-client; install it with "
            "pip install 'roundelay[metrics]'"
        ) from None
    return prometheus_client
