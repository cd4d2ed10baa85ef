"""Sweeps: what they go over, who answers, where answers are kept, and charts of them."""

import contextlib
import doctest
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roundelay.sweep
from roundelay.errors import RoundelayError
from roundelay.sweep import (
    Chart,
    Store,
    grid,
    over_processes,
    over_ray,
    plotter,
    processes,
    read_axis,
)
from roundelay.sweep import ray as on_ray
from roundelay.sweep.axes import KEYS
from roundelay.sweep.chart import LIGHT, Line, Scale, Spot, _apart, round_ticks


def test_doctests():
    for module in (roundelay.sweep, roundelay.sweep.axes):
        assert not doctest.testmod(module).failed


# What a sweep goes over.


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("nodes=1,2,4..64", "nodes", (1, 2, 4, 8, 16, 32, 64)),
        ("nodes=1,2,4..100", "nodes", (1, 2, 4, 8, 16, 32, 64)),
        ("nodes=3", "nodes", (3,)),
        ("ranks=8..64", "ranks", (8, 16, 32, 64)),
        ("ranks=1,3..100,5", "ranks", (1, 3, 9, 27, 81, 5)),
        ("nodes=4..4", "nodes", (4,)),
        ("size=1K,1KiB,1KB", "size", (1024, 1000)),
        ("size=0,8,64..4K", "size", (0, 8, 64, 512, 4096)),
        ("straggler=1,1.1,1.5..2.1", "straggler", (1.0, 1.1, 1.5, 1.5 * 1.5 / 1.1)),
        ("straggler=1..8", "straggler", (1.0, 2.0, 4.0, 8.0)),
        (" algorithm = ring, nccl ,ring", "algorithm", ("ring", "nccl")),
        ("cluster=dgx-h100,../mine.toml", "cluster", ("dgx-h100", "../mine.toml")),
        ("protocol=LL,Simple", "protocol", ("LL", "Simple")),
    ],
)
def test_values_of_an_axis(text, key, values):
    axis = read_axis(text)
    assert (axis.key, axis.values) == (key, pytest.approx(values) if key == "straggler" else values)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nodes", "no sweep; expected a key and its values"),
        ("nodes=", "no sweep"),
        ("nodes=1,,2", "no sweep"),
        ("node=1,2", "did you mean nodes"),
        ("nodes=0", "no count"),
        ("nodes=1.5", "no count"),
        ("nodes=-1", "no count"),
        ("nodes=1,2,4...64", "no count"),
        ("nodes=²", "no count"),
        ("nodes=2,3..9", "gives 4.5; expected whole numbers"),
        ("nodes=4,2..1", "by a factor of 0.5"),
        ("nodes=8..4", "does not reach 4"),
        ("nodes=2,2..9", "by a factor of 1"),
        ("size=0..8", "cannot go on from 0"),
        ("size=-8", "is negative"),
        ("size=8Gb", "looks like bits"),
        ("size=1M elements", "unknown unit"),
        ("straggler=0.5", "not how many times slower"),
        ("straggler=nan", "not how many times slower"),
        ("straggler=inf", "not how many times slower"),
        ("straggler=1,1.000001..1e9", "more than 1000 values"),
    ],
)
def test_what_is_no_axis(text, complaint):
    with pytest.raises(RoundelayError, match=complaint.replace("..", r"\.\.")):
        read_axis(text)


@given(st.text(max_size=12), st.sampled_from(["", *(f"{key}=" for key in KEYS)]))
def test_any_text_is_an_axis_or_a_complaint(text, begin):
    with contextlib.suppress(RoundelayError):
        assert read_axis(begin + text).values


def test_every_combination():
    axes = [read_axis("nodes=1,2"), read_axis("size=8,16")]
    assert [tuple(values.values()) for values in grid(axes)] == [(1, 8), (1, 16), (2, 8), (2, 16)]
    with pytest.raises(RoundelayError, match="nodes is swept twice"):
        grid([axes[0], axes[0]])
    long = read_axis("nodes=" + ",".join(map(str, range(1, 400))))
    with pytest.raises(RoundelayError, match="a sweep of 159,201 points"):
        grid([long, read_axis("ranks=" + ",".join(map(str, range(1, 400))))])


# Who answers.


def squared(x):
    return x * x


def slowly(x, seconds=0.05):
    time.sleep(seconds)
    return os.getpid(), x


def failing(x):
    if x == 5:
        raise ValueError(f"no {x}")
    return x


def dying(x):
    if x == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


@pytest.fixture
def impatient(monkeypatch):
    """Other processes are started after the first answer."""
    monkeypatch.setattr(processes, "PATIENCE", -1.0)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_every_question_is_answered_once(jobs, impatient):
    found = list(over_processes(squared, range(10), jobs))
    assert sorted(found) == [(i, i * i) for i in range(10)]
    assert list(over_processes(squared, [], jobs)) == []


