"""How a model is cut over ranks: which part of each matrix a rank holds.

Matrices that widen (query, key, value, gate, up) are cut by their rows, those that narrow
(output, down) by their columns, so that the parts of a layer add up by two all-reduces. The
embedding, which is also the head, is cut by the vocabulary.

Query heads are dealt out as evenly as they go, in order. A rank has the key and value heads that
its query heads read, so two ranks may hold the same one; a rank may also have no head at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from ...errors import RoundelayError
from .gguf_file import GgufFile

BLOCK = 32
"""Columns of the feed-forward part are dealt out in blocks of this many, as files hold them."""
MOST: Final = 1 << 24
"""Of anything that a model says how many it has."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model says of itself; see the Llama architecture.

    Attributes:
        layers, hidden, heads, kv_heads, head: head is the width of one, in numbers.
        inner: width of the feed-forward part.
        vocabulary: tokens.
        context: tokens that a sequence may have.
        base: of the rotary angles.
        epsilon: of the norms.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    vocabulary: int
    context: int
    base: float
    epsilon: float

    @classmethod
    def read(cls, file: GgufFile) -> Shape:
        """The shape of the model in a file.

        Raises:
            RoundelayError: it is no Llama, or one that cannot be.
        """
        kind = file.fact("general.architecture", str)
        if kind != "llama":
            raise RoundelayError(f"the model is a {kind:.80}; expected llama")
        hidden = _number(file, "llama.embedding_length")
        heads = _number(file, "llama.attention.head_count")
        return cls(
            layers=_number(file, "llama.block_count"),
            hidden=hidden,
            heads=heads,
            kv_heads=_number(file, "llama.attention.head_count_kv", heads),
            head=_number(file, "llama.rope.dimension_count", max(1, hidden // heads)),
            inner=_number(file, "llama.feed_forward_length"),
            vocabulary=file.shape("token_embd.weight")[0],
            context=_number(file, "llama.context_length"),
            base=file.fact("llama.rope.freq_base", float, 10000.0),
            epsilon=file.fact("llama.attention.layer_norm_rms_epsilon", float),
        )

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads or self.head % 2:
            raise RoundelayError(
                f"the model has {self.heads} heads of {self.head} numbers and {self.kv_heads} for "
                "keys and values; expected an even width, and a divisor of the heads"
            )
        if not (0 < self.base < inf and 0 <= self.epsilon < 1):
            raise RoundelayError(f"the model has base {self.base:g} and epsilon {self.epsilon:g}; "
                                 "expected numbers such as 10000 and 1e-5")  # fmt: skip


def _number(file: GgufFile, key: str, default: int | None = None) -> int:
    """What a key says; how many of something."""
    found = file.fact(key, int, default)
    if not 1 <= found <= MOST:
        raise RoundelayError(f"{key} = {found}; expected 1 to {MOST:,}")
    return found


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of one rank.

    Attributes:
        heads: query heads.
        kv_heads: key and value heads; others may have some of them, too.
        inner: columns of the feed-forward part.
        vocabulary: tokens whose rows of the embedding it holds.
        width: the most tokens that any rank holds.
    """

    heads: range
    kv_heads: range
    inner: range
    vocabulary: range
    width: int

    @classmethod
    def of(cls, shape: Shape, rank: int, ranks: int) -> Cut:
        """The part of a rank of so many.

        Raises:
            RoundelayError: there are more ranks than blocks of the feed-forward part.
        """
        blocks = -(-shape.inner // BLOCK)
        if not 1 <= ranks <= blocks:
            raise RoundelayError(f"{ranks} ranks for this model; expected 1 to {blocks}")
        heads = share(shape.heads, rank, ranks)
        group = shape.heads // shape.kv_heads
        kv = range(heads.start // group, -(-heads.stop // group)) if heads else range(0)
        inner = share(blocks, rank, ranks)
        width = -(-shape.vocabulary // ranks)
        first = min(rank * width, shape.vocabulary)
        return cls(
            heads=heads,
            kv_heads=kv,
            inner=range(inner.start * BLOCK, min(inner.stop * BLOCK, shape.inner)),
            vocabulary=range(first, min(first + width, shape.vocabulary)),
            width=width,
        )

    def seats(self, shape: Shape) -> list[int] | None:
        """[key and value head, query head of its group] flat, a place among `heads`.

        A rank that has a part of a group fills the other seats with any head, whose result is
        dropped. None where all seats are taken, in order.
        """
        group = shape.heads // shape.kv_heads
        wanted = [h for kv in self.kv_heads for h in range(kv * group, (kv + 1) * group)]
        if wanted == list(self.heads):
            return None
        return [h - self.heads.start if h in self.heads else 0 for h in wanted]


def share(count: int, rank: int, ranks: int) -> range:
    """What a rank gets of a number of things; the first ranks get one more where it is uneven."""
    each, more = divmod(count, ranks)
    first = rank * each + min(rank, more)
    return range(first, first + each + (rank < more))
