"""The bucket, the roads and the stack in a browser."""

import itertools
import time

import pytest
from axe_playwright_python.sync_playwright import Axe
from views_browser import LOADED

from roundelay.web.data.bucket import bucket
from roundelay.web.data.roads import CORE, hops, roads
from roundelay.web.page import page as one_file
from roundelay.web.states import asked, state_text

VIEWS = ("bucket", "roads", "stack")


@pytest.mark.parametrize(
    "given",
    [{}, {"n": 4, "slow": 1.0, "noise": 0.0}, {"n": 10_000, "stall": 1e-3}, {"noise": 0.1},
     {"n": 7, "slow": 3.0, "pause": 0.0, "exchange": 0.0}],
)  # fmt: skip
def test_the_page_reckons_as_python_does(open_page, given):
    usual = {"n": 64, "slow": 1.0, "noise": 0.02, "stall": 1e-4, "pause": 200.0, "compute": 200.0,
             "exchange": 40.0, "update": 10.0}  # fmt: skip
    found = open_page("bucket?hints=0").evaluate(
        "given => import('/static/bucket/model.js').then(m => m.bucketFigures(given))",
        usual | given,
    )
    expected = bucket(**usual | given)
    for key, value in found.items():
        assert value == pytest.approx(expected[key], rel=1e-5, abs=1e-6), key


def test_the_page_finds_the_same_ways(open_page):
    machine = next(m for m in roads()["machines"] if m.name == "dgx-a100")
    given = {"pcie": machine.pcie, "between": {"rate": machine.between.rate}}
    seen = open_page("roads?hints=0")
    for way in ("gpudirect", "rdma", "kernel"):
        found = seen.evaluate(
            "([machine, way, core]) => import('/static/roads/model.js')"
            ".then(m => m.hopsOf(machine, way, core, 2))",
            [given, way, CORE],
        )
        wanted = {(hop.name, hop.rate, hop.ends) for hop in hops(machine, way, 2)}
        assert {(hop["name"], hop["rate"], hop["ends"]) for hop in found} == wanted


def test_data_sheets_make_18_of_9(open_page):
    seen = open_page("roads?hints=0&lang=en&machine=dgx-h100")
    sentence = seen.locator(".sentence")
    assert "450 GB/s one way" in sentence.inner_text()
    assert "is 9 times as wide" in sentence.inner_text()
    seen.get_by_label("Directions").select_option("sheet")
    assert "900 GB/s both ways against InfiniBand 50 GB/s one way: 18 times" in (
        sentence.inner_text()
    )
    seen.get_by_label("Units").select_option("sheet")
    assert "400 Gb/s one way: 2.25 times, which is wrong" in sentence.inner_text()
    seen.get_by_label("Directions").select_option("both")
    seen.get_by_label("Units").select_option("bits")
    assert "is 9 times as wide" in sentence.inner_text()
    assert "way=both" in seen.url
    assert "unit=bits" in seen.url


def test_a_machine_without_a_network(open_page):
    seen = open_page("roads?hints=0&lang=en&machine=l40s-pcie")
    assert "No network" in seen.locator(".sentence").inner_text()
    assert not seen.get_by_text("Three ways out of a node").is_visible()


def test_a_slider_answers_at_once_and_stays_in_the_address(open_page):
    seen = open_page("bucket?hints=0&lang=en&n=8&slow=1&stall=0&noise=0")
    figures = seen.locator(".figures")
    assert "250 ms" in figures.inner_text()
    slow = seen.get_by_label("One card takes")
    slow.focus()
    for _ in range(20):
        seen.keyboard.press("ArrowRight")
    assert slow.get_attribute("aria-valuetext") == "2.00 ×"
    assert "450 ms" in figures.inner_text()
    assert "slow=2" in seen.url
    took = seen.evaluate(
        "() => { const s = document.querySelector('#slider-n'); s.value = 11; const t ="
        " performance.now(); s.dispatchEvent(new Event('input')); return performance.now() - t; }"
    )
    assert "10,000" in seen.locator(".sentence").inner_text()
    print(f"a slider's answer: {took:.0f} ms")


def test_a_deep_link_shows_the_same(open_page):
    state = "bucket?hints=0&lang=en&theme=light&n=1000&slow=1.5&stall=0.001&ms=1700&tables=1"
    first = open_page(state)
    again = open_page(first.url.partition("#")[2])
    assert first.locator("canvas").screenshot() == again.locator("canvas").screenshot()
    assert first.locator("main").inner_text() == again.locator("main").inner_text()
    assert again.locator("table").is_visible()


def test_the_bucket_by_keyboard(open_page):
    seen = open_page("bucket?hints=0&lang=en&n=4&noise=0&slow=1.5&stall=0&ms=0")
    seen.locator("main").focus()
    label = seen.locator("canvas")
    for step in (1, 2, 3):
        seen.keyboard.press("ArrowRight")
        assert f"ms={350 * step}" in seen.url
    seen.keyboard.press("ArrowLeft")
    assert "ms=700" in seen.url
    assert "waits 100 ms for the slowest" in label.get_attribute("aria-label")
    seen.keyboard.press("Home")
    assert "ms=0" in seen.url
    seen.keyboard.press("Space")
    assert seen.get_by_role("button", name="Pause").is_visible()
    seen.wait_for_selector("canvas[aria-label*='step 2']")
    seen.keyboard.press("Space")
    assert seen.get_by_role("button", name="Play").is_visible()


