"""The parts of generation that need no ranks: vocabulary, cut, text, requests, sampling."""

import json
import unicodedata
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from roundelay import RoundelayError
from roundelay.clusters import cluster
from roundelay.workloads.generate import asked, clocked
from roundelay.workloads.generate.batch import Batch
from roundelay.workloads.generate.cut import Cut, Shape
from roundelay.workloads.generate.gguf_file import GgufFile, find_model
from roundelay.workloads.generate.messages import Ask
from roundelay.workloads.generate.model import MOST
from roundelay.workloads.generate.sampling import Sampler
from roundelay.workloads.generate.text import Stream
from roundelay.workloads.generate.tokenizer import Tokenizer, split

TEXTS = st.text(st.characters(codec="utf-8"), max_size=60) | st.text(
    " \n\t'sreldtvm12aé中½_!", max_size=30
)
LACKING = {4, 6, 19, 20, 22, 29, 192, 193, *range(241, 256)} - {243, 244}
"""Bytes for which the vocabulary has no token."""


@pytest.fixture(scope="module")
def file():
    return GgufFile(find_model())


@pytest.fixture(scope="module")
def tokenizer(file):
    return Tokenizer(file)


@pytest.fixture(scope="module")
def shape(file):
    return Shape.read(file)


@given(TEXTS)
def test_words_are_the_text_and_digits_stand_alone(text):
    words = list(split(text))
    assert "".join(words) == text
    for word in words:
        numbers = sum(unicodedata.category(c)[0] == "N" for c in word)
        assert numbers == 0 or len(word) == 1


@given(TEXTS)
def test_tokens_are_the_text_again(tokenizer, text):
    known = [byte for byte in text.encode() if byte not in LACKING]
    assert tokenizer.decode(tokenizer.encode(text)) == bytes(known).decode("utf-8", "replace")


def test_tokens_of_known_texts(tokenizer):
    # As Hugging Face's tokenizer of the same model has them.
    assert tokenizer.encode("The capital of France is") == [504, 3575, 282, 4649, 314]
    assert tokenizer.encode("  345") == [256, 35, 36, 37]
    words = ["don", "'t", " ", "5", " x", "²", "\n", "\n", "b", "  "]
    assert list(split("don't 5 x²\n\nb  ")) == words


def joined(tokenizer, word):
    """The tokens of a word as the rule says it, pair by pair."""
    parts = [tokenizer._signs[byte] for byte in word.encode()]
    while len(parts) > 1:
        ranks = [tokenizer._ranks.get(pair, 1 << 60) for pair in pairwise(parts)]
        if min(ranks) == 1 << 60:
            break
        at = ranks.index(min(ranks))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [tokenizer._numbers[part] for part in parts]


@given(st.text("abceinorst", max_size=40))
def test_pairs_are_joined_as_the_rule_says(tokenizer, word):
    assert tokenizer._join(word) == joined(tokenizer, word)


def test_a_very_long_word_is_joined_in_time(tokenizer):
    assert tokenizer.decode(tokenizer._join("ab" * 100_000)) == "ab" * 100_000


def test_a_chat_follows_the_template_and_has_no_tokens_from_its_text(tokenizer):
    tokens = tokenizer.chat([("user", "<|im_end|>hi")])
    begin, end = 1, 2
    assert [tokens.count(begin), tokens.count(end)] == [3, 2]
    assert tokenizer.chat([("system", "s"), ("user", "u")]).count(begin) == 3


def test_half_a_surrogate_is_no_text(tokenizer):
    with pytest.raises(RoundelayError, match="not valid Unicode at character 1"):
        tokenizer.encode("a\udcff")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 8, 9, 12, 48])
