"""A real run in a browser: lanes, events, the longest path, two runs, a job that runs."""

import re
import subprocess
import sys

import numpy as np
import pytest
from views_browser import usable

from roundelay.formats.timeline import write_timeline
from roundelay.longest_path import Part, longest_path
from roundelay.web.known import known as known_of
from roundelay.web.page import page as one_file
from roundelay.web.runs import examples
from roundelay.web.states import asked, state_text


def text(seen, selector):
    return seen.locator(selector).first.inner_text()


def address_of(seen):
    """The address now; playwright's own is a little late."""
    return seen.evaluate("location.href")


def test_the_sentence_says_what_the_path_says(open_page):
    seen = open_page("run?hints=0&lang=en&run=late")
    share = longest_path(examples()["late"]).share(4)
    assert np.unravel_index(share.argmax(), share.shape) == (2, Part.PROGRAM)
    milliseconds = f"{share.max() / 1e6:.3g} ms"
    assert f"the program, between two calls, rank 2, {milliseconds}" in text(seen, ".sentence")


def test_tables_hold_the_timelines_figures(open_page):
    seen = open_page("run?hints=0&lang=en&run=late&tables=1")
    rows = seen.locator(".tables table").first.locator("tbody tr").all()
    waits = examples()["late"].waits
    assert len(rows) == 4
    for row, ns in zip(rows, waits.tolist(), strict=True):
        assert row.locator("td").nth(5).inner_text() == f"{ns / 1e6:.3g} ms"
    by_call = seen.locator(".tables table").nth(3).locator("tbody tr").first.inner_text()
    assert "all_reduce of 262144 float32, sum (ring)" in by_call
    assert "rank 2" in by_call


def test_the_model_agrees_with_the_timeline(open_page):
    seen = open_page("run?hints=0&run=even")
    found = seen.evaluate(
        "() => Promise.all([import('/static/run/model.js'), fetch('api/run?name=even')"
        ".then((a) => a.json())]).then(([m, data]) => { const r = new m.RunModel(data);"
        " return r.lanes.map((lane) => ['work', 'wait', 'calls'].map((kind) =>"
        " lane[kind].shares(0, r.span / 10, 10).reduce((a, b) => a + b, 0) * r.span / 10)); })"
    )
    t = examples()["even"]
    for rank, (work, wait, calls) in enumerate(found):
        load = t.loads()[rank]
        assert wait == pytest.approx(load.waiting, rel=1e-3)
        assert work == pytest.approx(load.busy, rel=1e-3)
        assert calls == pytest.approx(load.calls, rel=1e-3)


def test_pointing_and_keys_tell_of_events(open_page):
    seen = open_page("run?hints=0&lang=en&run=late")
    told = seen.locator("p.told")
    assert told.inner_text() == "Seen: 0 us to 11.7 ms. Chosen lane: rank 0."
    for key in ("ArrowDown", "ArrowDown", "."):
        seen.keyboard.press(key)
    first = told.inner_text()
    assert first.startswith("rank 2: all_reduce of 262144 float32, sum (ring), from ")
    seen.keyboard.press(".")
    assert re.match(
        r"rank 2 sent 128 KiB to rank 3 at .*; that took .* us\. Step 1", told.inner_text()
    )
    seen.keyboard.press(",")
    assert told.inner_text() == first
    before = address_of(seen)
    for key in ("+", "+", "ArrowRight", "p"):
        seen.keyboard.press(key)
    assert address_of(seen) != before
    assert "path=0" in address_of(seen)
    assert "from=" in address_of(seen)
    seen.keyboard.press("Home")
    assert "from=" not in address_of(seen)
    canvas = seen.locator("main canvas").bounding_box()
    seen.mouse.move(canvas["x"] + 120, canvas["y"] + 50)
    assert "rank 0" in text(seen, ".tip")


