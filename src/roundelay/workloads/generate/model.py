"""A rank's part of a Llama model, and one step of it for several sequences at once.

Shapes: T tokens of this step, H hidden, h query heads and k key and value heads of this rank, d the
width of a head, L tokens that a sequence has in its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, rms_norm, silu

from .cut import Cut, Shape
from .exchange import Exchange
from .gguf_file import GgufFile

MOST = 256
"""Tokens of one step, over all its sequences."""


class Layer(NamedTuple):
    """The matrices of a layer, each with its rows as outputs.

    Attributes:
        norm: [H], before attention.
        qkv: [(h + 2 k) d, H].
        out: [H, h d].
        inner_norm: [H], before the feed-forward part.
        gate_up: [2 inner, H].
        down: [H, inner].
    """

    norm: Tensor
    qkv: Tensor
    out: Tensor
    inner_norm: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(slots=True)
class Cache:
    """Keys and values of one sequence.

    Attributes:
        kv: [layer, 2 k, room, d], keys first.
        length: tokens that are in it.
    """

    kv: Tensor
    length: int = 0


class Span(NamedTuple):
    """Tokens of one sequence in a step.

    Attributes:
        cache: of the sequence.
        tokens: that follow those in the cache.
        last: whether the logits after the last of them are wanted.
    """

    cache: Cache
    tokens: Sequence[int]
    last: bool


class Model:
    """The part of one rank.

    Attributes:
        shape: of the whole model.
        cut: of this rank.
        bytes: of its matrices.
    """

    def __init__(self, file: GgufFile, exchange: Exchange, context: int | None = None) -> None:
        """Load this rank's part, once.

        Args:
            file: of the model.
            exchange: with the other ranks.
            context: tokens that a sequence may have at most; what the model allows by default.
        """
        self.shape = s = Shape.read(file)
        self.cut = c = Cut.of(s, exchange.rank, exchange.ranks)
        self._exchange = exchange
        part = slice(c.vocabulary.start, c.vocabulary.stop)
        self._embedding = _matrix(file, "token_embd.weight", part)
        untied = "output.weight" in file.tensors
        self._head = _matrix(file, "output.weight", part) if untied else self._embedding
        self._layers = [_layer(file, f"blk.{i}.", s, c) for i in range(s.layers)]
        self._norm = _matrix(file, "output_norm.weight")
        weights = {self._embedding, self._head, *(m for layer in self._layers for m in layer)}
        self.bytes = sum(m.nbytes for m in weights)
        self._turns = _turns(min(context or s.context, s.context), s)
        seats = c.seats(s)
        self._seats = torch.tensor(seats) if seats is not None else None
        group = s.heads // s.kv_heads
        self._back = torch.tensor([h - c.kv_heads.start * group for h in c.heads])
        self._sum = exchange.buffer(MOST, s.hidden)
        self._logits = exchange.buffer(MOST, c.width)

    def cache(self, room: int) -> Cache:
        """Room for a sequence of so many tokens."""
        s = self.shape
        return Cache(torch.empty(s.layers, 2 * len(self.cut.kv_heads), room, s.head))

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def step(self, spans: Sequence[Span]) -> Tensor | None:
        """Go on with sequences; they get longer by their tokens.

        Args:
            spans: at most `MOST` tokens in all.

        Returns:
            On rank 0 [span whose `last` is true, vocabulary], the logits; None elsewhere, and
            where there is none.
        """
        x = self._embed(torch.tensor([t for span in spans for t in span.tokens]))
        turns = self._turns_of(spans)
        masks = [_mask(span, self.shape) for span in spans]
        for i, layer in enumerate(self._layers):
            self._attend(i, layer, x, turns, spans, masks)
            self._feed(layer, x)
        for span in spans:
            span.cache.length += len(span.tokens)
        return self._judge(x, spans)

    def _embed(self, tokens: Tensor) -> Tensor:
        """[T, H]: every token's row, from the rank that has it."""
        mine, out = self.cut.vocabulary, self._sum[: len(tokens)]
        own = (tokens >= mine.start) & (tokens < mine.stop)
        rows = embedding((tokens - mine.start).clamp(0, max(len(mine) - 1, 0)), self._embedding)
        torch.mul(rows, own[:, None], out=out)
        self._exchange.add(out)
        return out.clone()

    def _attend(self, i: int, layer: Layer, x: Tensor, turns: Tensor, spans: Sequence[Span],
                masks: Sequence[Tensor | None]) -> None:  # fmt: skip
        """Adds what attention gives to x, [T, H]."""
        h, k, d = len(self.cut.heads), len(self.cut.kv_heads), self.shape.head
        out = self._sum[: len(x)]
        if h:
            qkv = linear(rms_norm(x, x.shape[1:], layer.norm, self.shape.epsilon), layer.qkv)
            pairs = torch.view_as_complex(qkv.view(len(x), h + 2 * k, d // 2, 2))
            qkv = torch.view_as_real(pairs * turns).view(len(x), h + 2 * k, d)
            seen, at = [], 0
            for span, mask in zip(spans, masks, strict=True):
                part = qkv[at : at + len(span.tokens)]
                at += len(span.tokens)
                seen.append(self._look(part, span.cache.kv[i], span.cache.length, mask))
            torch.mm(torch.cat(seen) if len(seen) > 1 else seen[0], layer.out.t(), out=out)
        else:
            out.zero_()
        self._exchange.add(out)
        x += out

    def _look(self, qkv: Tensor, kv: Tensor, length: int, mask: Tensor | None) -> Tensor:
        """[t, h d] of one sequence, from [t, h + 2 k, d]; its keys and values are kept in `kv`."""
        t, d = qkv.shape[0], qkv.shape[2]
        h, k = len(self.cut.heads), len(self.cut.kv_heads)
        kv[:, length : length + t] = qkv[:, h:].transpose(0, 1)
        keys, values = kv[:k, : length + t], kv[k:, : length + t]
        q = qkv[:, :h] if self._seats is None else qkv[:, self._seats]
        q = q.transpose(0, 1).reshape(k, -1, d)
        scores = torch.bmm(q, keys.transpose(1, 2))
        if mask is not None:
            scores += mask
        out = torch.bmm(torch.softmax(scores, -1), values).view(-1, t, d)
        if self._seats is not None:
            out = out[self._back]
        return out.transpose(0, 1).reshape(t, h * d)

    def _feed(self, layer: Layer, x: Tensor) -> None:
        """Adds what the feed-forward part gives to x, [T, H]."""
        out, inner = self._sum[: len(x)], len(self.cut.inner)
        both = linear(rms_norm(x, x.shape[1:], layer.inner_norm, self.shape.epsilon), layer.gate_up)
        torch.mm(silu(both[:, :inner]).mul_(both[:, inner:]), layer.down.t(), out=out)
        self._exchange.add(out)
        x += out

    def _judge(self, x: Tensor, spans: Sequence[Span]) -> Tensor | None:
        """Logits after the last tokens, on rank 0."""
        ends, at = [], 0
        for span in spans:
            at += len(span.tokens)
            ends += [at - 1] if span.last else []
        if not ends:
            return None
        if len(ends) < len(x):
            x = x[ends]
        out = self._logits.view(-1)[: len(x) * self.cut.width].view(len(x), -1)
        mine = len(self.cut.vocabulary)
        out[:, mine:] = -torch.inf
        torch.mm(rms_norm(x, x.shape[1:], self._norm, self.shape.epsilon), self._head.t(),
                 out=out[:, :mine])  # fmt: skip
        parts = self._exchange.gather(out)
        if parts is None:
            return None
        return parts.transpose(0, 1).reshape(len(x), -1)[:, : self.shape.vocabulary]

    def _turns_of(self, spans: Sequence[Span]) -> Tensor:
        """[T, h + 2 k, d / 2]: the turn of each pair, none for values."""
        h, k = len(self.cut.heads), len(self.cut.kv_heads)
        places = [span.cache.length + i for span in spans for i in range(len(span.tokens))]
        turns = torch.ones(len(places), h + 2 * k, self.shape.head // 2, dtype=torch.complex64)
        turns[:, : h + k] = self._turns[places][:, None]
        turns[:, :h] *= self.shape.head**-0.5  # what scores are divided by
        return turns


def _layer(file: GgufFile, name: str, s: Shape, c: Cut) -> Layer:
    """A rank's part of a layer."""
    heads = slice(c.heads.start * s.head, c.heads.stop * s.head)
    kv = slice(c.kv_heads.start * s.head, c.kv_heads.stop * s.head)
    inner, every = slice(c.inner.start, c.inner.stop), slice(None)
    part = {"q": heads, "k": kv, "v": kv}
    return Layer(
        norm=_matrix(file, f"{name}attn_norm.weight"),
        qkv=torch.cat([_matrix(file, f"{name}attn_{m}.weight", rows) for m, rows in part.items()]),
        out=_matrix(file, f"{name}attn_output.weight", every, heads),
        inner_norm=_matrix(file, f"{name}ffn_norm.weight"),
        gate_up=torch.cat([_matrix(file, f"{name}ffn_{m}.weight", inner) for m in ("gate", "up")]),
        down=_matrix(file, f"{name}ffn_down.weight", every, inner),
    )


def _matrix(
    file: GgufFile, name: str, rows: slice = slice(None), columns: slice = slice(None)
) -> Tensor:
    return torch.from_numpy(file.part(name, rows, columns))


def _turns(context: int, s: Shape) -> Tensor:
    """[place, d / 2], of modulus 1: the rotary embedding of Su et al., arXiv:2104.09864."""
    speeds = s.base ** (-torch.arange(0, s.head, 2, dtype=torch.float32) / s.head)
    angles = torch.arange(context, dtype=torch.float32)[:, None] * speeds
    return torch.polar(torch.ones_like(angles), angles)


def _mask(span: Span, s: Shape) -> Tensor | None:
    """[query head of a group x t, L]: no token sees those after it."""
    t = len(span.tokens)
    if t == 1:
        return None
    mask = torch.full((t, span.cache.length + t), -torch.inf).triu(1 + span.cache.length)
    return mask.repeat(s.heads // s.kv_heads, 1)
