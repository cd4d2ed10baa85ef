"""Traffic over instances that come and go, step by step of their batches.

A request goes to the least loaded instance that is ready, and is refused where all are full, as
`roundelay llm` does it. An instance takes waiting requests into its batch between two steps; the
next step is longer by their prompts, and ends with the first token of each.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf, nan
from typing import Final

import numpy as np

from ..errors import RoundelayError
from .policy import LOOK, Scaler, Seen
from .speed import Speed
from .traffic import Request

MOST_STEPS: Final = 50_000_000
"""Steps of all batches, after which it is given up."""

MOST_LOOKS: Final = 500_000
"""Looks of a policy, after which it is given up; every 15 s, 87 days."""


@dataclass(frozen=True)
class Service:
    """What is scaled.

    Attributes:
        speed: of an instance.
        queue: requests that may wait in each beside those that run.
        cards: of an instance.
        look: seconds from one look of the policy to the next.
        first_token, token: seconds that a request's first token, and each later one in the mean,
            may take so that it is in time.
    """

    speed: Speed
    queue: int = 64
    cards: int = 1
    look: float = LOOK
    first_token: float = 2.0
    token: float = 0.1

    def __post_init__(self) -> None:
        times = (self.look, self.first_token, self.token)
        if self.queue < 0 or self.cards < 1 or not min(times) > 0:
            raise RoundelayError("a service whose queue, cards or times are not above 0; expected "
                                 "a queue of 0 or more, and all else above")  # fmt: skip


@dataclass
class Outcome:
    """What became of the requests.

    Attributes:
        first: [request] seconds to its first token; NaN where it was refused.
        token: [request] seconds of a later token in the mean; NaN where there is none.
        in_time: part of all requests that were; those refused were not.
        tokens: that were made.
        card_hours: from the start of each instance to its end.
        instances: (second, instances) whenever their number has changed.
        ended: seconds until the last request was done.
    """

    first: np.ndarray[tuple[int], np.dtype[np.float64]]
    token: np.ndarray[tuple[int], np.dtype[np.float64]]
    in_time: float
    tokens: int
    card_hours: float
    instances: list[tuple[float, int]]
    ended: float

    @property
    def refused(self) -> int:
        """Requests that found all instances full."""
        return int(np.isnan(self.first).sum())

    @property
    def mean_instances(self) -> float:
        """Over time."""
        times, counts = zip(*self.instances, strict=True)
        spans = np.diff([*times, max(self.ended, times[-1])])
        return float(spans @ counts / spans.sum()) if spans.sum() else float(counts[-1])


@dataclass(eq=False)
class _Served:
    number: int
    request: Request
    first: float = nan
    made: int = 0


@dataclass(eq=False)
class _Instance:
    began: float
    ready: bool = False
    leaving: bool = False
    busy: bool = False
    running: list[_Served] = field(default_factory=list)
    waiting: deque[_Served] = field(default_factory=deque)

    @property
    def load(self) -> int:
        return len(self.running) + len(self.waiting)


class _Run:
    """One run of all requests."""

    def __init__(self, requests: Sequence[Request], service: Service, scaler: Scaler) -> None:
        self.requests, self.service, self.scaler = requests, service, scaler
        self.speed = service.speed
        self.now, self.left, self.work, self.tokens = 0.0, len(requests), 0.0, 0
        self._answers = self._answered = 0
        self.first = np.full(len(requests), nan)
        self.token = np.full(len(requests), nan)
        self.in_time = 0
        self.instances = [_Instance(0.0, ready=True) for _ in range(scaler.least)]
        self.spent, self.history = 0.0, [(0.0, scaler.least)]
        self._events: list[tuple[float, int, _Instance | None]] = []
        self._order = count()

    def go(self) -> Outcome:
        """Until all requests are done."""
        self._at(0.0, None)
        next_request, steps = 0, 0
        while self.left:
            arrives = self.requests[next_request].at if next_request < len(self.requests) else inf
            if arrives <= self._events[0][0]:
                self.now = arrives
                self._arrive(next_request)
                next_request += 1
                continue
            self.now, _, instance = heapq.heappop(self._events)
            if instance is None:
                self._look()
            elif not instance.ready:
                instance.ready = True
            else:
                steps += 1
                self._stepped(instance)
            if steps > MOST_STEPS:
                raise RoundelayError(f"more than {MOST_STEPS:,} steps; expected less traffic, "
                                     "shorter answers or larger batches")  # fmt: skip
        for instance in self.instances:
            self.spent += self.now - instance.began
        hours = self.spent * self.service.cards / 3600
        return Outcome(self.first, self.token, self.in_time / len(self.requests), self.tokens,
                       hours, self.history, self.now)  # fmt: skip

    def _at(self, moment: float, instance: _Instance | None) -> None:
        heapq.heappush(self._events, (moment, next(self._order), instance))

    def _arrive(self, number: int) -> None:
        self.work += self._expected(self.requests[number])
        ready = [i for i in self.instances if i.ready and not i.leaving]
        room = len(ready) * (self.speed.places + self.service.queue)
        if sum(instance.load for instance in ready) >= room:
            self.left -= 1
            return
        instance = min(ready, key=lambda i: i.load)
        instance.waiting.append(_Served(number, self.requests[number]))
        if not instance.busy:
            self._begin(instance)

    def _expected(self, request: Request) -> float:
        """Seconds of a full instance that it will take, with an answer as long as those before."""
        answer = self._answers / self._answered if self._answered else 0.0
        return self.speed.prefill * request.prompt + self.speed.share * answer

    def _begin(self, instance: _Instance) -> None:
        """The next step, with those who wait as far as there is room."""
        seconds = 0.0
        while instance.waiting and len(instance.running) < self.speed.places:
            served = instance.waiting.popleft()
            instance.running.append(served)
            seconds += self.speed.prefill * served.request.prompt
        instance.busy = bool(instance.running)
        if instance.busy:
            seconds += self.speed.steps[len(instance.running) - 1]
            self._at(self.now + seconds, instance)
        elif instance.leaving:
            self._leave(instance)

    def _stepped(self, instance: _Instance) -> None:
        """Each that runs has made a token."""
        self.tokens += len(instance.running)
        for served in instance.running:
            served.made += 1
            if served.made == 1:
                served.first = self.now
        done = [s for s in instance.running if s.made == s.request.answer]
        for served in done:
            self._done(served)
        if done:
            instance.running = [s for s in instance.running if s.made < s.request.answer]
        self._begin(instance)

    def _done(self, served: _Served) -> None:
        request, more = served.request, served.made - 1
        self._answers += served.made
        self._answered += 1
        first = served.first - request.at
        token = (self.now - served.first) / more if more else nan
        self.first[served.number], self.token[served.number] = first, token
        self.in_time += first <= self.service.first_token and not token > self.service.token
        self.left -= 1

    def _look(self) -> None:
        """Let the policy look, and do what it wants."""
        staying = [i for i in self.instances if not i.leaving]
        seen = Seen(self.now, len(staying), self.speed.places,
                    sum(len(i.running) for i in self.instances),
                    sum(len(i.waiting) for i in self.instances), self.work)  # fmt: skip
        self.work = 0.0
        more = self.scaler.count(seen) - len(staying)
        for _ in range(more):
            self.instances.append(instance := _Instance(self.now))
            self._at(self.now + self.speed.start, instance)
        if more < 0:
            self._shrink(staying, -more)
        if more:
            self.history.append((self.now, len(staying) + more))
        self._at(self.now + self.service.look, None)

    def _shrink(self, staying: Sequence[_Instance], fewer: int) -> None:
        """The least loaded take no more requests, and end when they have none; one stays ready."""
        ready = sum(i.ready for i in staying)
        for instance in sorted(staying, key=lambda i: (i.ready, i.load))[:fewer]:
            if instance.ready and ready == 1:
                continue
            ready -= instance.ready
            instance.leaving = True
            if not instance.busy:
                self._leave(instance)

    def _leave(self, instance: _Instance) -> None:
        self.instances.remove(instance)
        self.spent += self.now - instance.began


def simulate(requests: Sequence[Request], service: Service, scaler: Scaler) -> Outcome:
    """What becomes of the requests.

    Args:
        requests: in the order in which they come; one or more.
        service: what is scaled; it begins with `scaler.least` instances that are ready.
        scaler: how many there should be.

    Raises:
        RoundelayError: no requests, far too many steps, or requests over years.
    """
    if not requests:
        raise RoundelayError("no requests; expected one or more")
    if requests[-1].at > MOST_LOOKS * service.look:
        raise RoundelayError(f"requests over {requests[-1].at / 86400:,.0f} days; expected "
                             f"{MOST_LOOKS * service.look / 86400:,.0f} at most")  # fmt: skip
    return _Run(requests, service, scaler).go()
