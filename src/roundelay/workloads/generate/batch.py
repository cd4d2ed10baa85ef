"""Which sequences are in the next step: requests come and go at the borders of tokens."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from .messages import Ask, Finish, Moment, Piece
from .model import MOST
from .sampling import Sampler
from .text import Stream
from .tokenizer import Tokenizer


class Step(msgspec.Struct, array_like=True):
    """What all ranks do next.

    Attributes:
        opened: sequences that begin, with the tokens that they may have.
        closed: sequences whose cache goes.
        spans: sequence, its next tokens, and whether logits are wanted after them.
        watch: whether times of exchanges are gathered.
        end: whether this is all.
    """

    opened: list[tuple[int, int]] = []
    closed: list[int] = []
    spans: list[tuple[int, list[int], bool]] = []
    watch: bool = False
    end: bool = False


class Sequence(NamedTuple):
    """A request that takes part."""

    ask: Ask
    sampler: Sampler
    stream: Stream

    @property
    def room(self) -> int:
        """Tokens that its cache must have room for; the last one made is never put in."""
        return len(self.ask.tokens) + self.ask.max_tokens - 1


@dataclass
class Batch:
    """The requests of an instance, kept by rank 0.

    Attributes:
        size: sequences that may run at once.
        room: tokens that they may have in all; one alone may have more.
        tokenizer: of the model.
    """

    size: int
    room: int
    tokenizer: Tokenizer
    _waiting: deque[Ask] = field(default_factory=deque)
    _running: dict[int, Sequence] = field(default_factory=dict)
    _next: dict[int, list[int]] = field(default_factory=dict)  # [id], tokens not yet computed
    _made: dict[int, int] = field(default_factory=dict)
    _closed: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self._waiting or self._running or self._closed)

    def add(self, ask: Ask) -> None:
        """A request has come; it waits its turn."""
        self._waiting.append(ask)

    def cancel(self, number: int) -> None:
        """Nobody waits for it any more."""
        self._waiting = deque(ask for ask in self._waiting if ask.id != number)
        if number in self._running:
            self._close(number)

    def plan(self) -> Step:
        """The next step: a token of each sequence, and as much of new prompts as there is room."""
        step = Step(opened=self._admit(), closed=self._closed)
        self._closed = []
        left = MOST - sum(len(tokens) == 1 for tokens in self._next.values())
        for number, tokens in self._next.items():
            count = 1 if len(tokens) == 1 else min(len(tokens), left)
            if count == 0:
                continue
            left -= count if len(tokens) > 1 else 0
            step.spans.append((number, tokens[:count], count == len(tokens)))
            self._next[number] = tokens[count:]
        step.watch = any(self._running[number].ask.watch for number, _, _ in step.spans)
        return step

    def _admit(self) -> list[tuple[int, int]]:
        """Take in requests that have come, in order, while there is room."""
        opened = []
        used = sum(sequence.room for sequence in self._running.values())
        while self._waiting and len(self._running) < self.size:
            ask = self._waiting[0]
            new = Sequence(ask, Sampler(ask.temperature, ask.top_p, ask.seed), Stream(ask.stop))
            if self._running and used + new.room > self.room:
                break
            self._waiting.popleft()
            used += new.room
            self._running[ask.id], self._next[ask.id] = new, ask.tokens
            self._made[ask.id] = 0
            opened.append((ask.id, new.room))
        return opened

    def drawing(self, step: Step) -> list[Sampler]:
        """Samplers of the sequences that get a token by this step, in its order."""
        return [self._running[number].sampler for number, _, last in step.spans if last]

    def take(self, step: Step, tokens: list[int], moment: Moment | None) -> list[Piece]:
        """Put the tokens drawn into their sequences.

        Args:
            step: that was done.
            tokens: of the sequences of `drawing`.
            moment: of this step, where it was watched.

        Returns:
            what there is to say.
        """
        numbers = [number for number, _, last in step.spans if last]
        return [self._took(number, token, moment)
                for number, token in zip(numbers, tokens, strict=True)]  # fmt: skip

    def _took(self, number: int, token: int, moment: Moment | None) -> Piece:
        ask, _, stream = self._running[number]
        self._made[number] += 1
        made = self._made[number]
        ended = token in self.tokenizer.stops
        full = made == ask.max_tokens
        text = stream.push(b"" if ended else self.tokenizer.bytes_of(token), ended or full)
        finish: Finish | None = "length" if full else None
        if ended or stream.stopped:
            finish = "stop"
        self._next[number] = [token]
        if finish:
            self._close(number)
        return Piece(number, text, made, finish, moment if ask.watch else None)

    def _close(self, number: int) -> None:
        del self._running[number], self._next[number], self._made[number]
        self._closed.append(number)
