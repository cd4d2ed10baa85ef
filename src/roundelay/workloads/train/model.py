"""A small transformer that guesses the next byte."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from .settings import TOKENS, Settings


class Block(nn.Module):
    """Attention to what stands before, then two layers for each token on its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.gather = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """[sequence, place, width], and the same."""
        n, length, width = x.shape
        parts = self.attend(self.before(x)).view(n, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.gather(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    """Bytes in, a score for each next byte out."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width = settings.width
        self.context = settings.context
        self.token, self.place = nn.Embedding(TOKENS, width), nn.Embedding(self.context, width)
        self.blocks = nn.ModuleList(Block(width, settings.heads) for _ in range(settings.layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        """[sequence, place] tokens; [sequence, place, 256] scores."""
        x = self.token(tokens) + self.place.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, tokens: Tensor) -> Tensor:
        """The mean surprise at a next byte, in nats, added up over [sequence, place + 1]."""
        scores, target = self(tokens[:, :-1]), tokens[:, 1:]
        each = functional.cross_entropy(scores.flatten(0, 1), target.flatten(), reduction="sum")
        return each / target.shape[1]

    def goes_on(self, beginning: bytes, length: int, seed: int) -> str:
        """So many bytes after a beginning, drawn by what the model thinks of each."""
        draw = torch.Generator().manual_seed(seed)
        tokens = list(beginning)
        for _ in range(length):
            with torch.no_grad():
                scores = self(torch.tensor([tokens[-self.context :]]))[0, -1].float()
            tokens.append(int(torch.multinomial((scores / 0.8).softmax(0), 1, generator=draw)))
        return bytes(tokens).decode("utf-8", "replace")
