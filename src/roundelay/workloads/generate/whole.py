"""That a file has all that a model of its shape needs, and nothing that would be left out.

What is wrong is said once, before any rank begins to load its part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...errors import RoundelayError
from .cut import Shape
from .gguf_file import GgufFile

HEAD: Final = "output.weight"
"""The head, where it is another matrix than the embedding."""


def check(file: GgufFile, shape: Shape, tokens: int) -> None:
    """See that every matrix is there, whole, and fits to the others.

    Args:
        file: of the model.
        shape: that it says it has.
        tokens: of its vocabulary.

    Raises:
        RoundelayError: a matrix is missing, of another shape, or not known here.
    """
    if tokens != shape.vocabulary:
        raise RoundelayError(f"{file.path.name} names {tokens:,} tokens and has embeddings of "
                             f"{shape.vocabulary:,}; expected as many")  # fmt: skip
    known = set[str]()
    for name, wanted in _matrices(shape):
        known.add(name)
        if name == HEAD and name not in file.tensors:
            continue
        found = file.shape(name)
        if found != wanted:
            raise RoundelayError(f"{name} of {file.path.name} has shape {found}; expected {wanted}")
    if others := sorted(file.tensors.keys() - known):
        raise RoundelayError(f"{file.path.name} has {others[0]!r:.80}, which is not computed with "
                             "here; expected a plain Llama model")  # fmt: skip


def _matrices(s: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The name and the shape of each, rows first."""
    heads, kv = s.heads * s.head, s.kv_heads * s.head
    for name in ("token_embd.weight", HEAD):
        yield name, (s.vocabulary, s.hidden)
    yield "output_norm.weight", (s.hidden,)
    for i in range(s.layers):
        yield f"blk.{i}.attn_norm.weight", (s.hidden,)
        yield f"blk.{i}.attn_q.weight", (heads, s.hidden)
        yield f"blk.{i}.attn_k.weight", (kv, s.hidden)
        yield f"blk.{i}.attn_v.weight", (kv, s.hidden)
        yield f"blk.{i}.attn_output.weight", (s.hidden, heads)
        yield f"blk.{i}.ffn_norm.weight", (s.hidden,)
        yield f"blk.{i}.ffn_gate.weight", (s.inner, s.hidden)
        yield f"blk.{i}.ffn_up.weight", (s.inner, s.hidden)
        yield f"blk.{i}.ffn_down.weight", (s.hidden, s.inner)
