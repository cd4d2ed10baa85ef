"""A model's file that is damaged, a part of one, or one of another kind is told by an error."""

import asyncio
import random
import time
from contextlib import suppress

import pytest
from small_gguf import FACTS, gguf

from roundelay.errors import RoundelayError

pytest.importorskip("gguf", reason="the extra `llm` is not installed")

from roundelay.workloads.generate.cut import Shape
from roundelay.workloads.generate.gguf_file import GgufFile
from roundelay.workloads.generate.instance import GRACE, Instance
from roundelay.workloads.generate.messages import Options
from roundelay.workloads.generate.tokenizer import Tokenizer
from roundelay.workloads.generate.whole import check


@pytest.fixture
def opened(tmp_path):
    """What opens bytes as a model, as the commands do."""

    def take(data):
        path = tmp_path / "model.gguf"
        path.write_bytes(data)
        file = GgufFile(path)
        shape, tokenizer = Shape.read(file), Tokenizer(file)
        check(file, shape, tokenizer.size)
        return file, tokenizer

    return take


def test_a_small_model_is_whole(opened):
    file, tokenizer = opened(gguf())
    assert file.part("blk.0.ffn_down.weight").shape == (32, 64)
    assert tokenizer.decode(tokenizer.encode("abba")) == "abba"


def test_a_token_that_was_added_by_hand_stands_for_itself(opened):
    tokens = [*FACTS["tokenizer.ggml.tokens"][:5], "one of us"]
    assert opened(gguf({"tokenizer.ggml.tokens": tokens}))[1].bytes_of(5) == b"one of us"


@pytest.mark.parametrize(
    ("facts", "matrices", "said"),
    [
        ({"general.architecture": 3}, {}, r"architecture = 3; expected str"),
        ({"llama.block_count": 0}, {}, r"block_count = 0; expected 1 to"),
        ({"llama.block_count": 2}, {}, r"no tensor 'blk\.1\.attn_norm\.weight'"),
        ({"llama.attention.head_count_kv": 3}, {}, r"4 heads .* and 3 for keys and values"),
        ({"llama.attention.head_count": [4]}, {}, r"head_count = \[4\]; expected int"),
        ({"llama.rope.freq_base": float("nan")}, {}, r"base nan"),
        ({"llama.feed_forward_length": 32}, {}, r"ffn_gate.* \(64, 32\); expected \(32, 32\)"),
        ({"general.alignment": 0}, {}, r"alignment = 0; expected bytes"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, {}, r"gpt2/llama-bpe; expected gpt2/smollm"),
        ({"tokenizer.ggml.tokens": ["a"] * 6}, {}, r"has no <\|endoftext\|>"),
        ({"tokenizer.ggml.token_type": [1]}, {}, r"6 tokens of 1 types"),
        ({}, {"token_embd.weight": (7, 32)}, r"names 6 tokens and has embeddings of 7"),
        ({}, {"blk.0.attn_q.bias": (32,)}, r"'blk\.0\.attn_q\.bias', which is not computed with"),
        ({}, {"output_norm.weight": None}, r"no tensor 'output_norm\.weight'"),
        ({}, {"output_norm.weight": ()}, r"output_norm.* has shape \(\)"),
    ],
)
def test_a_model_of_another_kind(opened, facts, matrices, said):
    with pytest.raises(RoundelayError, match=said):
        opened(gguf(facts, matrices))


def test_a_part_of_a_file(opened):
    with pytest.raises(RoundelayError, match=r"it is a part of a file; try to fetch it again"):
        opened(gguf()[:-1])
    with pytest.raises(RoundelayError, match=r"is of type 99, which the package gguf does not"):
        opened(gguf(kind=99))


def test_whatever_byte_is_wrong(opened):
    """It is a model or an error, and nothing else."""
    whole, draw = gguf(), random.Random(1)
    head = whole.index(b"blk.0.ffn_down.weight") + 60
    for _ in range(3000):
        data = bytearray(whole)
        for at in draw.sample(range(head), draw.choice((1, 1, 3))):
            data[at] = draw.choice((0, 1, 255, data[at] ^ 1 << draw.randrange(8)))
        try:
            file, tokenizer = opened(bytes(data[: draw.choice((None, None, head - 9))]))
            tokenizer.chat([("user", "ab")])
            file.part("token_embd.weight")
        except RoundelayError:
            continue


def test_a_start_that_is_given_up_ends_at_once(tmp_path):
    """Its ranks are not waited for while they load."""
    pytest.importorskip("roundelay._native", reason="the native core is not built")
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf())

    async def go():
        instance = Instance(Options(str(path), 2))
        starting = asyncio.create_task(instance.start())
        await asyncio.sleep(1)
        starting.cancel()
        begun = time.monotonic()
        with suppress(asyncio.CancelledError):
            await starting
        return time.monotonic() - begun

    assert asyncio.run(go()) < GRACE / 2
