"""The curves in a browser: lines are the model's, crossovers are named, measurements stay here."""

import json
import re
import time
from itertools import pairwise
from urllib.parse import parse_qsl, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from test_formats_nccl_tests import DEVICES, NEW
from views_browser import LOADED, until

from roundelay.formats.nccl_tests import read_nccl_tests
from roundelay.web.data.curves import SIZES, curves
from roundelay.web.page import page as one_file
from roundelay.web.server import SLOWEST
from roundelay.web.states import asked, state_text


def table(seen, caption):
    """Head, and rows, of a table."""
    found = seen.locator("table", has=seen.locator(f"caption:text-is('{caption}')"))
    rows = [row.locator("th, td").all_inner_texts() for row in found.locator("tr").all()]
    return rows[0], rows[1:]


def slide(seen, name, by):
    seen.evaluate(
        "([name, by]) => { const s = document.querySelector('#slider-' + name);"
        " s.value = Number(s.value) + by; s.dispatchEvent(new Event('input')); }",
        [name, by],
    )


def test_lines_are_the_models(open_page):
    seen = open_page("curves?hints=0&lang=en&tables=1")
    head, rows = table(seen, "Time, us")
    data = curves("all_reduce", "dgx-h100", 4)
    assert set(head[1:]) == {c.algorithm for c in data.curves}
    assert len(rows) == len(SIZES)
    for i, row in enumerate(rows):
        for name, text in zip(head[1:], row[1:], strict=True):
            ways = next(c.ways for c in data.curves if c.algorithm == name)
            least = min(max(data.launch, sum(p)) for w in ways if (p := w.parts[i]))
            assert float(text) == pytest.approx(least, rel=1e-3)


def test_the_first_question_is_worked_out_beforehand(browser, address):
    """The server has its answer ready, so the page must ask just that."""
    questions = []
    with browser.new_context() as context:
        seen = context.new_page()
        seen.on("request", lambda request: questions.append(urlsplit(request.url)))
        seen.goto(f"{address}#curves?hints=0")
        seen.wait_for_selector(".lines label")
    name, given = SLOWEST
    first = next(url for url in questions if url.path == f"/api/{name}")
    assert dict(parse_qsl(first.query)) == given


def test_a_time_axis_has_units(open_page):
    seen = open_page("curves?hints=0&lang=en")
    ticks = seen.locator(".plot").first.locator(".ytick text").all_text_contents()
    assert {"100 us", "1 ms", "100 ms"} <= set(ticks)


def test_crossovers_are_named(open_page):
    seen = open_page("curves?hints=0&lang=en&tables=1")
    said = seen.locator(".sentence").inner_text()
    _, rows = table(seen, "Crossover points")
    head, times = table(seen, "Time, us")
    best = [head[1:][min(range(len(row) - 1), key=lambda k: float(row[k + 1]))] for row in times]
    changes = [(a, b) for a, b in pairwise(best) if a != b]
    assert [tuple(row[1:3]) for row in rows] == changes
    assert said.startswith(f"The quickest is {best[0]} at first")
    for _, later in changes:
        assert f"on {later}" in said


def test_sliders_answer_and_stay_in_the_address(open_page):
    seen = open_page("curves?hints=0&lang=en&tables=1&nodes=1&hide=switch")
    before = seen.locator(".sentence").inner_text()
    slide(seen, "latency", 6)
    until(seen, "location.hash.includes('latency=6')")
    until(seen, f"document.querySelector('.sentence').textContent !== {json.dumps(before)}")
    took = seen.evaluate(
        "() => new Promise(done => { const s = document.querySelector('#slider-bandwidth');"
        " s.value = -4; const t = performance.now(); s.dispatchEvent(new Event('input'));"
        " requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - t))); })"
    )
    print(f"a slider's answer: {took:.0f} ms")
    until(seen, "location.hash.includes('bandwidth=-4')")


