"""The pictures: true states, text one can read, and drawings that are well formed."""

import ast
import doctest
import re
import sys
import tomllib
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import roundelay
from roundelay import i18n
from roundelay.algorithms import Algorithm, algorithms, build
from roundelay.errors import RoundelayError
from roundelay.i18n import default_lang, message, translator
from roundelay.schedule import COPY, REDUCE, Round, Schedule, ScheduleError
from roundelay.show import frames, html, show, steps, svg
from roundelay.verbs import on

ALL = pytest.mark.parametrize("a", algorithms(), ids=lambda a: f"{a.collective}/{a.name}")

RING_END = """\
Step 6: Every rank passes one finished piece to the next rank, who keeps a copy.
        Now everything is where it belongs.

  0 -> 1  piece 3  copy    2 -> 3  piece 1  copy
  1 -> 2  piece 0  copy    3 -> 0  piece 2  copy

  piece     0       1       2       3
  rank 0   ●●●● ✓  ●●●● ✓ [●●●●]✓  ●●●● ✓
  rank 1   ●●●● ✓  ●●●● ✓  ●●●● ✓ [●●●●]✓
  rank 2  [●●●●]✓  ●●●● ✓  ●●●● ✓  ●●●● ✓
  rank 3   ●●●● ✓ [●●●●]✓  ●●●● ✓  ●●●● ✓

After 6 steps every rank holds all 4 pieces complete.
"""


def schedules(a: Algorithm, counts: tuple[int, ...]) -> list[Schedule]:
    """The algorithm at those numbers of ranks that it takes."""
    return [a(n) for n in counts if a.fits(n)]


def ring_with(**changes: object) -> Schedule:
    """The ring over 3 ranks, with one field of its first round changed."""
    ring = build("all_reduce/ring", 3)
    first, second = ring.rounds
    return replace(ring, rounds=(replace(first, **changes), second))


def test_ring_as_text() -> None:
    """A beginner can follow the ring: what it is for, what moves, and what that brings."""
    text = show(build("all_reduce/ring", 4))
    assert text.startswith(
        "all_reduce/ring: 4 ranks, 4 pieces, 6 steps\n"
        "Every rank brings numbers; in the end every rank has their sum.\n"
    )
    assert (
        "\nStep 1: Every rank passes one piece to the next rank, who adds it to its own.\n"
        "        Each piece that changed now has the numbers of 2 of 4 ranks in it.\n"
    ) in text
    assert "\n  rank 1  [●●○○]   ○●○○    ○●○○    ○●○○\n" in text
    assert "\n        Every rank now has 1 of its 4 pieces finished.\n" in text
    assert text.endswith(RING_END)
    assert text == show(build("all_reduce/ring", 4))


def test_ring_in_chinese() -> None:
    """The same in Chinese, its columns aligned where a character takes two of them."""
    text = show(build("all_reduce/ring", 4), lang="zh")
    assert "第 1 步：每个 rank 把一个分块传给下一个 rank，对方将其加到自己的数据上。\n" in text
    assert "\n  分块      0       1       2       3\n  rank 0  [●●●●]✓" in text
    assert text.endswith("\n经过 6 步，每个 rank 都持有全部 4 个完整的分块。\n")


@pytest.mark.parametrize(
    ("what", "n", "params", "sentence"),
    [
        (
            "all_reduce/star",
            4,
            {},
            "Every other rank sends all its data to rank 0, who adds it to its own.",
        ),
        ("all_reduce/switch", 4, {}, "Every rank sends all its data to switch 0, which adds it."),
        (
            "all_reduce/switch",
            4,
            {},
            "Switch 0 sends the finished total to every rank, in one multicast.",
        ),
        ("all_reduce/one_shot", 4, {}, "Every rank sends all its data to every other rank, who"),
        ("all_reduce/rings", 4, {}, "passes a different piece to each of its two neighbours"),
        ("all_reduce/rails", 8, {"group": 4}, "In each of 2 groups of 4 ranks, every rank passes"),
        ("all_reduce/leader", 8, {"group": 4, "inner": "direct"}, "the leader of its group (0, 4)"),
        (
            "all_reduce/recursive_doubling",
            8,
            {},
            "Every rank sends all its data to its partner (0↔2, 1↔3, 4↔6, 5↔7), who",
        ),
        ("all_gather/bruck", 5, {}, "Every rank sends 2 pieces to the rank 2 before it, who keeps"),
        ("broadcast/binomial", 8, {}, "Each of 2 ranks sends all the data to one other rank (0→2"),
        ("scatter/direct", 4, {}, "Rank 0 sends a different piece to every other rank, who keeps"),
        ("gather/direct", 4, {}, "Every other rank sends one piece to rank 0, who keeps a copy."),
        ("all_to_all/direct", 4, {}, "Every rank sends a different piece to every other rank"),
        ("all_to_all/direct", 4, {}, "After 1 step every rank holds the 4 pieces it wants"),
        (
            "reduce/chain",
            3,
            {"pieces": 1},
            "Rank 2 sends all its data to rank 1, who adds it to its own.",
        ),
        (
            "all_reduce/double_tree",
            8,
            {"pieces": 2},
            "Every rank sends one piece to one or more of 6 others (12 transfers), who",
        ),
    ],
)
def test_sentences(what: str, n: int, params: dict[str, object], sentence: str) -> None:
    """What is said follows from who sends to whom."""
    assert sentence in show(build(what, n, **params))