def test_short_questions_start_no_process():
    assert {pid for _, (pid, _) in over_processes(partial(slowly, seconds=0), range(9), 2)} == {
        os.getpid()
    }


def test_long_questions_are_shared(impatient):
    found = list(over_processes(slowly, range(9), 2))
    assert sorted(x for _, (_, x) in found) == list(range(9))
    assert len({pid for _, (pid, _) in found} - {os.getpid()}) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_comes_through(jobs, impatient):
    with pytest.raises(ValueError, match="no 5"):
        list(over_processes(failing, range(10), jobs))


def test_a_killed_process_is_told(impatient):
    with pytest.raises(RoundelayError, match=r"ended with status -9.*--jobs 1"):
        list(over_processes(dying, range(10), 2))


def test_leaving_early_ends_the_processes(impatient):
    answers = over_processes(partial(slowly, seconds=30), range(4), 2)
    answers.close()  # before any
    pids = over_processes(slowly, [0, *[1] * 50], 2)
    seen = {next(pids)[1][0] for _ in range(12)} - {os.getpid()}
    pids.close()
    assert seen
    for pid in seen:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class Ray(SimpleNamespace):
    """What of Ray is used, in this process; the last that was asked answers first."""

    def __init__(self):
        super().__init__(calls=[], most=0)

    def init(self, **options):
        self.calls.append("init")

    def shutdown(self):
        self.calls.append("shutdown")

    def remote(self, function):
        return SimpleNamespace(remote=lambda question: (function, question, object()))

    def wait(self, references):
        self.most = max(self.most, len(references))
        return [references[-1]], references[:-1]

    def get(self, reference):
        function, question, _ = reference
        return function(question)


def test_a_ray_cluster_answers(monkeypatch):
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(on_ray, "UNDER_WAY", 3)
    found = list(over_ray(squared, range(7)))
    assert sorted(found) == [(i, i * i) for i in range(7)]
    assert found[0] == (2, 4)  # three were asked before any had answered
    assert (ray.calls, ray.most) == (["init", "shutdown"], 3)


def test_leaving_early_shuts_ray_down(monkeypatch):
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(ValueError, match="no 5"):
        list(over_ray(failing, range(7)))
    assert ray.calls == ["init", "shutdown"]


def test_without_ray_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RoundelayError, match=r"pip install 'roundelay\[ray\]'"):
        list(over_ray(squared, [1]))


# Where answers are kept.


def test_answers_are_there_again(tmp_path):
    file = tmp_path / "rows.jsonl"
    with Store(file) as store:
        assert store.rows == {}
        store.add("a", {"x": 1.5})
        store.add("b", {"error": "none"})
    with Store(file) as store:
        assert store.rows == {"a": {"x": 1.5}, "b": {"error": "none"}}
    assert [json.loads(line)["key"] for line in file.read_text().splitlines()] == ["a", "b"]


@pytest.mark.parametrize("cut", range(1, 19))
def test_a_half_written_line_is_dropped(tmp_path, cut):
    file = tmp_path / "rows.jsonl"
    with Store(file) as store:
        store.add("a", {"x": 1})
        store.add("b", {"x": 2})
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    with Store(file) as store:
        assert set(store.rows) == {"a"}
        store.add("b", {"x": 2})
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "text", ["hello", "hello\n", '{"a":1}\n', '{"key":"a"}\nhello', "\n", '{"key":1}\n']
)
def test_a_file_of_something_else_is_left_alone(tmp_path, text):
    file = tmp_path / "notes.txt"
    file.write_text(text)
    with pytest.raises(RoundelayError, match="no line of a sweep"):
        Store(file)
    assert file.read_text() == text


def test_one_sweep_a_file(tmp_path):
    file = tmp_path / "rows.jsonl"
    with Store(file), pytest.raises(RoundelayError, match="another sweep is writing"):
        Store(file)
    with Store(file):
        pass


# Charts.


def chart(lines=2, spots=5, ordered=False, logarithmic=True, band=False):
    found = []
    for i in range(lines):
        values = [Spot(2.0**k, 3.0 * 2**k * (1 + i), f"line {i}, {k}") for k in range(spots)]
        low, high = ([s.y * f for s in values] if band else () for f in (0.9, 1.5))
        found.append(Line(f"line {i} <&>", values, low, high))
    x = Scale("across", True, "{:g}".format)
    y = Scale("up, us", logarithmic, "{:g}".format)
    return Chart("title & <all>", "about", x, y, found, ordered)


def svg(drawn):
    return ET.fromstring(drawn.svg())


def said(root):
    return [node.text for node in root.iter() if node.tag.endswith("text")]


