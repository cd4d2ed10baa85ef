"""`roundelay moe bench`, and the figures of an expert model that are known from elsewhere."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import roundelay as rl
from roundelay import moe
from roundelay.cli import run
from roundelay.errors import RoundelayError
from roundelay.moe.bench import Load, card_of, measured, on_clock, sender_seconds
from roundelay.moe.bounds import Bound, Decode, Link, bound

H800 = Link(between=50e9, inside=160e9)
ROW = {
    "scheme", "max_nodes", "copies_between_nodes", "bytes_between_nodes", "bytes_in_node",
    "time_us", "GBps",
}  # fmt: skip


def job(line):
    done = subprocess.run([sys.executable, "-m", "roundelay", *line.split()], timeout=120,
                          capture_output=True, text=True, env=os.environ)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_bounds_of_the_reference_layer():
    """8 x 8 H800 (arXiv 2412.19437): 4,096 tokens of 7,168 in FP8, without scales, limit 4."""
    load = Load(8, 8, max_nodes=4)
    layout = load.layout(1 << 15)
    of = moe.copies(moe.two_hop(layout, 8, 4), len(layout.home), 8)
    least = bound(of, 4096, load.rows[0], H800)
    assert least.between == pytest.approx(2.03e-3, rel=0.005)
    assert least.inside == pytest.approx(1.20e-3, rel=0.01)
    assert (least.binding, least.time) == ("between", least.between)
    assert Load(8, 8, scales=True).rows == (7168 + 4 * 56, 14336)


def test_decoding_bound_of_deepseek_v3():
    """arXiv 2505.09343: 120.96 us a stage and 14.76 ms a token at 50 GB/s, 6.72 us at 900 GB/s."""
    decode = Decode()
    assert decode.stage(50e9) == pytest.approx(120.96e-6, rel=1e-12)
    assert decode.token(50e9) == pytest.approx(14.76e-3, rel=3e-4)
    assert decode.stage(900e9) == pytest.approx(6.72e-6, rel=1e-12)
    assert decode.token(900e9) == pytest.approx(0.82e-3, rel=3e-3)


PUBLISHED = [(2, 43, 45.8), (4, 58, 60.0), (8, 51, 51.4)]
"""DeepEP's README, normal kernels on H800, 4,096 tokens, top 4 groups: nodes of 8, GB/s of dispatch
over the network with a token's own node counted; and what two resources allow, 45 and 150 GB/s."""


@pytest.mark.parametrize(("nodes", "published", "allowed"), PUBLISHED)
def test_published_bandwidths_of_deepep(nodes, published, allowed):
    load = Load(nodes, 8, tokens=256, max_nodes=min(nodes, 4))
    layout = load.layout()
    reached, tokens = layout.in_node(8).sum(), len(layout.home)
    of = moe.copies(moe.two_hop(layout, 8), tokens, 8)
    seconds = bound(of, 1, 1, Link(45e9, 150e9))
    # Every card of a node that has a token got a copy of it, the forwarding one as well.
    inside = layout.in_rank.sum() / tokens / 150e9
    logical = reached / tokens / max(seconds.between, inside) / 1e9
    assert logical == pytest.approx(allowed, rel=0.02)
    assert logical == pytest.approx(published, rel=0.08)