@ALL
def test_everything_can_be_shown(a: Algorithm) -> None:
    """Every algorithm gives text and a drawing, in both languages and without a gap."""
    for schedule in schedules(a, (1, 2, 3, 5, 8)):
        for lang in ("en", "zh"):
            text, picture = show(schedule, lang=lang), svg(schedule, lang)
            root = ElementTree.fromstring(picture)
            assert root.tag.endswith("svg")
            assert root.get("role") == "img"
            assert not re.search(r"[{}]", text + root[1].text)
            assert max(map(len, text.splitlines())) <= 130


@ALL
def test_ends_complete(a: Algorithm) -> None:
    """In the last state every place that must hold a total does, and the words agree."""
    for schedule in schedules(a, (4, 5, 6)):
        last = frames(schedule)[-1]
        need = schedule.after()[: schedule.ranks]
        assert last.step == schedule.steps
        assert last.complete[: schedule.ranks][need].all()
        assert not last.twice.any()
        wanted = schedule.before()[: schedule.ranks].T
        assert (last.holds[: schedule.ranks][need] == wanted[np.nonzero(need)[1]]).all()
        assert "wrong" not in show(schedule)


def test_states_are_those_of_the_meaning() -> None:
    """Parts side by side share steps; what is read is what was there before the step."""
    rings = build("all_reduce/rings", 4)
    seen = frames(rings)
    assert len(seen) == 7
    assert {len(frame.moves) for frame in seen[1:]} == {8}
    exchange = frames(build("all_reduce/recursive_doubling", 4))
    low, high = [1, 1, 0, 0], [0, 0, 1, 1]
    assert exchange[1].holds[:, 0].tolist() == [low, low, high, high]
    assert exchange[1].moves[0] == (0, 1, [0], True)


@pytest.mark.parametrize(
    ("what", "n"),
    [
        ("all_reduce/rings", 5),
        ("all_reduce/rails_switch", 8),
        ("all_reduce/double_tree", 7),
        ("all_gather/direct", 5),
        ("all_reduce/two_shot", 4),
    ],
)
def test_states_one_move_at_a_time(what: str, n: int) -> None:
    """Every state is what plain loops over the moves up to then give, in listed order."""
    schedule = build(what, n)
    for frame in frames(schedule):
        held = {}
        for rank, chunk in np.ndindex(n, schedule.chunks):
            if schedule.before()[rank, chunk]:
                held[rank, chunk] = {rank}
        for step in schedule.moves():
            if step.at >= frame.step:
                continue
            moves = list(zip(step.src, step.dst, step.col, strict=True))
            read = [held[src, chunk] for src, _, chunk in moves]
            adds = np.broadcast_to(step.op, step.src.shape) == REDUCE
            for (_, dst, chunk), what_came, add in zip(moves, read, adds, strict=True):
                held[dst, chunk] = held[dst, chunk] | what_came if add else what_came
        for place in np.ndindex(frame.counts.shape[:2]):
            assert set(np.flatnonzero(frame.holds[place])) == held.get(place, set())


def test_a_gap_is_a_step_without_moves() -> None:
    """A step in which nothing moves is shown as one."""
    late = Schedule("send_recv", 2, 2, [Round([0, 1], [1, 0], [0, 1], COPY, begin=1)])
    assert "Step 1: Nothing moves.\n" in show(late)
    svg(late)


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        (ring_with(op=COPY), "lacks what rank"),
        (Schedule("all_reduce", 2, 1, [Round(0, 1, 0, REDUCE, times=2, shift=0)]), "lacks"),
        (Schedule("reduce", 2, 1, [Round(1, 0, 0, REDUCE, times=2)]), "holds twice what rank 1"),
        (
            Schedule("all_gather", 2, 2, [Round([0, 1], [1, 0], [0, 1]), Round(0, 1, 1, REDUCE)]),
            "holds twice what rank 1",
        ),
    ],
)
def test_wrong_schedules_are_shown_as_wrong(schedule: Schedule, says: str) -> None:
    """A schedule that is not proved is shown as it is, and what is wrong is named."""
    text = show(schedule)
    assert "places are wrong" in text.splitlines()[-1]
    assert says in text.splitlines()[-1]
    svg(schedule)


def test_illegal_schedules_are_refused() -> None:
    """What has no meaning has no picture; a notebook gets the reason."""
    empty = Schedule("broadcast", 3, 1, [Round(1, 2, 0, COPY)])
    with pytest.raises(ScheduleError, match="rank 1 sends chunk 0, of which it holds nothing"):
        show(empty)
    assert "of which it holds nothing" in html(empty)


