"""The face: ranks that exchange data.

>>> import numpy as np
>>> import roundelay
>>> comm = roundelay.init()        # under `roundelay launch`, torchrun, srun, mpirun; or alone
>>> x = np.ones(4, np.float32)
>>> comm.all_reduce(x, op="sum")   # in place
array([1., 1., 1., 1.], dtype=float32)
>>> comm.close()
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

import numpy as np

from . import metrics
from .arrays import Array
from .calls import ALL_GATHER, How
from .counting import Metrics, waits
from .errors import RoundelayError
from .membership import JOB, Membership, job_tag
from .planner import Planner
from .recorder import EVENTS, LastCall, Recorder
from .requests import COLLECTIVES, Request
from .run.environment import Job
from .run.findings import Doing
from .run.group import Exchange, Group
from .run.handles import Handle, Worker
from .run.pool import Pool
from .run.session import Session, accept, join
from .selection import Table
from .stragglers import Stragglers, Watch
from .tracing import Trace


def init(
    timeout: float = 300.0, *, fixed_order: bool = False, job: Job | None = None
) -> Communicator:
    """The communicator of all ranks of this job.

    The job is found by the usual variables: those of `roundelay launch`, torchrun, Slurm, Open
    MPI or PMI; without any, this process is a job of its own. With ROUNDELAY_INVITATION, it is a
    job that goes on already, whose ranks call `grow`.

    Args:
        timeout: seconds after which it is an error that ranks have not come, or that an exchange
            gets nowhere.
        fixed_order: add up in rank order always: the same bits for every size, algorithm and
            placement of ranks. Some algorithms cannot, and are refused.
        job: the job, where it is not the variables that tell of it.

    Raises:
        RoundelayError: ranks are missing, or the environment contradicts itself.
    """
    served = metrics.asked()
    invitation = None if job else os.environ.get("ROUNDELAY_INVITATION")
    if not 0 < timeout < inf:
        raise RoundelayError(f"timeout = {timeout!r}; expected seconds, more than 0")
    session = accept(invitation, timeout) if invitation else join(job, timeout)
    try:
        if served:
            address, port = served
            metrics.serve_once(address, port + session.local.index(session.rank))
        return Communicator(
            session.exchange, session, range(session.ranks), session.rank, job_tag(session),
            timeout, fixed_order,
        )  # fmt: skip
    except BaseException:
        session.close()
        raise


class Communicator(Membership):
    """Ranks that exchange data. Every rank makes the same calls, in the same order.

    Arrays may be NumPy's, torch's on the CPU, or anything with DLPack or a buffer; what is not
    contiguous is copied. All methods raise `RoundelayError` for bad input and `ExchangeError`
    (`PeerLost`, `CallsDiffer`, `TooLate`, ...) when the exchange fails; after the latter the
    communicator cannot be used any more, but `shrink` gives one of the ranks that live.

    Every collective takes

    - `out`: where the result goes; without it, a new array, or the input itself where both are
      of one size (all_reduce, reduce, broadcast).
    - `algorithm`: "auto", a name such as "ring", or a `Schedule` of your own.
    - `async_op`: return a `Handle` at once; its `wait` gives the result. Leave the arrays alone
      until then.
    - `dtype`: how bits are read that NumPy has no type for, such as "bfloat16" in uint16.

    Attributes:
        rank: this process.
        ranks: how many there are.
        nodes: the ranks of each node.
        name: what messages, metrics and reports call it; yours to set.
    """

    def __init__(
        self,
        exchange: Exchange,
        session: Session,
        members: Sequence[int],
        rank: int,
        tag: str,
        timeout: float = 300.0,
        fixed_order: bool = False,
        arena: int | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """See `init`, `split` and `part`."""
        self.rank, self.ranks, self._pid = rank, len(members), os.getpid()
        self._session, self._members, self._tag = session, list(members), tag
        self.name = "".join(("world", *tag.partition(".")[1:]))
        self._timeout, self._fixed_order, self._splits = timeout, fixed_order, 0
        places: dict[str, list[int]] = {}
        for r, member in enumerate(self._members):
            places.setdefault(session.members[member].node, []).append(r)
        self.nodes = tuple(tuple(ranks) for ranks in places.values())
        self._group = Group(
            exchange, session, self._members, rank, range(self.ranks), tag, COLLECTIVES, arena,
            names,
        )  # fmt: skip
        self._endpoint = self._group.endpoints[rank]
        self.patience(timeout)
        self._call = self._endpoint.call
        table = Table.load(os.environ.get("ROUNDELAY_TABLE"))
        self._planner = Planner(rank, self.nodes, self._group, self._grow, table, fixed_order)
        self._recorder = Recorder(rank, self.nodes, self._planner.notes)
        self._recorder.add(self._group)
        self._watch = Watch(rank, self.ranks, self._recorder.groups)
        if folder := os.environ.get("ROUNDELAY_TRACE"):
            self._recorder.keep(Path(folder, f"rank-{session.rank}{tag.removeprefix(JOB)}.json"))
            weakref.finalize(self, self._recorder.write)
        self._planner.meet()
        self._worker: Worker | None = None
        self._gate = Lock()
        self._pool = Pool(self._endpoint)
        self._closed = False
        _OPEN.add(self)
        session.communicators.add(self)
        metrics.watch(self)

    def _make(self, *args: Any) -> Self:
        return type(self)(*args)

    def _do(
        self,
        collective: int,
        x: Any,
        out: Any,
        op: str | None,
        root: int,
        algorithm: How,
        async_op: bool,
        dtype: str | None,
        scale: Any = None,
        counts: Any = None,
    ) -> Any:
        self._usable()
        request = Request(collective, x, out, op, root, algorithm, dtype, scale, counts)
        if not async_op:
            return self._in_order(lambda: self._planner.perform(request))
        return self.later(lambda: self._planner.perform(request))

    def later(self, do: Callable[[], Any]) -> Handle:
        """Have something done in another thread, after all calls made before.

        Args:
            do: may make calls of this communicator, which then come before all later ones.

        Returns:
            a handle, whose `wait` gives what `do` returns.
        """
        self._usable()
        if self._worker is not None and self._worker.mine():
            return self._worker.submit(do)
        with self._gate:
            self._call = _never
            if self._worker is None:
                name, endpoint = f"roundelay-{self._tag}", self._endpoint
                self._worker = Worker(name, endpoint.interrupt, endpoint.absent)
            return self._worker.submit(do)

    def _usable(self) -> None:
        if self._closed:
            raise RoundelayError("the communicator is closed; make another with roundelay.init()")
        if self._pid != os.getpid():  # its threads have stayed behind
            raise RoundelayError(
                f"this communicator belongs to process {self._pid}, from which this one was "
                "forked; make one here with roundelay.init()"
            )

    def empty(self, shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
        """An array that all ranks of the node can read in place.

        Collectives on such arrays need no copy into memory between the ranks.

        Args:
            shape: as of `numpy.empty`.
            dtype: as of `numpy.empty`.
        """
        self._usable()
        try:
            kind = np.dtype(dtype)
        except TypeError as error:
            raise RoundelayError(f"dtype = {dtype!r}: {error}") from None
        if kind.hasobject:
            raise RoundelayError(f"dtype = {dtype!r}; expected numbers, not objects")
        return self._pool.empty(shape, kind)

    def trace(self, events: int = EVENTS) -> Trace:
        """Record what happens in a `with` block; every rank must enter and leave it.

        Rank 0 gets the `Timeline` of all ranks, the others that of their own process, when the
        block ends::

            with comm.trace() as trace:
                comm.all_reduce(x)
            print(trace.timeline.summary())

        When the block ends by an exception, every rank has its own events.

        Args:
            events: kept of each participant, 64 bytes each; the latest where there are more.
        """
        self._usable()
        return Trace(self, self._recorder, events, self._in_order)

    def last_calls(self) -> list[LastCall]:
        """The last 16 calls of this rank, oldest first: they are always kept.

        After an error, and from another thread while a call hangs, the last one is that call.
        """
        return self._recorder.last_calls()

    def doing(self) -> list[Doing]:
        """What this rank does in its groups, for the watchdog; from any thread.

        Nothing where calls may wait for ever, as for messages that may never come.
        """
        if self._patience == inf:
            return []
        members = [self._session.members[m].rank for m in self._members]
        return self._recorder.doing(self.name, self._tag, members)

    def metrics(self) -> Metrics:
        """What this rank has counted: calls by kind, and waits by peer. They are always counted.

        Any thread may ask, also while a call is under way or after an error.
        """
        counts = self._planner.counters.read()
        return Metrics(self.name, self.rank, counts, waits(self._recorder.groups, self.rank))

    def stragglers(self) -> Stragglers:
        """Which rank was late, how often and by how much; every rank must call it.

        It looks at the calls since the last report, at most the last 1,024, which are always
        kept, and gives the same report on all ranks.
        """
        self._usable()
        return self._watch.report(self.name, self, self._in_order)

    def _in_order(self, do: Callable[[], Any]) -> Any:
        """Do it after all calls before."""
        if self._worker is None or self._worker.mine():
            return do()
        with self._gate:
            waiting = None if self._worker.idle() else self._worker.submit(do)
            if waiting is None:
                self._call = self._endpoint.call
        return do() if waiting is None else waiting.wait()

    def patience(self, seconds: float) -> None:
        """How long calls may wait for other ranks from now on; at first the `timeout` of `init`.

        Args:
            seconds: `math.inf` is for as long as it takes.
        """
        if not seconds > 0:  # nor is NaN
            raise RoundelayError(f"patience of {seconds!r}; expected seconds, more than 0")
        self._patience = seconds
        self._endpoint.patience(seconds)

    def interrupt(self) -> None:
        """Ends, with `Interrupted`, the call that another thread is waiting in."""
        self._endpoint.interrupt()

    def _exchange(self, data: bytes) -> list[bytes]:
        """An all-gather of small bytes, for set-up; at once, in whatever thread plans a call."""

        def gather(x: Array) -> Array:
            every: Array = self._planner.perform(Request(ALL_GATHER, x, None))
            return every

        lengths = gather(np.array([len(data)], np.int64))
        row = np.zeros(int(lengths.max()) or 1, np.uint8)
        row[: len(data)] = np.frombuffer(data, np.uint8)
        rows = gather(row).reshape(self.ranks, -1)
        return [rows[r, : lengths[r]].tobytes() for r in range(self.ranks)]

    def _grow(self, hosts: list[int]) -> Group:
        """A group of the same ranks and helpers."""
        self._splits += 1
        tag = f"{self._tag}.{self._splits}+"
        group = Group(
            self._exchange, self._session, self._members, self.rank, hosts, tag, COLLECTIVES
        )
        self._recorder.add(group)
        return group

    def close(self) -> None:
        """Says farewell. Others that still wait for this rank get an error."""
        self._leave()
        if "." not in self._tag and os.getpid() == self._pid:
            self._session.close()

    def _leave(self) -> None:
        """Close, but for the session."""
        if self._closed:
            return
        self._closed = True
        self._call = _never
        _OPEN.discard(self)
        self._session.communicators.remove(self)
        metrics.forget(self)
        if self._worker is not None:
            self._worker.close()
        self._planner.close()
        self._group.close()
        self._recorder.write()

    def abort(self) -> None:
        """Close at once: a call under way in another thread ends, with `Interrupted`."""
        self.interrupt()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        nodes = f"{len(self.nodes)} node{'s' * (len(self.nodes) > 1)}"
        return f"<Communicator: rank {self.rank} of {self.ranks}, {nodes}>"


def _never(*_: Any) -> bool:
    """No short way: a worker thread does the calls in order, or the communicator is closed."""
    return False


_OPEN: weakref.WeakSet[Communicator] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for comm in list(_OPEN):
        comm.close()