def test_bad_addresses_show_what_is_usual(open_page):
    seen = open_page("bucket?hints=0&lang=en&n=1e9&slow=x&noise=-1&stall=NaN&ms=1e99")
    assert "8 cards" in seen.locator(".sentence").inner_text()
    seen = open_page("roads?hints=0&lang=en&machine=%3Cb%3E&size=1e99&cores=1e9&unit=x")
    assert "450 GB/s" in seen.locator(".sentence").inner_text()
    seen = open_page("stack?hints=0&open=x.y.%3Cimg%3E")
    assert seen.locator(".layer").count() == 6


@pytest.mark.parametrize(("view", "lang", "scheme", "width"), [
    (view, *rest) for view, rest in itertools.product(VIEWS, (
        ("en", "light", 1400), ("zh", "dark", 1000), ("zh", "light", 360), ("en", "dark", 360)))
])  # fmt: skip
def test_every_view_in_every_dress(open_page, view, lang, scheme, width):
    seen = open_page(f"{view}?hints=0&lang={lang}&tables=1&open=links.kernel", width, 800, scheme)
    seen.wait_for_selector("table")
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    text = seen.locator("main").inner_text()
    assert ("的" in text) is (lang == "zh")
    assert "undefined" not in text
    assert not [word for word in ("bucket_", "roads_", "stackH", "state_") if word in text]
    violations = Axe().run(seen).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in violations] == []


@pytest.mark.parametrize(
    ("view", "pictures"),
    [("bucket", 2), ("roads", 2), ("run", 2), ("walk", 2), ("jobs", 2), ("stack", 1)],
)
def test_every_picture_is_saved(open_page, view, pictures, tmp_path):
    seen = open_page(f"{view}?hints=0&lang=en")
    for kind, begins in (("SVG", b"<svg xmlns="), ("PNG", b"\x89PNG")):
        buttons = seen.get_by_role("button", name=f"Save the picture as {kind}").all()
        assert len(buttons) == pictures
        for k, button in enumerate(buttons):
            with seen.expect_download() as waited:
                button.click()
            waited.value.save_as(tmp_path / f"{kind}{k}")
            assert (tmp_path / f"{kind}{k}").read_bytes().startswith(begins)
    assert b"<title>" in (tmp_path / "SVG0").read_bytes()
    assert len({(tmp_path / f"SVG{k}").read_bytes() for k in range(pictures)}) == pictures


@pytest.mark.parametrize("view", VIEWS)
def test_one_file_opens_without_a_server(open_page, view, tmp_path):
    state = {"hints": "0", "lang": "en"}
    text = one_file(asked(view, state), state_text(view, state))
    assert len(text.encode()) < 400_000
    file = tmp_path / "page.html"
    file.write_text(text, "utf-8")
    seen = open_page(f"{view}?hints=0&lang=en", where=file.as_uri(), offline=True)
    assert seen.locator(".sentence").inner_text()
    links = seen.locator("nav a").all_inner_texts()
    assert len(links) == len({view, "bucket"})  # no way to what the file does not hold


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_first_visit_explains_the_view(open_page, view, lang):
    seen = open_page(f"{view}?lang={lang}")
    hints = seen.locator(".hints li").all_inner_texts()
    assert len(hints) == 3
    assert not [hint for hint in hints if hint.startswith("hint")]
    seen.locator(".hints button").click()
    seen.reload()
    seen.wait_for_selector(LOADED[view])
    assert not seen.locator(".hints").count()


def test_without_motion_nothing_plays_by_itself(open_page):
    seen = open_page("bucket?hints=0&lang=en", reduced_motion="reduce")
    before = seen.locator("canvas").get_attribute("aria-label")
    time.sleep(0.3)
    assert seen.locator("canvas").get_attribute("aria-label") == before


@pytest.mark.parametrize("view", ["roads", "stack"])
def test_what_the_server_refuses_is_said(browser, address, view):
    with browser.new_context() as context:
        seen = context.new_page()
        said = {"status": 400, "json": {"error": "<b>"}}
        seen.route(f"**/api/{view}*", lambda route: route.fulfill(**said))
        seen.goto(f"{address}#{view}?lang=en")
        alert = seen.get_by_role("alert")
        assert alert.inner_text() == "This cannot be shown: <b>"


@pytest.mark.parametrize("width", [380, 1200])
def test_the_bucket_is_seen_at_every_width(open_page, width):
    """Its water is a line across all staves, in the colour of what is added."""
    seen = open_page("bucket?hints=0&lang=en&theme=light", width)
    found = seen.evaluate(
        "() => { const c = document.querySelector('canvas'), r = c.width / c.clientWidth;"
        " const x = (c.clientWidth > 720 ? c.clientWidth - 118 : c.clientWidth / 2) * r;"
        " const data = c.getContext('2d').getImageData(Math.floor(x), 0, 1, c.height).data;"
        " let n = 0; for (let i = c.clientWidth > 720 ? 0 : Math.floor(300 * r); i < c.height; i++)"
        " n += data[4 * i] === 10 && data[4 * i + 1] === 91 && data[4 * i + 2] === 184; return n }"
    )
    assert found >= 2