def test_against_nodes(open_page):
    seen = open_page("curves?hints=0&lang=en&tables=1&x=nodes&cluster=mi300x")
    until(seen, "document.querySelectorAll('.tables table')[0].rows.length === 7")
    _, rows = table(seen, "Time, us")
    assert [row[0] for row in rows] == ["1", "2", "4", "8", "16", "32"]
    slide(seen, "size", 3)
    until(seen, "location.hash.includes('size=13')")
    seen.get_by_label("Against").select_option("size")
    assert seen.locator("#slider-nodes").is_visible()


def test_lines_are_chosen_by_keyboard(open_page):
    seen = open_page("curves?hints=0&lang=en&tables=1")
    seen.get_by_role("checkbox", name="star").focus()
    seen.keyboard.press("Space")
    until(seen, "location.hash.includes('hide=star')")
    head, _ = table(seen, "Time, us")
    assert "star" not in head
    again = open_page(seen.url.partition("#")[2])
    assert not again.get_by_role("checkbox", name="star").is_checked()
    assert again.locator("main").inner_text() == seen.locator("main").inner_text()


TABLE = """# nThread 1 nGpus 8 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5
# Collective test starting: all_reduce_perf
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    52.43   20.00   35.00      0    53.00   19.78   34.62      0
NCCL INFO 3 4 5
    16777216       4194304     float     sum      -1   129.55  129.50  226.62      0   130.00  129.06  225.85      0
"""  # noqa: E501


def test_a_dropped_table_appears_as_points(open_page, tmp_path):
    seen = open_page("curves?hints=0&lang=en&tables=1&nodes=1")
    requests = []
    seen.on("request", lambda r: requests.append(r.url) if "/api/curves" not in r.url else None)
    (tmp_path / "nccl.txt").write_text(TABLE)
    bench = {"rows": [{"collective": "all_reduce", "algorithm": "ring", "ranks": 8, "bytes": 4096,
                       "time_us": 12.5, "busbw_GBps": 0.57}, {"collective": "broadcast", "bytes": 1,
                       "time_us": 1}, {"bytes": "x"}, None]}  # fmt: skip
    (tmp_path / "bench.json").write_text(json.dumps(bench))
    (tmp_path / "other.txt").write_text("words <b>\n1 2 3\n")
    seen.set_input_files("#measured", [tmp_path / name for name in
                                       ("nccl.txt", "bench.json", "other.txt")])  # fmt: skip
    until(seen, "document.querySelector('.drop [role=status]').textContent.includes('bench')")
    said = seen.locator(".drop [role=status]").inner_text()
    assert "nccl.txt: 2 points." in said
    assert "bench.json: 1 points." in said
    assert "other.txt: no line with a size" in said
    _, rows = table(seen, "Measured, beside the quickest of the model")
    assert [row[:4] for row in rows] == [
        ["nccl.txt", "1 MiB", "52.43", "35"], ["nccl.txt", "16 MiB", "129.55", "226.62"],
        ["bench.json: ring, n = 8", "4 KiB", "12.5", "0.57"],
    ]  # fmt: skip
    assert all(float(row[4]) > 0 for row in rows)
    assert requests == []
    forget = seen.get_by_role("button", name="Forget them")
    forget.click()
    assert not forget.is_visible()
    assert not seen.locator("caption:has-text('Measured')").count()


