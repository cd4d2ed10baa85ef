"""Running instances of the model for tests, and a plain model to compare with."""

import asyncio
import time

import torch

from roundelay.workloads.generate.cut import Shape
from roundelay.workloads.generate.gguf_file import GgufFile, find_model
from roundelay.workloads.generate.messages import Ask, Options
from roundelay.workloads.generate.tokenizer import Tokenizer
from roundelay.workloads.generate.walk import running

PROMPTS = (
    "The capital of France is", "Once upon a time", "def fibonacci(n):", "Water boils at",
    "The three primary colours are", "In 1969, the first man", "Dear Sir or Madam,\n",
    "Roses are red, violets are", "To be or not to be,", "The largest planet of the Sun is",
    "A recipe for bread:\n1.", "import numpy as np\n", "The opposite of hot is", "1, 2, 3, 4,",
    "Q: What is the speed of light?\nA:", "She opened the door and", "Die Hauptstadt ist",
    "The mitochondria is the", "Why is the sky blue?", "It was the best of times,",
)  # fmt: skip


def model():
    return GgufFile(find_model())


def with_instance(ranks, work, seconds=100, **options):
    """What `work(instance, tokenizer)` gives in time, with an instance over so many ranks."""

    async def go():
        async with running(Options(str(find_model()), ranks, **options)) as instance:
            async with asyncio.timeout(seconds):
                return await work(instance, Tokenizer(model()))

    return asyncio.run(go())


async def said(instance, tokens, count, **given):
    """Text, and the last piece."""
    text = ""
    async for piece in instance.ask(Ask(0, list(tokens), count, **given)):
        text += piece.text
    return text, piece


async def many(instance, tokenizer, streams, seconds):
    """Requests of so many streams at once, each stream one after another, for a time.

    Gives the tokens a second of one request at a time, the tokens of each stream, the requests
    that were done, and those that said something else than alone: (prompt, alone, in company).
    """
    prompts = [tokenizer.encode(p) for p in PROMPTS]
    begun = time.monotonic()
    alone = [await said(instance, p, 48) for p in prompts]
    one = sum(last.made for _, last in alone) / (time.monotonic() - begun)
    counts, differ, requests = [0] * streams, [], 0
    end = time.monotonic() + seconds

    async def stream(i):
        nonlocal requests
        turn = i
        while time.monotonic() < end:
            which, text, made = turn % len(prompts), "", 0
            async for piece in instance.ask(Ask(0, prompts[which], 48)):
                assert piece.made == made + 1, "a token is lost"
                text, made = text + piece.text, piece.made
                counts[i] += time.monotonic() < end
            requests += 1
            turn += 1
            if text != alone[which][0]:
                differ.append((PROMPTS[which], alone[which][0], text))

    await asyncio.gather(*(stream(i) for i in range(streams)))
    return one, counts, requests, differ


class Plain:
    """The model as its formulas have it, token by token anew, in float64; no cache, no cut."""

    def __init__(self):
        self.file = model()
        self.shape = Shape.read(self.file)
        self.tensors = {}

    def __getitem__(self, name):
        if name not in self.tensors:
            self.tensors[name] = torch.from_numpy(self.file.part(f"{name}.weight")).double()
        return self.tensors[name]

    def norm(self, x, name):
        scale = (x.square().mean(-1, keepdim=True) + self.shape.epsilon).sqrt()
        return x / scale * self[name]

    def turned(self, x):
        """Pairs of neighbours, turned by place times speed."""
        d = self.shape.head
        places = torch.arange(len(x), dtype=torch.float64)
        speeds = self.shape.base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angles = (places[:, None] * speeds)[:, None]
        even, odd = x[..., ::2], x[..., 1::2]
        c, s = angles.cos(), angles.sin()
        return torch.stack((even * c - odd * s, even * s + odd * c), -1).flatten(-2)

    def logits(self, tokens):
        """[token, vocabulary]."""
        s, n = self.shape, len(tokens)
        x = self["token_embd"][list(tokens)]
        hidden = torch.ones(n, n).triu(1).bool()
        for i in range(s.layers):
            h = self.norm(x, f"blk.{i}.attn_norm")
            q, k, v = ((h @ self[f"blk.{i}.attn_{m}"].T).view(n, -1, s.head) for m in "qkv")
            q, k = self.turned(q), self.turned(k)
            k, v = (m.repeat_interleave(s.heads // s.kv_heads, 1) for m in (k, v))
            scores = torch.einsum("thd,shd->hts", q, k) / s.head**0.5
            chances = scores.masked_fill(hidden, -torch.inf).softmax(-1)
            seen = torch.einsum("hts,shd->thd", chances, v).flatten(1)
            x = x + seen @ self[f"blk.{i}.attn_output"].T
            h = self.norm(x, f"blk.{i}.ffn_norm")
            gate, up = (h @ self[f"blk.{i}.ffn_{m}"].T for m in ("gate", "up"))
            x = x + (torch.nn.functional.silu(gate) * up) @ self[f"blk.{i}.ffn_down"].T
        return self.norm(x, "output_norm") @ self["token_embd"].T