def test_the_clock_takes_no_less_than_the_bound(capsys):
    words = ("--experts", "32", "--top-k", "4", "--tokens", "64", "--max-nodes", "1")
    assert run(["moe", "bench", "--cluster", "h800:2", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cluster"], found["sms"]) == ("h800", 20)
    assert found["sms_share"] == pytest.approx(20 / 132)
    assert [r["scheme"] for r in found["rows"]] == list(moe.SCHEMES)
    for row in found["rows"]:
        assert row.keys() > ROW
        assert row["time_us"] >= row["bound_us"] > 0
        assert row["combine_time_us"] >= row["combine_bound_us"] > 0
        assert row["GBps"] * row["time_us"] * 1e3 == pytest.approx(row["bytes_between_nodes"])
        copies = row["copies_between_nodes"]
        assert row["bytes_between_nodes"] == pytest.approx(copies * 64 * 7168)
    assert found["rows"][2]["copies_between_nodes"] < 1


def test_more_tokens_than_are_routed_one_by_one(monkeypatch):
    few, many = (Load(2, 8, 32, 4, tokens=t, hidden=1024) for t in (64, 512))
    monkeypatch.setattr("roundelay.moe.bench.SAMPLE", 64 * 16)
    short, long = (list(on_clock(load, rl.cluster("h800:2"))) for load in (few, many))
    for a, b in zip(short, long, strict=True):
        assert a.copies == b.copies
        assert b.sent[0] == pytest.approx(8 * a.sent[0])
        assert b.times[0] > a.times[0]


def test_fewer_senders_take_longer():
    card = card_of(rl.cluster("h800:8"))
    figure = next(f for f in on_clock(Load(2, 8, 32, 4, tokens=32), rl.cluster("h800:2")))
    ten, twenty = (sender_seconds(figure, sms, card) for sms in (10, 20))
    assert ten == pytest.approx([2 * t for t in twenty])
    assert twenty[0] >= figure.sent[0] / 50e9 * (1 - 1e-9)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_table_on_the_clock(lang, capsys):
    words = f"moe bench --cluster dgx-h100:2 --experts 16 --top-k 2 --tokens 16 --lang {lang}"
    assert run(words.split()) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in moe.SCHEMES)
    assert ("is the bound of a network of 50 GB/s" in said) == (lang == "en")
    assert "15.2%" in said


@pytest.mark.parametrize("dtype", ["float32", "fp8"])
def test_between_processes(dtype):
    words = "moe bench -n 4 --experts 16 --top-k 4 --tokens 8 --hidden 64 --iters 2 --json"
    code, out, err = job(f"{words} --dtype {dtype}")
    assert code == 0, err
    found = json.loads(out)
    assert (found["nodes"], found["cards"], found["cluster"]) == (2, 2, None)
    assert [r["scheme"] for r in found["rows"]] == list(moe.SCHEMES)
    assert all(r["time_us"] > 0 and r["combine_time_us"] > 0 for r in found["rows"])
    assert all(r["bound_us"] is None for r in found["rows"])


def test_redundant_experts_between_processes():
    words = "moe bench -n 4 --experts 16 --top-k 2 --tokens 16 --hidden 64 --iters 2 --skew 1.5"
    code, out, err = job(f"{words} --redundant 4 --max-nodes 1 --json")
    assert code == 0, err
    once, more = json.loads(out)["balance"]
    assert once["tokens_max"] > more["tokens_max"] >= more["tokens_mean"] == 32
    assert min(more["time_us"].values()) > 0


def test_scores_of_a_file(tmp_path, capsys):
    """All tokens want expert 0 first: it is on the first card."""
    file = tmp_path / "scores.npy"
    scores = moe.uniform_scores(64, 32, 3)
    scores[:, 0] = 2
    np.save(file, scores)
    words = f"moe bench --cluster h800:2 --experts 32 --top-k 1 --scores {file} --json".split()
    assert run(words) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [r["copies_between_nodes"] for r in rows] == [0.5] * 3


def test_redundant_experts_take_from_the_busiest_card(capsys):
    words = "moe bench --cluster h800:2 --experts 64 --tokens 32 --skew 1 --redundant 16 --json"
    assert run(words.split()) == 0
    found = json.loads(capsys.readouterr().out)
    once, more = found["balance"]
    assert (once["redundant"], once["slots"], more["redundant"], more["slots"]) == (None, 4, 16, 5)
    assert once["tokens_mean"] == more["tokens_mean"] == 32 * 8
    assert once["tokens_max"] > 1.8 * once["tokens_mean"]
    assert more["tokens_max"] < 1.2 * more["tokens_mean"]
    assert more["time_us"]["two_hop"] < 0.8 * once["time_us"]["two_hop"]
    last = found["rows"][-1]
    assert last["time_us"] + last["combine_time_us"] == pytest.approx(more["time_us"]["two_hop"])


@pytest.mark.parametrize("limit", [1, 2])
def test_redundant_experts_stay_where_the_gate_lets_tokens_go(limit):
    load = Load(4, 2, 32, 4, tokens=32, max_nodes=limit, skew=1.0, redundant=8)
    layout = load.layout()
    assert layout.in_node(2).sum(axis=1).max() <= limit
    assert layout.slots == 5
    assert layout.work().sum() == 8 * 32 * 4
    even = Load(4, 2, 32, 4, tokens=32, max_nodes=limit, skew=1.0).layout()
    for node in range(4):  # what a node computes stays, and is better shared inside
        mine = slice(2 * node, 2 * node + 2)
        assert layout.work()[mine].sum() == even.work()[mine].sum()
    assert layout.work().max() <= even.work().max()


def test_schedules_with_redundant_experts_are_proved(capsys):
    words = "moe verify --nodes 2 --cards 4 --experts 32 --skew 2 --redundant 8 --max-nodes 1"
    assert run([*words.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]


def test_all_tokens_to_one_expert_are_shared_by_its_copies(tmp_path, capsys):
    file = tmp_path / "scores.npy"
    scores = np.zeros((64, 32))
    scores[:, 5] = 1
    np.save(file, scores)
    words = f"moe bench --cluster h800:2 --experts 32 --top-k 1 --scores {file} --redundant 32 "
    assert run([*words.split(), "--tokens", "4", "--json"]) == 0
    once, more = json.loads(capsys.readouterr().out)["balance"]
    assert once["tokens_max"] == 64
    assert more["tokens_max"] == 4


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0])
def test_skewed_scores_choose_by_weights(skew):
    """The first choice of many tokens, against the weights of Zipf's law."""
    tokens, experts = 40_000, 8
    first = moe.choose(moe.skewed_scores(tokens, experts, skew, 7), 1).experts
    found = np.sort(np.bincount(first.ravel(), minlength=experts))[::-1] / tokens
    weights = np.arange(1.0, experts + 1) ** -skew
    assert found == pytest.approx(weights / weights.sum(), abs=0.01)