def test_parts_cover_the_model_once(shape, ranks):
    cuts = [Cut.of(shape, r, ranks) for r in range(ranks)]
    for name, whole in (("heads", 9), ("inner", 1536), ("vocabulary", 49152)):
        every = [i for cut in cuts for i in getattr(cut, name)]
        assert every == list(range(whole)), name
    for cut in cuts:
        assert {h // 3 for h in cut.heads} == set(cut.kv_heads)
        seats = cut.seats(shape)
        group = range(3 * cut.kv_heads.start, 3 * cut.kv_heads.stop)
        told = [cut.heads[s] for s in seats] if seats is not None else list(group)
        assert all(h == t for h, t in zip(group, told, strict=True) if h in cut.heads)


@pytest.mark.parametrize("ranks", [0, 49])
def test_too_many_ranks_are_refused(shape, ranks):
    with pytest.raises(RoundelayError, match="expected 1 to 48"):
        Cut.of(shape, 0, ranks)


def test_a_part_of_a_matrix_is_the_part(file):
    whole = file.part("blk.3.ffn_down.weight")
    assert whole.shape == (576, 1536)
    for columns in (slice(32, 96), slice(5, 70), slice(0, 0)):
        part = file.part("blk.3.ffn_down.weight", slice(7, 9), columns)
        assert part.tobytes() == whole[7:9, columns].tobytes()


@pytest.mark.parametrize(
    "data", [b"", b"GGUF", b"GGML" + bytes(60), b"GGUF\3\0\0\0" + b"\xff" * 30]
)
def test_a_broken_file_is_refused(tmp_path, data):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with pytest.raises(RoundelayError, match=r"model|GGUF 3"):
        GgufFile(path)


@given(st.text("abcé", max_size=30), st.lists(st.text("abcé", min_size=1, max_size=4), max_size=3),
       st.integers(1, 3))  # fmt: skip
def test_a_stream_ends_before_the_first_stop(text, stops, size):
    stream, data = Stream(stops), text.encode()
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    said = "".join([*(stream.push(part) for part in parts), stream.push(b"", True)])
    if not any(stop in text for stop in stops):
        assert (said, stream.stopped) == (text, False)
        return
    assert stream.stopped
    assert text.startswith(said)
    assert not any(stop in said for stop in stops)
    assert any(text.startswith(stop, len(said)) for stop in stops)


def test_draws_follow_the_chances():
    logits = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    sampler = Sampler(1.0, 1.0, 7)
    counts = torch.bincount(torch.tensor([sampler.draw(logits) for _ in range(4000)]), minlength=4)
    assert (counts / 4000 - torch.tensor([0.5, 0.3, 0.15, 0.05])).abs().max() < 0.03
    top = Sampler(1.0, 0.7, 7)
    assert {top.draw(logits) for _ in range(300)} == {0, 1}
    assert {Sampler(1.0, 1e-9, s).draw(logits) for s in range(50)} == {0}
    wide = torch.zeros(2000)
    flat = Sampler(1.0, 1.0, 1)
    assert max(flat.draw(wide) for _ in range(50)) > 600  # beyond the tokens looked at first
    again = [Sampler(0.7, 0.9, 3).draw(logits) for _ in range(5)]
    assert len(set(again)) == 1


BAD = [
    (b"\xff\xfe{}", "no JSON in UTF-8"),
    (b'{"prompt": "\xff"}', "no JSON in UTF-8"),
    (b"{", "no JSON"),
    (b"[]", "not as expected"),
    (b"{}", "prompt"),
    (b'{"prompt": 3}', "prompt"),
    (b'{"prompt": ""}', "prompt is empty"),
    (b'{"prompt": []}', "prompt is empty"),
    (b'{"prompt": [-1]}', "token -1"),
    (b'{"prompt": [49152]}', "token 49152"),
    (b'{"prompt": "\\ud800"}', "JSON|Unicode"),
    (json.dumps({"prompt": "a " * 200}).encode(), "context is 64"),
    (b'{"prompt": "a", "max_tokens": 0}', "max_tokens = 0"),
    (b'{"prompt": "a", "max_tokens": "3"}', "max_tokens"),
    (b'{"prompt": "a", "temperature": 3}', "temperature = 3"),
    (b'{"prompt": "a", "temperature": -1}', "temperature = -1"),
    (b'{"prompt": "a", "top_p": 0}', "top_p = 0"),
    (b'{"prompt": "a", "seed": 9223372036854775808}', "seed"),
    (b'{"prompt": "a", "n": 0}', "n = 0"),
    (b'{"prompt": "a", "n": 99}', "n = 99"),
    (b'{"prompt": "a", "stop": [""]}', "stop"),
    (b'{"prompt": "a", "stop": ["a", "b", "c", "d", "e"]}', "stop"),
    (b'{"prompt": "a", "model": "other"}', "no model 'other'"),
    (b'{"prompt": "a", "logprobs": 3}', "'logprobs' is not supported"),
    (b'{"prompt": "a", "logprobs": 0}', "'logprobs' is not supported"),
    (b'{"prompt": "a", "best_of": 3}', "'best_of' is not supported"),
    (b'{"prompt": "a", "top_k": 1}', "'top_k' is not supported"),
    (b'{"prompt": "a", "response_format": {"type": "json_object"}}', "'response_format' is not"),
    (b'{"prompt": "a", "zzz": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
    (b'{"prompt": ["a", 5]}', "tokens beside texts"),
    (b'{"prompt": [5, "a"]}', "tokens beside texts"),
    (b'{"prompt": [5, [6]]}', "tokens beside texts"),
    (b'{"prompt": "\\ud800"}', "must come in pairs"),
    (json.dumps({"prompt": "b" * 20_000}).encode(), "more than 63 tokens"),
    (json.dumps({"prompt": ["a"] * 17}).encode(), "17 prompts with n = 1"),
]


@pytest.mark.parametrize(("body", "why"), BAD)
def test_bad_requests_say_what_is_wrong(tokenizer, body, why):
    with pytest.raises(RoundelayError, match=why):
        asked.requests(asked.read(body, asked.Text), tokenizer, 64, "m")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"role": "tool", "content": "a"}, "role 'tool'; expected one of system, user, assistant"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "expected 'text'"),
    ],
)
def test_bad_messages_say_what_is_expected(tokenizer, message, why):
    body = json.dumps({"messages": [message]}).encode()
    with pytest.raises(RoundelayError, match=why):
        asked.requests(asked.read(body, asked.Chat), tokenizer, 64, "m")


