"""The cluster in a browser: the link that binds is found, looked at, and what crosses it told."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from views_browser import until

import roundelay as rl
from roundelay.simulate.nccl import predict
from roundelay.web.data.cluster import cluster
from roundelay.web.data.crossing import crossing
from roundelay.web.page import page as one_file
from roundelay.web.states import asked, state_text


def rows(seen, caption):
    table = seen.locator("table", has=seen.locator(f"caption:text-is('{caption}')"))
    return [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]


def test_the_binding_link_is_told_and_why(open_page):
    seen = open_page("cluster?hints=0&lang=en")
    said = seen.locator(".sentence").inner_text()
    assert said.startswith("The busiest link is NIC 7 of node 0, out, and 7 more are busy as long")
    assert "(NIC, out: 4; NIC, in: 4)" in said
    assert "496 MiB at 47.5 GB/s (Simple; line rate 50 GB/s) take 10.9 ms" in said
    assert "Next comes card 0 of node 0, out" in said
    kinds = rows(seen, "Links by kind, the busiest first")
    found = cluster()
    assert [row[1] for row in kinds][:2] == ["◆ 100 %", "◆ 100 %"]
    assert [row[4] for row in kinds] == [
        f"{load.alike} / {load.used} / {load.count}" for load in found.kinds
    ]


def test_rates_are_told_as_nccl_tests_counts_them(open_page):
    """And what NCCL would take, and that the ring leaves most network cards idle."""
    seen = open_page("cluster?hints=0&lang=en")
    told = seen.locator(".rates").inner_text()
    machine = rl.clusters.cluster("dgx-h100").scaled(4)
    found, predicted = cluster(), predict(machine, "all_reduce", 2**28)
    bus = 2 * 31 / 32
    assert f"busbw {float(f'{found.size / found.time * bus / 1e9:.3g}'):g} GB/s" in told
    assert f"NCCL would take its {predicted.algorithm} with {predicted.protocol}" in told
    assert f"busbw {float(f'{predicted.busbw / 1e9:.3g}'):g} GB/s, by prediction" in told
    assert "NIC, out: only 4 of 32 links carry anything" in told
    seen = open_page("cluster?hints=0&lang=en&algorithm=rails")
    assert "only" not in seen.locator(".rates").inner_text()
    assert seen.get_by_label("Parameters").is_visible()


def test_on_a_phone_the_mark_and_the_times_are_in_sight(open_page):
    seen = open_page("cluster?hints=0&lang=en", width=380)
    assert seen.locator(".picture svg text:text('◆')").count() == 8
    busy = seen.locator(".kinds tbody tr").first.locator("td, th").nth(2).bounding_box()
    assert busy["x"] + busy["width"] <= 380


def test_what_crosses_a_link_is_listed(open_page):
    seen = open_page("cluster?hints=0&lang=en")
    seen.get_by_role("button", name="NIC 7 of node 0, out", exact=True).click()
    seen.wait_for_selector("caption:text-is('Moves over NIC 7 of node 0, out')")
    found = crossing(link=71)
    listed = rows(seen, "Moves over NIC 7 of node 0, out")
    assert [row[:4] for row in listed] == [
        [str(step), f"card {src}", f"card {dst}", str(piece)]
        for step, src, dst, piece, *_ in found.moves
    ]
    assert "link=71" in seen.url
    assert seen.locator(".spot[aria-pressed=true]").count() == 1
    seen.locator(".spot[aria-pressed=true]").click()
    assert "link=" not in seen.url
    assert seen.get_by_text("Choose a link, in the picture").is_visible()


def test_by_keyboard_from_the_fabric_to_a_card(open_page):
    seen = open_page("cluster?hints=0&lang=en&cluster=dgx-h100:2048")
    way = seen.locator(".way")
    assert seen.locator(".spot[tabindex='0']").count() == 1
    for last in (2047, 255, 31, 3, 0, None):
        boxes = seen.locator(".spot[aria-label^='Look inside: nodes'], "
                             ".spot[aria-label^='Look inside: cards']")  # fmt: skip
        if last is None:
            break
        before = seen.url
        boxes.first.focus()
        seen.keyboard.press("Enter")
        until(seen, f"location.href !== {before!r} && "
              "!document.querySelector('.fabric').hasAttribute('aria-busy')")  # fmt: skip
    assert "card 0" in way.inner_text()
    assert "last=0" in seen.url
    seen.locator("main").focus()
    seen.keyboard.press("Escape")
    until(seen, "location.hash.includes('last=7')")
    seen.keyboard.press("b")
    seen.wait_for_selector("caption:text-is('Moves over NIC 7 of node 0, out')")


def test_arrow_keys_lead_from_link_to_link(open_page):
    seen = open_page("cluster?hints=0&lang=en")
    label = "document.activeElement.getAttribute('aria-label')"
    seen.locator(".spot").first.focus()
    first = seen.evaluate(label)
    seen.keyboard.press("ArrowDown")
    assert seen.evaluate(label) != first
    seen.keyboard.press("ArrowUp")
    assert seen.evaluate(label) == first
    for _ in range(3):
        seen.keyboard.press("ArrowRight")
    seen.keyboard.press("Enter")
    until(seen, "location.hash.includes('link=') || location.hash.includes('last=')")


def test_choices_change_the_picture(open_page):
    seen = open_page("cluster?hints=0&lang=en&link=71")
    seen.get_by_label("Algorithm").select_option("rails")
    until(seen, "document.querySelector('.body .soft').textContent.includes('rails')")
    assert "link=" not in seen.url
    seen.locator(".controls select").first.select_option("mi300x")
    until(seen, "document.querySelector('.body .soft').textContent.includes('MI300X')")
    assert "cluster=mi300x:4" in seen.url


def test_a_deep_link_shows_the_same(open_page):
    state = "cluster?hints=0&lang=en&theme=light&cluster=dgx-a100:4&first=8&last=15&link=3&tables=1"
    first = open_page(state)
    first.wait_for_selector(".crossing h2:has-text('card 3')")
    again = open_page(first.url.partition("#")[2])
    again.wait_for_selector(".crossing h2:has-text('card 3')")
    assert first.locator("main").inner_text() == again.locator("main").inner_text()
    assert first.locator(".picture").screenshot() == again.locator(".picture").screenshot()


@pytest.mark.parametrize(("lang", "scheme", "width"), [
    ("en", "light", 1400), ("zh", "dark", 1000), ("zh", "light", 360), ("en", "dark", 360)
])  # fmt: skip
@pytest.mark.parametrize(
    "state",
    ["", "&cluster=dgx-h100:2048&link=0", "&cluster=mi300x&first=3&last=3", "&cluster=v100-pcie",
     "&cluster=gb200-nvl72:4&first=0&last=71"],
)  # fmt: skip
def test_every_dress(open_page, state, lang, scheme, width):
    seen = open_page(f"cluster?hints=0&lang={lang}&tables=1{state}", width, scheme=scheme)
    seen.wait_for_selector(".tables table")
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    text = seen.locator("main").inner_text()
    labels = seen.evaluate("[...document.querySelectorAll('.spot')].map(s => s.title).join()")
    assert ("的" in text) is (lang == "zh")
    assert not re.search(r"undefined|NaN|(link|kind|fabric|busy)_|(cluster|crossing|kinds)[A-Z]",
                         text + labels)  # fmt: skip
    violations = Axe().run(seen).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in violations] == []


def test_what_is_refused_is_said_and_one_can_go_on(browser, address):
    with browser.new_context() as context:
        seen = context.new_page()
        for state, said in (("cluster=%3Cb%3E", "unknown cluster"), ("first=9&last=3", "expected"),
                            ("cluster=dgx-h100:9999", "1 to 2,048")):  # fmt: skip
            seen.goto(f"{address}?{len(said)}{state[0]}#cluster?lang=en&hints=0&{state}")
            assert said in seen.get_by_role("alert").inner_text()
        seen.get_by_role("button", name="Start again").click()
        seen.wait_for_selector(".spot")


def test_pictures_are_saved(open_page, tmp_path):
    seen = open_page("cluster?hints=0&lang=en")
    for kind, begins in (("SVG", b"<svg xmlns="), ("PNG", b"\x89PNG")):
        with seen.expect_download() as waited:
            seen.get_by_role("button", name=f"Save the picture as {kind}").first.click()
        waited.value.save_as(tmp_path / kind)
        assert (tmp_path / kind).read_bytes().startswith(begins)


def test_one_file_leads_to_the_busiest_link(open_page, tmp_path):
    state = {"hints": "0", "lang": "en", "cluster": "dgx-h100:2048", "algorithm": "rails"}
    text = one_file(asked("cluster", state), state_text("cluster", state))
    assert len(text.encode()) < 420_000  # of which a ring of 8 needs three quarters
    (tmp_path / "page.html").write_text(text, "utf-8")
    seen = open_page("", where=(tmp_path / "page.html").as_uri(), ready=".spot", offline=True)
    seen.get_by_role("button", name="Go to the busiest link").click()
    seen.wait_for_selector(".crossing table")
    assert "node 0" in seen.locator(".way").inner_text()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_first_visit_explains_the_view(open_page, lang):
    seen = open_page(f"cluster?lang={lang}")
    hints = seen.locator(".hints li").all_inner_texts()
    assert len(hints) == 3
    assert not [hint for hint in hints if hint.startswith("hint")]


def test_nothing_jumps_on_the_way_in(open_page):
    seen = open_page("cluster?hints=0&lang=en&cluster=dgx-h100:64")
    seen.evaluate(
        "() => { window.jumps = 0; new PerformanceObserver(list => { for (const e of"
        " list.getEntries()) if (!e.hadRecentInput) window.jumps += e.value; })"
        ".observe({type: 'layout-shift', buffered: true}); }"
    )
    assert seen.evaluate("window.jumps") < 0.1
