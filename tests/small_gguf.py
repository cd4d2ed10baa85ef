"""A Llama model of a few numbers in a GGUF file, and how to spoil it."""

import struct

import numpy as np

FACTS = {
    "general.architecture": "llama",
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.embedding_length": 32,
    "llama.block_count": 1,
    "llama.feed_forward_length": 64,
    "llama.context_length": 128,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "ab"],
    "tokenizer.ggml.token_type": [3, 3, 3, 1, 1, 1],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 2,
}
MATRICES = {
    "token_embd.weight": (6, 32),
    "output_norm.weight": (32,),
    "blk.0.attn_norm.weight": (32,),
    "blk.0.attn_q.weight": (32, 32),
    "blk.0.attn_k.weight": (16, 32),
    "blk.0.attn_v.weight": (16, 32),
    "blk.0.attn_output.weight": (32, 32),
    "blk.0.ffn_norm.weight": (32,),
    "blk.0.ffn_gate.weight": (64, 32),
    "blk.0.ffn_up.weight": (64, 32),
    "blk.0.ffn_down.weight": (32, 64),
}


def gguf(facts=(), matrices=(), kind=0):
    """The bytes of the model; facts and shapes that are given take the place of its own."""
    facts, matrices = {**FACTS, **dict(facts)}, {**MATRICES, **dict(matrices)}
    matrices = {name: shape for name, shape in matrices.items() if shape is not None}
    head = b"GGUF" + struct.pack("<IQQ", 3, len(matrices), len(facts))
    head += b"".join(_text(key) + _value(value) for key, value in facts.items())
    data, draw = b"", np.random.default_rng(1)
    for name, shape in matrices.items():
        head += _text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}Q", *shape[::-1]) + struct.pack("<IQ", kind, len(data))
        data += draw.standard_normal(shape, np.float32).tobytes()
    return head + bytes(-len(head) % 32) + data


def _text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value):
    match value:
        case str():
            return struct.pack("<I", 8) + _text(value)
        case int():
            return struct.pack("<Iq", 11, value)
        case float():
            return struct.pack("<If", 6, value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
        case list():
            return struct.pack(f"<IIQ{len(value)}q", 9, 11, len(value), *value)