@pytest.mark.parametrize("lines", [1, 2, 7, 8, 14, 40])
@pytest.mark.parametrize("logarithmic", [True, False])
def test_a_chart_names_its_axes_and_lines(lines, logarithmic):
    texts = said(svg(chart(lines, logarithmic=logarithmic, band=lines == 1)))
    assert {"title & <all>", "about", "across", "up, us", "1", "16"} <= set(texts)
    assert len([text for text in texts if text.startswith("line")]) == lines


def test_a_chart_stays_within_its_picture():
    root = svg(chart(40))
    width, height = float(root.get("width")), float(root.get("height"))
    for node in root.iter():
        if node.tag.endswith("text"):
            assert 0 < float(node.get("x")) < width
            assert 0 < float(node.get("y")) < height


def test_lines_are_told_apart():
    def looks(drawn):
        runs = [n for n in svg(drawn).iter() if "rl-run" in n.get("class", "")]
        return [(n.get("class"), n.get("stroke"), n.get("stroke-dasharray")) for n in runs]

    for drawn in (chart(14), chart(40, ordered=True), chart(3, ordered=True)):
        assert len(set(looks(drawn))) == len(drawn.lines)
    assert all(dash is None for _, _, dash in looks(chart(len(LIGHT))))


@pytest.mark.parametrize("spots", [1, 2])
def test_a_chart_of_few_points(spots):
    for logarithmic in (True, False):
        assert "NaN" not in chart(1, spots, logarithmic=logarithmic).svg()


@given(st.floats(1e-3, 1e12), st.floats(1.001, 1e9), st.booleans())
def test_ticks_are_round_and_within(low, factor, logarithmic):
    ticks = round_ticks(low, low * factor, logarithmic)
    assert 1 < len(ticks) <= 28
    assert all(low * (1 - 1e-6) <= t <= low * factor * (1 + 1e-6) for t in ticks)
    assert ticks == sorted(set(ticks))


@given(st.lists(st.floats(0, 400), min_size=1, max_size=25))
def test_names_are_a_row_apart(heights):
    placed = _apart(sorted(heights), 0, 400)
    assert all(b - a >= 16 - 1e-6 for a, b in pairwise(placed))
    assert placed[0] >= -1e-6
    assert placed[-1] <= 400


def test_a_file_is_written_in_the_format_of_its_ending(tmp_path):
    plotter(tmp_path / "a.SVG")(chart())
    assert ET.fromstring((tmp_path / "a.SVG").read_text()).tag.endswith("svg")
    with pytest.raises(
        RoundelayError, match=r"ends in \.pdf; expected one of \.svg, \.png, \.html"
    ):
        plotter(tmp_path / "a.pdf")
    with pytest.raises(RoundelayError, match="ends in nothing"):
        plotter(tmp_path / "a")


@pytest.mark.parametrize(
    ("ending", "module"), [(".html", "plotly.graph_objects"), (".png", "cairosvg")]
)
def test_other_formats_say_what_they_need(tmp_path, monkeypatch, ending, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RoundelayError, match=r"pip install 'roundelay\[plot\]'"):
        plotter(tmp_path / f"a{ending}")


def test_a_page_needs_no_network(tmp_path):
    pytest.importorskip("plotly")
    plotter(tmp_path / "a.html")(chart(band=True))
    page = (tmp_path / "a.html").read_text()
    assert "prefers-color-scheme" in page
    assert "up, us" in page
    assert not [tag for tag in page.split("<script")[1:] if "src=" in tag.partition(">")[0]]


def test_a_picture_of_points(tmp_path):
    pytest.importorskip("cairosvg")
    plotter(tmp_path / "a.png")(chart())
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


# The whole, interrupted.


def test_ctrl_c_leaves_a_good_file_and_no_process(tmp_path):
    file = tmp_path / "rows.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    nodes = "nodes=" + ",".join(map(str, range(100, 1000)))
    command = [sys.executable, "-m", "roundelay", "simulate", "all_reduce/rails", "--cluster",
               "dgx-h100", "--sizes", "1M", "--straggler", "rank=3:1.1", "--sweep", nodes, "--jobs",
               "2", "--out", str(file)]  # fmt: skip
    started = subprocess.Popen(command, env=environment, start_new_session=True,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    until = time.monotonic() + 60
    while time.monotonic() < until and not (_lines(file) > 30 and _children(started.pid)):
        time.sleep(0.05)
    children = _children(started.pid)
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does
    _, err = started.communicate(timeout=30)
    assert (started.returncode, err.strip()) == (130, "error: interrupted")
    assert children
    while time.monotonic() < until and any(_runs(child) for child in children):
        time.sleep(0.05)
    assert not any(_runs(child) for child in children)
    before = _lines(file)
    assert 30 < before < 900
    with Store(file) as store:
        assert len(store.rows) == before


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(entry.parent.name))
    return found


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