def test_large_schedules_in_brief() -> None:
    """Steps that do the same are told once, with how far the ranks are."""
    text = show(build("all_reduce/ring", 20))
    assert (
        "Steps 1 to 19: Every rank passes one piece to the next rank, who adds it to its own."
        in text
    )
    assert "  r -> r + 1  20 moves, 1 piece, add\n" in text
    assert "  every rank: 1 of 20 pieces complete\n" in text
    assert len(text.splitlines()) < 30
    tree = show(build("broadcast/binomial", 256))
    assert "  ranks 0, 128: 1 of 1 pieces complete\n" in tree
    assert "<svg" in svg(build("all_reduce/ring", 20), "zh")


def test_too_large_is_refused_with_advice() -> None:
    """Each limit names what was found, what is possible and what to try, and costs no time."""
    with pytest.raises(RoundelayError, match=r"1,024 ranks has .* at most .* try a smaller n"):
        show(build("all_reduce/ring", 1024))
    with pytest.raises(RoundelayError, match="200,000 can be shown"):
        frames(Schedule("all_reduce", 2, 1, [Round(0, 1, 0, REDUCE, times=10**9)]))
    with pytest.raises(RoundelayError, match="1,000,000,001 steps; at most 10,000"):
        frames(Schedule("all_reduce", 2, 1, [Round(0, 1, 0, REDUCE, start=10**9)]))
    with pytest.raises(RoundelayError, match="contributions to follow"):
        frames(build("all_to_all/direct", 100_000))
    with pytest.raises(RoundelayError, match=r"65 ranks are too many .* at most 64 .* -n 8"):
        svg(build("all_reduce/ring", 65))
    with pytest.raises(RoundelayError, match="rows of ranks"):
        show(on([[0, 1], [2, 3]], build("all_reduce/ring", 2)))
    with pytest.raises(RoundelayError, match=r"language 'fr'; expected one of en, zh"):
        show(build("all_reduce/ring", 2), lang="fr")


def test_notebooks() -> None:
    """A small schedule is drawn, any other named in a line, at once."""
    assert "<svg" in html(build("all_reduce/ring", 4))
    for large in ("all_reduce/ring", "all_to_all/direct", "all_reduce/one_shot"):
        shown = html(build(large, 600), "zh")
        assert shown.startswith(f"<pre>{large}：600 个 rank")
        assert shown.endswith("</pre>")
    named = replace(build("all_reduce/ring", 100), name="<b>&")
    assert "&lt;b&gt;&amp;" in html(named)


def test_steps_as_data() -> None:
    """What is shown can be had as plain values."""
    start, first, *_ = steps(build("all_reduce/ring", 3))
    assert start["moves"] == []
    assert start["contributions"] == [[1, 1, 1]] * 3
    assert first["moves"][0] == {"src": 0, "dst": 1, "chunks": [0], "add": True}
    assert first["contributions"] == [[1, 1, 2], [2, 1, 1], [1, 2, 1]]
    assert first["sentence"].startswith("Every rank passes one piece to the next rank")


def test_picture_is_self_contained() -> None:
    """Nothing is loaded or run, text is escaped, and two runs give the same bytes."""
    schedule = replace(build("all_reduce/switch", 3), name='<"&\x1b\x00')
    picture = svg(schedule)
    assert picture == svg(schedule)
    root = ElementTree.fromstring(picture)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names <= {"svg", "title", "desc", "style", "g", "path", "rect", "text"}
    assert not re.search(r"(href|url\(|@import|<script|\son\w+=)", picture)
    assert root.get("aria-label").startswith('all_reduce/<"& (levels=1): 3 ranks')
    assert "Step 1" in "".join(root.itertext())
    assert "stroke-dasharray" in picture


def test_texts_are_translated() -> None:
    """Every text of this package has Chinese, with the same values in it."""
    table = tomllib.loads(files("roundelay").joinpath("lang", "zh.toml").read_text("utf-8"))
    used = set()
    for file in (Path(roundelay.__file__).parent / "show").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                text = node.args[0]
                if name in ("message", "tell") and isinstance(text, ast.Constant):
                    used.add(text.value)
    assert len(used) > 100
    assert used <= table.keys()
    for english, chinese in table.items():
        names, told = (set(re.findall(r"{(\w+)", text)) for text in (english, chinese))
        assert names == told, english


def test_examples_in_the_documentation() -> None:
    """They hold."""
    for module in (i18n, sys.modules["roundelay.show"]):
        failed, attempted = doctest.testmod(module)
        assert (failed, attempted > 0) == (0, True)


def test_languages() -> None:
    """The locale's variables are asked in their order; what has no translation stays English."""
    assert default_lang({}) == "en"
    assert default_lang({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert default_lang({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}) == "en"
    assert default_lang({"LC_ALL": "", "LC_MESSAGES": "zh_TW", "LANG": "C"}) == "zh"
    assert translator("zh")("no such text") == "no such text"
    assert message("{k} pieces", k=message("{k} steps", k=2)).tell(translator("zh")) == (
        "2 步 个分块"
    )