@pytest.mark.parametrize("skew", [-1, 5, float("nan"), float("inf")])
def test_skews_that_cannot_be(skew):
    with pytest.raises(RoundelayError, match=r"expected 0 \(all experts alike\) to 4"):
        moe.skewed_scores(1, 1, skew)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--cluster h800:2 --redundant 5", "5 redundant experts on 16 cards; expected a multiple"),
        ("--cluster h800:2 --redundant -1", "-1 is not in the range x>=0"),
        ("--cluster h800:2 --skew 5", "5.0 is not in the range 0<=x<=4.0"),
        ("--cluster h800:2 --skew nan", "skew = nan; expected 0"),
        ("--cluster h800:2 --skew 1 --scores a.npy", "--skew changes nothing with a file"),
        ("--cluster h800:2 -n 4", "leave it out with --cluster"),
        ("--cluster h800:2 --experts 30", "30 experts on 16 cards; expected a multiple"),
        ("--cluster h800:2 --nodes 4", "4 nodes of 8 cards, and h800 has 2 of 8"),
        ("--cluster h800:2 --max-nodes 0", "0 is not in the range x>=1"),
        ("--cluster h800:2 --scores no.npy", "no.npy: No such file"),
        ("--cluster h800:2 --top-k 300", "top_k = 300; expected 1 to 256"),
        ("--cluster h800:2 --top-k 200 --max-nodes 1", "top_k = 200; expected 1 to 128"),
        ("-n 1000", "-n 1000; expected 1 to 64 processes here"),
        ("-n 4 --experts 30", "30 experts on 4 cards"),
        ("-n 4 --dtype bfloat16", "--dtype bfloat16 cannot be added up here"),
        ("--scores /dev/zero", "is no regular file"),
        ("--cluster h800:2 --top-k 0", "0 is not in the range x>=1"),
    ],
)
def test_what_cannot_be(words, message, capsys):
    assert run(["moe", "bench", *words.split()]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "data",
    [b"", b"0.1 0.2\n", b"\x93NUMPY\1\0" + (506).to_bytes(2, "little") + b"[" * 505 + b"\n",
     b"\x93NUMPY\1\0" + b"\x76\0" + b"{'descr': '<f8', 'fortran_order': False, "
     b"'shape': (999999999, 999999), }".ljust(117) + b"\n", b"PK\3\4 none"],
)  # fmt: skip
def test_what_is_no_file_of_scores(data, tmp_path, capsys):
    file = tmp_path / "scores.npy"
    file.write_bytes(data)
    assert run(["moe", "bench", "--cluster", "h800:2", "--scores", str(file)]) == 2
    said = capsys.readouterr().err
    assert "is no array as numpy.save writes it; expected floats" in said
    assert "allow_pickle" not in said


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_that_are_too_large_to_be_added_up(dtype):
    scores = np.full((4, 8), np.finfo(dtype).max / 2, dtype)
    with pytest.raises(RoundelayError, match="too large to be added up"):
        moe.choose(scores, 2, 2, 1)
    moe.choose(scores / 16, 8, 2)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_schedules_are_proved(lang, capsys):
    words = ["moe", "verify", "--nodes", "4", "--cards", "2", "--experts", "32", "--max-nodes", "2"]
    assert run([*words, "--lang", lang]) == 0
    assert ("at most 2, limit 2" in capsys.readouterr().out) == (lang == "en")
    assert run([*words, "two_hop", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"]
    assert [r["collective"] for r in found["results"]] == ["moe_dispatch", "moe_combine"]
    there = found["results"][0]
    assert (there["copies_between_nodes_max"], there["same_index"]) == (2, True)


@pytest.mark.parametrize("back", [False, True])
def test_a_schedule_in_a_file_goes_through_the_other_commands(back, tmp_path, capsys):
    file = str(tmp_path / "dispatch.json")
    way = ["--combine"] if back else []
    assert run(["moe", "export", "flat_card", *way, "-o", file]) == 0
    name = "moe_combine" if back else "moe_dispatch"
    said = {}
    for words in (["verify", file], ["show", file], ["cost", file, "1MiB"],
                  ["simulate", file, "--cluster", "h800:2", "--sizes", "1M"]):  # fmt: skip
        assert run(words) == 0
        said[words[0]] = capsys.readouterr().out
    assert f"{name}/flat_card  ok" in said["verify"]
    assert run(["moe", "show", "flat_card", *way]) == 0
    assert capsys.readouterr().out == said["show"]
    assert "least" not in said["cost"]
    assert f"# {name}, n = 4" in said["simulate"]


@pytest.mark.parametrize("words", ["verify moe_dispatch/two_hop -n 4", "algorithms moe_combine",
                                   "show moe_dispatch"])  # fmt: skip
def test_a_dispatch_has_no_schedule_by_name_and_number(words, capsys):
    assert run(words.split()) == 2
    assert "roundelay moe export" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("show -n 4", "-n and --cluster are for bench; show takes --nodes and --cards"),
        ("verify --cluster h800:2", "-n and --cluster are for bench"),
        ("bench two_hop", "bench takes all schemes"),
        ("verify --hidden 8 --iters 2", "--hidden changes nothing for verify"),
        ("bench --iters 2 --cluster h800:2", "it is for processes of this machine"),
        ("bench -n 2 --sms 2", "--sms changes nothing without --cluster"),
        ("show three_hop", "'three_hop' is not one of"),
        ("verify --experts 100", "100 experts on 64 cards; expected a multiple"),
    ],
)
def test_what_does_not_go_with_what(words, message, capsys):
    assert run(["moe", *words.split()]) == 2
    assert message in capsys.readouterr().err


