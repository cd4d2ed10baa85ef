"""The steps of one request, from its arrival to the token on the screen, with measured times."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final, NamedTuple, TypeVar

from .gguf_file import GgufFile
from .instance import Instance
from .messages import Ask, Finish, Moment, Options, Ready
from .tokenizer import Tokenizer

STEPS: Final = ("request", "instance", "ranks", "weights", "compute", "exchange", "token")
"""The steps of a token; the later tokens of a request begin at the third."""
T = TypeVar("T")


class Arrival(NamedTuple):
    """A token of the request.

    Attributes:
        at: when the front had it, ns of CLOCK_MONOTONIC.
        moment: of its step.
    """

    at: int
    moment: Moment


@dataclass
class Walk:
    """What happened to one request; times are ns of CLOCK_MONOTONIC.

    Attributes:
        ready: what the instance said of itself.
        began: the request arrives.
        read: its tokens are known.
        prompt: how many they are.
        arrivals: tokens of the answer; several where a prompt took more than one step.
        text: of the answer.
        finish: why it ended.
    """

    ready: Ready
    began: int
    read: int
    prompt: int
    arrivals: list[Arrival]
    text: str = ""
    finish: Finish | None = None

    def steps(self) -> list[dict[str, Any]]:
        """All steps in order: name, token, start_us and duration_us, and what is known besides.

        Times are rank 0's. `compute` is the time of a step less its exchanges; `exchange` is the
        time in them with all ranks there, and `wait_us` the time in them before that. The two take
        turns, so `exchange` begins with the first one. Durations and `wait_us` of a token add up to
        the time from its first step until it is out. The next one's first step may begin before.
        """
        found = []
        for i, (at, m) in enumerate(self.arrivals):
            inside = m.inside + m.waited
            spans: list[tuple[str, int, int, dict[str, Any]]] = [
                ("ranks", m.taken, m.told - m.taken, {}),
                ("weights", m.told, m.begun - m.told, {"bytes_by_rank": self.ready.bytes}),
                ("compute", m.begun, m.ended - m.begun - inside, {"tokens": m.tokens}),
                ("exchange", m.first, m.inside,
                 {"exchanges": m.exchanges, "wait_us": m.waited / 1e3}),
                ("token", m.ended, at - m.ended, {}),
            ]  # fmt: skip
            if i == 0:
                spans[:0] = [("request", self.began, self.read - self.began, {}),
                             ("instance", self.read, m.taken - self.read, {})]  # fmt: skip
            found += [{"name": name, "token": i, "start_us": (start - self.began) / 1e3,
                       "duration_us": length / 1e3, **more}
                      for name, start, length, more in spans]  # fmt: skip
        return found

    def summary(self) -> dict[str, Any]:
        """Figures of the tokens after the first, which cost a step each."""
        later = self.arrivals[1:] or self.arrivals
        moments = [arrival.moment for arrival in later]
        first = self.arrivals[0].at if len(self.arrivals) > 1 else self.began
        whole = (self.arrivals[-1].at - first) / len(later)
        inside = sum(m.inside for m in moments) / len(later)
        waited = sum(m.waited for m in moments) / len(later)
        busy = sum(m.ended - m.begun for m in moments) / len(later)
        exchanges = sum(m.exchanges for m in moments) / len(later)
        return {
            "tokens": len(self.arrivals),
            "prompt_tokens": self.prompt,
            "first_token_us": (self.arrivals[0].at - self.began) / 1e3,
            "token_us": whole / 1e3,
            "tokens_per_second": 1e9 / whole,
            "compute_us": (busy - inside - waited) / 1e3,
            "exchange_us": inside / 1e3,
            "wait_us": waited / 1e3,
            "rest_us": (whole - busy) / 1e3,
            "exchanges_per_token": exchanges,
            "exchange_share": inside / whole,
            "wait_share": waited / whole,
            "load_s": max(self.ready.seconds),
            "bytes_by_rank": self.ready.bytes,
        }


@asynccontextmanager
async def running(options: Options) -> AsyncIterator[Instance]:
    """An instance that ends with the block."""
    instance = Instance(options)
    await instance.start()
    try:
        yield instance
    finally:
        await instance.stop()


async def walk(instance: Instance, read: Callable[[], Ask],
               tell: Callable[[str], None]) -> Walk:  # fmt: skip
    """Send one request through an instance.

    Args:
        instance: that is ready.
        read: makes the request: this is the first step.
        tell: is given its text as it comes.

    Raises:
        RoundelayError: the request is wrong, or the instance ended before it was done.
    """
    assert instance.ready is not None
    began = monotonic_ns()
    ask = read()
    ask.watch = True
    found = Walk(instance.ready, began, monotonic_ns(), len(ask.tokens), [])
    async with aclosing(instance.ask(ask)) as pieces:  # type: ignore[type-var]
        async for piece in pieces:
            assert piece.moment is not None
            found.arrivals.append(Arrival(monotonic_ns(), piece.moment))
            found.text += piece.text
            found.finish = piece.finish
            tell(piece.text)
    return found


def until_told(work: Coroutine[Any, Any, T]) -> T:
    """Run something to its end; SIGINT and SIGTERM end it in order.

    Raises:
        KeyboardInterrupt: it was ended so.
    """

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        return await task

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def opened(path: Path) -> Tokenizer:
    """The tokenizer of a model's file."""
    return Tokenizer(GgufFile(path))


def mean_steps(steps: Sequence[dict[str, Any]]) -> dict[str, float]:
    """[name], microseconds of a step of the tokens after the first, in the mean."""
    later = [s for s in steps if s["token"]] or list(steps)
    count = len({s["token"] for s in later})
    return {name: sum(s["duration_us"] for s in later if s["name"] == name) / count
            for name in STEPS[2:]}  # fmt: skip