TEXTS = {
    "newest": NEW.format(devices=DEVICES),
    "short": TABLE,
    "line ends": TABLE.replace("\n", "\r\n"),
    "tags": "".join(f"[1,0]<stdout>:{line}\n" for line in TABLE.splitlines()),
    "host": "".join(f"node-3: {line}\n" for line in TABLE.splitlines()),
    "milliseconds": "#  bytes  N  type  op  time  algbw  busbw  res\n"
    "  8388608  2097152  float  sum  0.095  88.30  154.53  0e+00\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_page_reads_tables_as_python_does(open_page, name):
    text = TEXTS[name]
    read = read_nccl_tests(text).tables
    wanted = [
        [row.size, pytest.approx(timing.time_us), pytest.approx(timing.busbw)]
        for found in read
        for row in found.rows
        for timing in [row.out_of_place or row.in_place]
    ]
    found = open_page("curves?hints=0&lang=en&nodes=1").evaluate(
        "([text, of]) => import('/static/curves/measured.js').then(m => m.readMeasured(text, 'x',"
        " of).flatMap(f => f.points.map(p => [p.size, p.time, p.busbw])))",
        [text, read[0].collective],
    )
    assert wanted
    assert found == wanted


@pytest.mark.parametrize(("lang", "scheme", "width"), [
    ("en", "light", 1400), ("zh", "dark", 1000), ("zh", "light", 360), ("en", "dark", 360)
])  # fmt: skip
@pytest.mark.parametrize("state", ["", "&x=nodes", "&collective=send_recv"])
def test_every_dress(open_page, state, lang, scheme, width):
    seen = open_page(f"curves?hints=0&lang={lang}&tables=1&nodes=2{state}", width, scheme=scheme)
    seen.wait_for_selector(".tables table")
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    text = seen.locator("main").inner_text()
    assert ("的" in text) is (lang == "zh")
    assert not re.search(r"undefined|NaN|Infinity|(curves|measured)[_A-Z]", text)
    violations = Axe().run(seen).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in violations] == []


def test_pictures_are_saved(open_page, tmp_path):
    seen = open_page("curves?hints=0&lang=en")
    for kind, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        for i in range(2):
            with seen.expect_download() as waited:
                seen.get_by_role("button", name=f"Save the picture as {kind}").nth(i).click()
            waited.value.save_as(tmp_path / kind)
            assert (tmp_path / kind).read_bytes().startswith(begins)


def test_one_file_opens_without_a_server(open_page, tmp_path):
    state = {"hints": "0", "lang": "en", "cluster": "gb200-nvl72"}
    text = one_file(asked("curves", state), state_text("curves", state))
    (tmp_path / "page.html").write_text(text, "utf-8")
    seen = open_page(
        "", where=(tmp_path / "page.html").as_uri(), ready=LOADED["curves"], offline=True
    )
    before = seen.locator(".sentence").inner_text()
    slide(seen, "nodes", -1)
    until(seen, f"document.querySelector('.sentence').textContent !== {json.dumps(before)}")
    slide(seen, "latency", 3)
    until(seen, "location.hash.includes('latency=3')")


def test_without_plotly_it_is_said_how_to_get_it(browser, address):
    with browser.new_context() as context:
        seen = context.new_page()
        seen.route("**/plotly.min.js", lambda route: route.fulfill(status=404))
        seen.goto(f"{address}#curves?lang=en&hints=0")
        assert "pip install 'roundelay[web]'" in seen.get_by_role("alert").inner_text()


def test_what_is_refused_is_said(browser, address):
    with browser.new_context() as context:
        seen = context.new_page()
        seen.goto(f"{address}#curves?lang=en&hints=0&cluster=%3Cb%3E")
        assert "unknown cluster" in seen.get_by_role("alert").inner_text()
        seen.get_by_role("button", name="Start again").click()
        seen.wait_for_selector(".plot .main-svg")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_first_visit_explains_the_view(open_page, lang):
    seen = open_page(f"curves?lang={lang}")
    hints = seen.locator(".hints li").all_inner_texts()
    assert len(hints) == 3
    assert not [hint for hint in hints if hint.startswith("hint")]


LOOKS = "dark => import('/static/curves/charts.js').then(m => [...Array(72).keys()].map(i =>" \
    " Object.values(m.lookOf(i, dark)).join()))"  # fmt: skip


@pytest.mark.parametrize("dark", [False, True])
def test_no_two_algorithms_look_alike(open_page, dark):
    looks = open_page("curves?hints=0&nodes=1").evaluate(LOOKS, dark)
    assert len(set(looks)) == 72


def test_an_algorithm_looks_the_same_on_every_axis(open_page):
    """By the legend's small pictures, with colours and markers as in the charts."""
    pictures = (
        "[...document.querySelectorAll('.lines label')].map(l =>"
        " [l.innerText.trim(), l.querySelector('svg').innerHTML])"
    )
    by_size = open_page("curves?hints=0&lang=en&nodes=1")
    by_nodes = open_page("curves?hints=0&lang=en&nodes=1&x=nodes")
    until(by_nodes, "document.querySelectorAll('.lines label').length > 11")
    size, nodes = dict(by_size.evaluate(pictures)), dict(by_nodes.evaluate(pictures))
    assert len(set(nodes.values())) == len(nodes)
    assert {name: nodes[name] for name in size} == size


