"""The language model cut over real ranks: same text as the uncut one, alone and in company."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from generated import PROMPTS, Plain, many, model, said, with_instance

pytest.importorskip("roundelay._native", reason="the native core is not built")

from roundelay.cli import run
from roundelay.workloads.generate.exchange import OverRoundelay
from roundelay.workloads.generate.instance import InstanceDown
from roundelay.workloads.generate.messages import Ask
from roundelay.workloads.generate.model import MOST, Model, Span
from roundelay.workloads.generate.tokenizer import Tokenizer

pytestmark = pytest.mark.timeout(150)


@pytest.fixture(scope="module")
def alone():
    """The uncut model, in this process."""
    torch.set_num_threads(1)
    exchange = OverRoundelay()
    yield Model(model(), exchange)
    exchange.close()


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer(model())


def greedy(alone, tokens, count, stops):
    """Tokens of the uncut model, and how far the second likeliest was at the closest."""
    cache, made, new, gap = alone.cache(len(tokens) + count), [], tokens, float("inf")
    while len(made) < count:
        logits = alone.step([Span(cache, new, True)])[0]
        best, second = logits.topk(2).values.tolist()
        gap = min(gap, best - second)
        new = [int(logits.argmax())]
        made += new
        if new[0] in stops:
            break
    return made, gap


def test_the_uncut_model_computes_the_formulas(alone, tokenizer):
    tokens = tokenizer.encode("The quick brown fox jumps over the lazy dog.")
    want = Plain().logits(tokens)
    cache = alone.cache(len(tokens))
    for i in range(3):  # token by token, then the rest at once
        got = alone.step([Span(cache, tokens[i : i + 1], True)])
        assert (got[0] - want[i]).abs().max() < 2e-3
    got = alone.step([Span(cache, tokens[3:], True)])
    assert (got[0] - want[-1]).abs().max() < 2e-3
    assert int(got.argmax()) == int(want[-1].argmax())


def test_several_sequences_in_one_step_are_each_as_alone(alone, tokenizer):
    prompts = [tokenizer.encode(p) for p in PROMPTS[:4]]
    apart = [alone.step([Span(alone.cache(len(p)), p, True)])[0] for p in prompts]
    caches = [alone.cache(len(p)) for p in prompts]
    first = alone.step([Span(caches[0], prompts[0][:2], False), Span(caches[1], prompts[1], True)])
    rest = [Span(caches[0], prompts[0][2:], True), Span(caches[2], prompts[2], True),
            Span(caches[3], prompts[3], True)]  # fmt: skip
    second = alone.step(rest)
    for got, want in zip((second[0], first[0], second[1], second[2]), apart, strict=True):
        assert (got - want).abs().max() < 1e-3


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_cut_model_says_the_same(alone, tokenizer, ranks):
    async def work(instance, tokenizer):
        found = [await said(instance, tokenizer.encode(p), 24) for p in PROMPTS[:2]]
        tasks = [said(instance, tokenizer.encode(p), 24) for p in PROMPTS[:6]]
        return found, await asyncio.gather(*tasks)

    one_by_one, together = with_instance(ranks, work)
    for prompt, (text, last) in zip(PROMPTS, one_by_one, strict=False):
        want, _ = greedy(alone, tokenizer.encode(prompt), 24, tokenizer.stops)
        assert text == tokenizer.decode(want)
        assert last.made == len(want)
    for prompt, (text, _) in zip(PROMPTS, together, strict=False):
        want, _ = greedy(alone, tokenizer.encode(prompt), 24, tokenizer.stops)
        assert text == tokenizer.decode(want)


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_twenty_prompts_say_the_same(alone, tokenizer, ranks):
    async def work(instance, tokenizer):
        return [await said(instance, tokenizer.encode(p), 64) for p in PROMPTS]

    for prompt, (text, _) in zip(PROMPTS, with_instance(ranks, work, 1100), strict=True):
        want, gap = greedy(alone, tokenizer.encode(prompt), 64, tokenizer.stops)
        assert text == tokenizer.decode(want), f"{prompt!r}; the closest tie was {gap:.2g}"


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_many_streams_for_two_minutes():
    async def work(instance, tokenizer):
        return await many(instance, tokenizer, 32, 120)

    _, counts, requests, differ = with_instance(2, work, 1100)
    assert requests > 32
    assert min(counts) > 0.8 * max(counts)
    # Sums of a step with others round differently, which may turn a near tie; nothing else may.
    assert len(differ) <= 0.02 * requests, differ[:3]


def test_stops_seeds_and_cancels(tokenizer):
    async def work(instance, tokenizer):
        tokens = tokenizer.encode(PROMPTS[1])
        whole, _ = await said(instance, tokens, 30)
        stop = whole[10:14]
        cut = await said(instance, tokens, 30, stop=[stop])
        draws = [await said(instance, tokens, 12, temperature=1.0, top_p=0.9, seed=s)
                 for s in (1, 1, 2)]  # fmt: skip
        async for _ in instance.ask(Ask(0, tokens, 400)):  # leaves at once, which cancels it
            break
        long = tokenizer.encode("word " * (MOST + 50))  # a prompt of several steps
        return whole, stop, cut, draws, await said(instance, long, 4), instance.load

    whole, stop, (text, last), draws, (_, end), load = with_instance(2, work)
    assert text == whole[: whole.index(stop)]
    assert last.finish == "stop"
    assert draws[0] == draws[1] or draws[0][0] == draws[1][0]
    assert draws[0][0] != draws[2][0]
    assert (end.made, end.finish, load) == (4, "length", 0)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_dead_rank_ends_every_request(victim):
    async def work(instance, tokenizer):
        pids = instance.ready.pids
        tasks = [asyncio.create_task(said(instance, tokenizer.encode(p), 400)) for p in PROMPTS[:3]]
        await asyncio.sleep(1)
        os.kill(pids[victim], 9)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.wait_for(instance.gone.wait(), 30)
        left = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
        await instance.start()
        return ended, left, await said(instance, tokenizer.encode(PROMPTS[0]), 2)

    ended, left, (text, _) = with_instance(2, work)
    assert [type(e) for e in ended] == [InstanceDown] * 3
    assert left == []
    assert text == " Paris."


def command(*words, ok=True):
    words = [sys.executable, "-m", "roundelay", *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=100)
    assert (done.returncode == 0) == ok, done.stderr
    return done


def test_generate_and_walk(tmp_path):
    told = command("generate", PROMPTS[0], "--tp", "2", "--max-tokens", "3").stdout
    assert told.startswith("The capital of France is Paris.\n")
    assert "where the time went" in told
    file = tmp_path / "walk.json"
    found = json.loads(command("walk", "--tp", "2", "--max-tokens", "3", "--save", str(file),
                               "--json").stdout)  # fmt: skip
    assert json.loads(file.read_text()) == found
    names = [step["name"] for step in found["steps"] if step["token"] == 0]
    assert names == ["request", "instance", "ranks", "weights", "compute", "exchange", "token"]
    assert [s["name"] for s in found["steps"] if s["token"] == 1] == names[2:]
    assert all(step["duration_us"] >= 0 for step in found["steps"])
    for token in range(3):
        steps = [s for s in found["steps"] if s["token"] == token]
        starts = [s["start_us"] for s in steps]
        assert starts == sorted(starts)
        waits = sum(s.get("wait_us", 0) for s in steps)
        end = starts[0] + sum(s["duration_us"] for s in steps) + waits
        last = steps[-1]["start_us"] + steps[-1]["duration_us"]
        assert end == pytest.approx(last)
        assert token or end == pytest.approx(found["first_token_us"])
    assert found["exchanges_per_token"] == 61
    assert 0 < found["exchange_share"] < 1


def test_over_gloo():
    found = json.loads(command("generate", PROMPTS[0], "--tp", "2", "--max-tokens", "3",
                               "--backend", "gloo", "--json").stdout)  # fmt: skip
    assert found["text"] == " Paris.\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([""], "prompt is empty"),
        (["word " * 8200], "context is 8,192"),
        ([b"\xff".decode(errors="surrogateescape")], "not valid Unicode"),
        (["a", "--tp", "49"], "expected 1 to 48"),
        (["a", "--max-tokens", "0"], "max_tokens = 0"),
        (["a", "--model", __file__], "GGUF"),
    ],
)
def test_bad_input_is_told_before_anything_starts(words, why):
    done = command("generate", *words, ok=False)
    assert done.returncode == 2
    assert why in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("walk --layers 3", "--layers changes nothing without --cluster; add such as"),
        ("walk hello --max-tokens 3 --cluster dgx-h100", "PROMPT changes nothing with --cluster"),
        ("llm --calm 2s --replicas 2", "--calm changes nothing where instances do not come and go"),
    ],
)
def test_what_would_change_nothing_is_refused(words, why, capsys):
    assert run(words.split()) == 2
    assert why in capsys.readouterr().err