def test_what_cannot_be_between_processes():
    code, _, err = job("moe bench -n 4 --nodes 3 --experts 16")
    assert (code, "3 nodes of 1 cards, and 4 ranks" in err) == (2, True), err


def test_loads_that_cannot_be():
    with pytest.raises(RoundelayError, match="hidden = 0; expected 1 or more"):
        Load(1, 1, hidden=0)
    with pytest.raises(RoundelayError, match="dtype 'int8'; expected one of fp8"):
        Load(1, 1, dtype="int8")
    with pytest.raises(RoundelayError, match="expected 4 tokens or more, and 256 experts"):
        Load(2, 2, scores=np.zeros((4, 8)))
    with pytest.raises(RoundelayError, match="between = 0; expected bytes a second"):
        Link(0, 1)
    with pytest.raises(RoundelayError, match="rate = -1"):
        Decode().stage(-1)
    with rl.init() as comm, pytest.raises(RoundelayError, match="2 nodes of 1 cards, and 1 ranks"):
        next(measured(Load(2, 1, 4, 1), comm))
    with rl.init() as comm, pytest.raises(RoundelayError, match="bfloat16 cannot be added up"):
        next(measured(Load(1, 1, 4, 1, dtype="bfloat16"), comm))
    assert Bound(1.0, 2.0).binding == "inside"