@pytest.mark.parametrize("width", [380, 1400])
def test_labels_of_axes_are_whole(open_page, width):
    seen = open_page("curves?hints=0&latency=6&bandwidth=-6", width)
    seen.wait_for_selector(".ytick text")
    for plot in seen.locator(".plot").all():
        left = plot.bounding_box()["x"]
        assert all(text.bounding_box()["x"] >= left for text in plot.locator(".ytick text").all())


@pytest.mark.parametrize(("asked", "said"), [
    ("nodes=7", "Nodes: 7 is not offered; 8 is shown."),
    ("size=99", "Size: 99 is not offered; 8 GiB is shown."),
    ("nodes=x", "Nodes: x is not offered; 4 is shown."),
])  # fmt: skip
def test_the_nearest_is_shown_and_said(browser, address, asked, said):
    with browser.new_context() as context:
        seen = context.new_page()
        seen.goto(f"{address}#curves?lang=en&hints=0&{asked}")
        assert said in seen.locator(".body > [role=status]").inner_text(timeout=60_000)


@pytest.mark.parametrize(("rows", "found"), [
    ("Array(20000).fill({bytes: 8, time_us: 1})", 1),
    ("Array(120000).fill({bytes: 8, time_us: 1})", "measuredMany"),
    ("[...Array(25).keys()].map(i => ({algorithm: `a${i}`, bytes: 8, time_us: 1}))",
     "measuredSeries"),
    ("[{bytes: 1e308, time_us: 1e-300}]", "measuredFar"),
    ("[{bytes: 8, time_us: 1e13}]", "measuredFar"),
    ("[{bytes: true, time_us: 1}, {bytes: '5', time_us: '5'}]", "measuredNone"),
])  # fmt: skip
def test_what_would_hold_the_page_up_is_refused(open_page, rows, found):
    seen = open_page("curves?hints=0&lang=en&nodes=1")
    start = time.monotonic()
    assert seen.evaluate(
        "() => import('/static/curves/measured.js').then(m => { try { return m.readMeasured("
        f"JSON.stringify({{rows: {rows}}}), 'x', 'all_reduce').length }} catch (error) {{"
        " return error.message } })"
    ) == found  # fmt: skip
    assert time.monotonic() - start < 20  # it was minutes


def test_a_long_line_is_no_row(open_page):
    """A row of a table has a few figures; digits without end are passed over, at once."""
    text = "# nccl-tests\n1 " + "1" * 5_000_000 + "\n" + TABLE
    found = open_page("curves?hints=0&lang=en&nodes=1").evaluate(
        "text => import('/static/curves/measured.js').then(m => m.readMeasured(text, 'x',"
        " 'all_reduce')[0].points.length)",
        text,
    )
    assert found == 2


def test_measured_points_are_named(open_page, tmp_path):
    rows = [{"algorithm": name, "bytes": 4096, "time_us": 9} for name in ("ring", "star")]
    (tmp_path / "mine.json").write_text(json.dumps({"rows": rows}))
    (tmp_path / "far.json").write_text('{"rows": [{"bytes": 1e300, "time_us": 1}]}')
    seen = open_page("curves?hints=0&lang=en&nodes=1")
    seen.set_input_files("#measured", [tmp_path / "mine.json", tmp_path / "far.json"])
    until(seen, "document.querySelectorAll('.points li').length === 2")
    assert seen.locator(".points li").all_inner_texts() == ["mine.json: ring", "mine.json: star"]
    looks = seen.locator(".points svg").evaluate_all("all => all.map(one => one.innerHTML)")
    assert looks[0] != looks[1]
    assert "far.json: a size above 1 PiB" in seen.locator(".drop [role=status]").inner_text()