def test_no_tokens_are_not_the_usual_number(tokenizer):
    body = b'{"messages": [{"role": "user", "content": "a"}], "max_completion_tokens": 0}'
    with pytest.raises(RoundelayError, match="max_tokens = 0"):
        asked.requests(asked.read(body, asked.Chat), tokenizer, 64, "m")


def test_fields_that_change_nothing(tokenizer):
    body = {"prompt": "a", "seed": 2**63 - 1, "n": 2, "user": "x", "logprobs": None, "best_of": 1,
            "presence_penalty": 0.0, "tools": [], "response_format": {"type": "text"}}  # fmt: skip
    asks = asked.requests(asked.read(json.dumps(body).encode(), asked.Text), tokenizer, 64, "m")
    assert [ask.seed for ask in asks] == [2**63 - 1, 2**63]
    assert len({Sampler(1.0, 1.0, ask.seed).draw(torch.zeros(9999)) for ask in asks}) == 2


def test_a_long_word_is_not_kept(tokenizer):
    before = tokenizer._word.cache_info().currsize
    tokenizer.encode("b" * 10_000)
    assert tokenizer._word.cache_info().currsize == before


def test_good_requests(tokenizer):
    body = b'{"prompt": ["a b", "c"], "n": 2, "max_tokens": 99, "stop": "x", "seed": 5}'
    asks = asked.requests(asked.read(body, asked.Text), tokenizer, 64, "m")
    assert [ask.seed for ask in asks] == [5, 6, 5, 6]
    assert [ask.max_tokens for ask in asks] == [62, 62, 63, 63]  # what fits into the context
    parts = [{"type": "text", "text": "hi"}]
    body = json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()
    (chat,) = asked.requests(asked.read(body, asked.Chat), tokenizer, 8192, "m")
    assert chat.tokens == tokenizer.chat([("user", "hi")])


def test_a_batch_takes_turns(tokenizer):
    batch = Batch(2, 10_000, tokenizer)
    for number, length in ((1, 3), (2, MOST + 10), (3, 2)):
        batch.add(Ask(number, [5] * length, 2))
    first = batch.plan()
    assert [s[0] for s in first.spans] == [1, 2]  # the third waits for room
    assert [len(s[1]) for s in first.spans] == [3, MOST - 3]
    assert [s[2] for s in first.spans] == [True, False]
    assert len(batch.drawing(first)) == 1
    assert [p.finish for p in batch.take(first, [7], None)] == [None]
    second = batch.plan()
    assert [len(s[1]) for s in second.spans] == [1, 13]
    assert [p.finish for p in batch.take(second, [7, 0], None)] == ["length", "stop"]
    third = batch.plan()
    assert (third.closed, third.opened) == ([1, 2], [(3, 3)])
    batch.cancel(3)
    assert batch.plan().closed == [3]
    assert not batch


def test_a_batch_keeps_to_its_room(tokenizer):
    batch = Batch(8, 10, tokenizer)
    for number in range(3):
        batch.add(Ask(number, [5] * 6, 3))
    assert [number for number, _ in batch.plan().opened] == [0]


def test_a_large_model_on_the_clock():
    found = clocked.token(cluster("dgx-h100"), 8, clocked.Large(), 3.35e12)
    assert found["exchanges_per_token"] == 253
    assert found["parameters_read"] == pytest.approx(403.8e9, rel=0.01)
    assert found["token_us"] == pytest.approx(sum(s["duration_us"] for s in found["steps"]))
    assert 0.05 < found["exchange_share"] < 0.5
    alone = clocked.token(cluster("dgx-h100"), 1, clocked.Large(), 3.35e12)
    assert alone["exchange_share"] == 0
    with pytest.raises(RoundelayError, match="memory-rate"):
        clocked.memory_rate(cluster("mi300x"))
    for rate in (0, -1, float("inf"), float("nan")):
        with pytest.raises(RoundelayError, match=r"a memory rate of .*; expected bytes a second"):
            clocked.token(cluster("dgx-h100"), 8, clocked.Large(), rate)


@pytest.mark.parametrize(
    ("name", "ranks", "fits"),
    [
        ("dgx-h100", 8, False),
        ("dgx-h100:2", 16, True),
        ("hgx-h200", 8, True),
        ("gb200-nvl72", 4, False),
        ("gb200-nvl72", 5, True),
        ("mi300x", 8, None),
    ],
)
def test_whether_a_large_model_fits(name, ranks, fits):
    """405 billion numbers of two bytes: eight cards of 80 GB are too few, of an H200 enough."""
    model = clocked.Large()
    assert clocked.token(cluster(name), ranks, model, 1e12)["fits"] is fits
    told = clocked.lacking(cluster(name), ranks, model)
    assert (told is None) == (fits is not False)
    if name == "dgx-h100":
        assert "hold 101 GB of weights, and has 80 GB: cut the model over 11 cards" in str(told)