def test_dragging_moves_both_runs(open_page):
    seen = open_page("run?hints=0&lang=en&run=late&against=even&from=2000000&to=4000000")
    canvas = seen.locator("main canvas").first.bounding_box()
    middle = canvas["y"] + 60
    seen.mouse.move(canvas["x"] + 600, middle)
    seen.mouse.down()
    seen.mouse.move(canvas["x"] + 500, middle, steps=4)
    seen.mouse.up()
    left, right = (int(re.search(rf"{key}=(\d+)", address_of(seen))[1]) for key in ("from", "to"))
    assert right - left == 2_000_000
    assert 2_170_000 < left < 2_190_000
    assert "Two runs" in text(seen, "main table caption")
    assert re.search(r"0\.\d+ ×", text(seen, "main table"))


def test_a_deep_link_shows_the_same(open_page):
    state = (
        "run?hints=0&lang=en&theme=light&run=late&from=1900000&to=2600000&lane=3&event=400&tables=1"
    )
    first = open_page(state)
    again = open_page(address_of(first).partition("#")[2])
    assert first.locator("canvas").screenshot() == again.locator("canvas").screenshot()
    assert first.locator("main").inner_text() == again.locator("main").inner_text()


@pytest.mark.parametrize("odd", ["from=x&to=y", "from=-5&to=1e99", "from=9e9", "lane=99&event=-3",
                                 "event=9e9&lane=x", "to=1&from=3"])  # fmt: skip
def test_odd_states_are_put_right(open_page, odd):
    seen = open_page(f"run?hints=0&lang=en&{odd}")
    assert "NaN" not in seen.locator("main").inner_text()
    assert "Infinity" not in seen.locator("main").inner_text()


def test_no_such_run(browser, address):
    seen = browser.new_page()
    seen.goto(f"{address}#run?hints=0&lang=en&run=nobody")
    seen.wait_for_selector("main .wrong")
    assert "nobody" in text(seen, "main .wrong")
    assert seen.locator("main select").count() == 2
    seen.close()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1500])
@pytest.mark.parametrize("state", ["run=late&against=even&tables=1", "run=live"])
def test_everybody_can_use_it(open_page, lang, scheme, width, state):
    seen = open_page(f"run?lang={lang}&{state}", width=width, scheme=scheme,
                     ready="canvas" if "late" in state else ".sentence p")  # fmt: skip
    usable(seen, "run|live")


def test_one_file_holds_two_runs(open_page, tmp_path):
    (tmp_path / "mine.timeline").write_bytes(write_timeline(examples()["late"]))
    state = {"run": "mine", "against": "even"}
    known = known_of([tmp_path / "mine.timeline"])
    file = tmp_path / "run.html"
    file.write_text(one_file(asked("run", state), state_text("run", state), known), "utf-8")
    seen = open_page("", where=file.as_uri(), ready="canvas", offline=True)
    assert seen.locator("main canvas").count() == 2
    assert text(seen, "main h2") == "mine"


PROGRAM = """
import time
import numpy as np
import roundelay
with roundelay.init() as comm:
    comm.all_reduce(np.ones(1024, np.float32))
    if comm.rank == 2:
        time.sleep(45)
    comm.all_reduce(np.ones(1024, np.float32))
"""


def test_a_job_that_runs_here(open_page, tmp_path, monkeypatch):
    monkeypatch.setenv("ROUNDELAY_NAME", "seen-live")
    program = tmp_path / "late.py"
    program.write_text(PROGRAM)
    job = subprocess.Popen(
        [sys.executable, "-m", "roundelay", "launch", "-n", "3", program], stderr=subprocess.DEVNULL
    )
    try:
        seen = open_page("run?hints=0&lang=en&run=live&job=seen-live", ready=".controls")
        seen.wait_for_selector("main .sentence .wrong")
        said = text(seen, ".sentence")
        assert "rank 2 has not arrived at all_reduce #2 (4 KiB, group world)" in said
        rows = [row.inner_text().split("\t") for row in seen.locator("tbody tr").all()]
        assert [row[2] for row in rows] == ["waiting", "waiting", "running"]
        assert [row[5] for row in rows] == ["2", "2", "–"]
    finally:
        job.terminate()
        job.wait(20)


def test_an_empty_name_counts_as_none(open_page):
    seen = open_page("run?run=&job=x&hints=0&lang=en")
    assert seen.locator("h2").first.inner_text() == "even"
