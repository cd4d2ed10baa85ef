"""The page in a real browser: it shows what the verifier finds, by mouse and by keyboard."""

import re
import time

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import roundelay as rl
from roundelay.show import frames
from roundelay.web.page import page as one_file
from roundelay.web.states import asked, state_text

WAIT = 60_000
"""Milliseconds after which what should come is missing."""


@pytest.fixture
def tab(browser):
    """A fresh page, in which nothing may go wrong unseen."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    made = context.new_page()
    made.set_default_timeout(WAIT)
    wrong = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    yield made
    context.close()
    assert not wrong


def opened(tab, address, state):
    tab.goto(f"{address}#{state}")
    tab.wait_for_selector(".clock:not(:empty)")
    return tab


def cards(tab):
    """What the table says that every card holds."""
    rows = tab.locator(".tables .scroll").nth(1).locator("tbody tr")
    return [row.locator("td").all_inner_texts() for row in rows.all()]


def until(tab, expression):
    """Wait until JavaScript is true; playwright's own way is stopped by the page's policy."""
    end = time.monotonic() + WAIT / 1000
    while not tab.evaluate(expression):
        assert time.monotonic() < end, expression
        tab.wait_for_timeout(20)


def state_of(tab):
    return tab.evaluate("location.hash")


def clock(tab):
    return tab.locator(".clock").inner_text()


@pytest.mark.parametrize(
    ("name", "n"), [("ring", 4), ("halving_doubling", 8), ("star", 5), ("switch", 4)]
)
def test_plays_to_the_end_that_the_verifier_finds(tab, address, name, n):
    opened(tab, address, f"player?algorithm={name}&n={n}&speed=16&tables=1&hints=0")
    schedule = rl.build(f"all_reduce/{name}", n)
    tab.locator("button.play").click()
    k = schedule.steps
    until(tab, f"document.querySelector('.clock').textContent === '{k} / {k}'")
    tables = "[...document.querySelectorAll('.tables caption')]"
    until(tab, f"{tables}.some(c => c.textContent.endsWith('after step {k}'))")
    assert rl.verify(schedule).ok
    last = frames(schedule)[-1]
    wanted = [
        [f"{count}/{n}" + " ✓" * bool(done) for count, done in zip(*row, strict=True)]
        for row in zip(last.holds.sum(axis=-1), last.complete, strict=True)
    ]
    assert cards(tab) == wanted
    assert np.all(last.complete[:n])
    assert "every rank holds" in tab.locator(".sentence").inner_text()


def test_steps_by_keyboard(tab, address):
    opened(tab, address, "player?n=4&hints=0")
    for key, at in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 6),
                    ("ArrowRight", 6), ("Home", 0), ("ArrowLeft", 0)):  # fmt: skip
        tab.keyboard.press(key)
        assert clock(tab) == f"{at} / 6"
    tab.keyboard.press("+")
    assert tab.locator(".rate").inner_text() == "2×"
    tab.keyboard.press("-")
    tab.keyboard.press("-")
    assert tab.locator(".rate").inner_text() == "0.5×"
    tab.keyboard.press(" ")
    assert tab.locator("button.play").inner_text() == "Pause"
    tab.keyboard.press(" ")
    assert tab.locator("button.play").inner_text() == "Play"


def test_everything_is_reached_by_tab(tab, address):
    opened(tab, address, "player?n=4&hints=0&against=star&tables=1&at=1")
    reached = set()
    for _ in range(80):
        tab.keyboard.press("Tab")
        reached.add(
            tab.evaluate(
                "(e => e.getAttribute('aria-label') || e.innerText || e.tagName)"
                "(document.activeElement)"
            )
        )
    for name in ("Play", "One step on", "Position", "Save the picture as SVG", "Break it"):
        assert name in reached
    assert any(name.startswith("Leave out the move") for name in reached)


def test_a_link_holds_the_whole_state(tab, browser, address):
    opened(tab, address, "player?n=6&algorithm=star&against=ring&speed=4&hints=0")
    tab.keyboard.press("ArrowRight")
    tab.locator("details summary").click()
    tab.wait_for_selector(".tables table")
    until(tab, "location.hash.includes('tables=1')")
    again = browser.new_page(locale="en-GB")
    opened(again, address, state_of(tab).removeprefix("#"))
    assert clock(again) == clock(tab) == "1 / 10"
    assert state_of(again) == state_of(tab)
    assert again.locator(".rate").inner_text() == "4×"
    assert again.locator(".panel h2").all_inner_texts() == ["all_reduce/star", "all_reduce/ring"]
    again.wait_for_selector(".tables table")
    assert (
        again.locator(".sentence").all_inner_texts() == tab.locator(".sentence").all_inner_texts()
    )
    again.close()


def test_choosing_changes_the_picture_and_back_returns(tab, address):
    opened(tab, address, "player?n=4&hints=0")
    tab.get_by_label("Algorithm").select_option("star")
    tab.wait_for_selector("h2:text-is('all_reduce/star')")
    tab.get_by_role("spinbutton", name="Ranks").fill("7")
    tab.get_by_role("spinbutton", name="Ranks").press("Enter")
    until(tab, "location.hash.includes('n=7')")
    tab.get_by_label("Cluster").select_option("dgx-h100")
    until(tab, "document.querySelector('.clock')?.textContent.includes('us')")
    assert tab.get_by_label("Nodes").input_value() == "1"  # seven of the eight cards of a node
    tab.get_by_role("spinbutton", name="Ranks").fill("9")
    tab.get_by_role("spinbutton", name="Ranks").press("Enter")
    until(tab, "location.hash.includes('dgx-h100:2')")
    tab.go_back()
    tab.go_back()
    until(tab, "document.querySelector('.clock')?.textContent === '0 / 2'")


def test_a_move_left_out_is_found(tab, address):
    opened(tab, address, "player?n=4&hints=0&tables=1")
    tab.keyboard.press("ArrowRight")
    tab.get_by_role("button", name="Leave out the move of piece 0 from rank 0 to rank 1").click()
    said = (
        "Left out in step 1: piece 0 from rank 0 to rank 1. The verifier finds: After 6 steps "
        "4 of 16 places are wrong. The first is piece 0 of rank 0, which lacks what rank 0 brought."
    )
    assert tab.get_by_role("alert").inner_text() == said
    tab.keyboard.press("End")
    assert "places are wrong" in tab.locator(".sentence").inner_text()
    tab.get_by_role("button", name="Put the move back").click()
    tab.wait_for_selector("[role=alert]", state="detached")


def test_formulas_are_written_as_people_write_them(tab, address):
    opened(tab, address, "player?n=8&algorithm=halving_doubling&hints=0")
    formulas = tab.locator(".formula").all_inner_texts()
    assert formulas[0] == "2·⌊log₂ n⌋ + 2·[n > p]"
    assert not [text for text in formulas if "_" in text]
    key = tab.locator(".formulas").inner_text()
    assert "n is the number of ranks, 8, and S the size of the data, 1 MiB" in key
    assert "p is the largest power of two up to n, 8" in key
    assert "[a > b] counts 1 where a is larger than b, else 0" in key
    assert "rounded up" not in key


def test_pointing_at_a_piece_tells_its_way(tab, address):
    opened(tab, address, "player?n=4&hints=0&at=3")
    box = tab.locator(".stage canvas").bounding_box()
    found = set()
    for i in range(12):
        tab.mouse.move(box["x"] + box["width"] / 2 - 60 + 10 * i, box["y"] + 85)
        if tab.locator(".tip").is_visible():
            found.add(tab.locator(".tip").inner_text())
    held = r"Piece \d on rank 0: the numbers of 4 of 4 ranks are in it\."
    way = held + r" It came (rank \d → ){3}rank 0\."
    assert any(re.fullmatch(way, text) for text in found), found


def test_the_keyboard_tells_a_pieces_way(tab, address):
    """With the same words as pointing at it, also to who hears the page."""
    opened(tab, address, "player?n=4&hints=0&at=4")
    tab.locator(".cursor").focus()
    live, tip = tab.locator("#live"), tab.locator(".tip")
    tab.keyboard.press("ArrowRight")
    assert live.inner_text() == "Piece 1 on rank 0: the numbers of 4 of 4 ranks are in it."
    assert not tip.is_visible()
    tab.keyboard.press("PageUp")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    way = (
        "Piece 3 on rank 3: the numbers of 4 of 4 ranks are in it. It came "
        "rank 3 → rank 0 → rank 1 → rank 2 → rank 3."
    )
    assert tip.inner_text() == live.inner_text() == way
    box, cell = tab.locator(".stage").bounding_box(), tab.locator(".cursor").bounding_box()
    tab.keyboard.press("Escape")
    assert not tip.is_visible()
    tab.mouse.move(cell["x"] + cell["width"] / 2, cell["y"] + cell["height"] / 2)
    assert tip.inner_text() == way
    tab.mouse.move(box["x"], box["y"] - 5)
    tab.keyboard.press(" ")
    tab.keyboard.press(",")
    assert clock(tab) == "3 / 6"
    assert tip.inner_text() == (
        "Piece 3 on rank 3: the numbers of 1 of 4 ranks are in it. They are its own."
    )


def test_the_keyboard_reaches_every_card_and_switch(tab, address):
    opened(tab, address, "player?n=4&algorithm=switch&hints=0&at=1")
    tab.locator(".cursor").focus()
    told = []
    for _ in range(6):
        tab.keyboard.press("PageDown")
        told.append(tab.locator("#live").inner_text().split(":")[0])
    places = ("rank 1", "rank 2", "rank 3", "switch 0", "rank 0", "rank 1")
    assert told == [f"Piece 0 on {place}" for place in places]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1600])
@pytest.mark.parametrize("state", ["n=8&against=star&tables=1", "n=500", "n=4&drop=1.0.1.0"])
def test_every_look(tab, address, lang, theme, width, state):
    """No sideways scrolling, no word left in the other language, no fault that axe knows of."""
    tab.set_viewport_size({"width": width, "height": 900})
    opened(tab, address, f"player?{state}&lang={lang}&theme={theme}&at=1")
    wide = tab.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert tab.evaluate("document.documentElement.lang") == ("zh-Hans" if lang == "zh" else "en")
    ground = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (theme == "light")
    chinese = re.search("[一-鿿]", tab.locator(".sentence").first.inner_text())
    assert bool(chinese) == (lang == "zh")
    found = Axe().run(tab)
    assert found.violations_count == 0, found.generate_report()


def test_the_language_and_colours_are_remembered(tab, address):
    opened(tab, address, "player?n=4")
    assert tab.locator(".hints li").count() == 3
    tab.get_by_role("button", name="Got it").click()
    tab.get_by_role("button", name="中文").click()
    tab.get_by_role("button", name="深色").click()
    assert tab.locator(".hints").count() == 0
    tab.goto(f"{address}?again#player?n=5")
    tab.wait_for_selector(".clock:not(:empty)")
    assert tab.locator(".hints").count() == 0
    assert tab.evaluate("document.documentElement.lang") == "zh-Hans"
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_language_follows_the_browser(browser, address):
    made = browser.new_page(locale="zh-CN")
    opened(made, address, "player")
    assert made.evaluate("document.documentElement.lang") == "zh-Hans"
    made.close()


def test_less_motion_means_whole_steps(browser, address):
    made = browser.new_page(reduced_motion="reduce", locale="en-GB")
    opened(made, address, "player?n=4&hints=0&speed=4")
    pixels = "document.querySelector('.stage canvas').toDataURL()"
    before = made.evaluate(pixels)
    seen = made.evaluate(
        "new Promise(done => { const seen = new Set(); document.querySelector('.play').click();"
        f"const look = () => {{ seen.add({pixels});"
        "if (document.querySelector('.clock').textContent === '6 / 6') done([...seen]);"
        "else requestAnimationFrame(look); }; look(); })"
    )
    assert before in seen
    assert len(seen) <= 7
    made.close()


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
@pytest.mark.parametrize("state", ["n=8&at=3", "n=200&at=3"])
def test_pictures_are_saved(tab, address, kind, state):
    opened(tab, address, f"player?{state}&hints=0")
    with tab.expect_download() as saved:
        tab.get_by_role("button", name=f"Save the picture as {kind}").click()
    with open(saved.value.path(), "rb") as file:
        found = file.read()
    if kind == "PNG":
        assert found.startswith(b"\x89PNG")
        assert len(found) > 5000
    else:
        assert found.startswith(b"<svg")
        assert b"<title>all_reduce/ring" in found


def test_groups_step_and_tell_a_cards_part(tab, address):
    opened(tab, address, "player?n=16384&hints=0")
    assert clock(tab) == "0 / 32,766"
    tab.keyboard.press("ArrowRight")
    until(tab, "document.querySelector('.sentence').textContent.startsWith('Step 1:')")
    assert "the next rank" in tab.locator(".sentence").inner_text()
    tab.locator(".transport").get_by_role("spinbutton", name="Rank").fill("7")
    tab.locator(".transport").get_by_role("spinbutton", name="Rank").press("Enter")
    tab.wait_for_selector("caption:text-is('Rank 7 in step 1 (moves: 2)')")
    until(tab, "location.hash.includes('rank=7')")


def test_groups_play_to_the_end(tab, address):
    """Beside each other, on one clock; what is said at the end is what the last steps do."""
    opened(tab, address, "player?n=100&against=halving_doubling&speed=16&hints=0")
    tab.locator("button.play").click()
    until(tab, "document.querySelector('.clock').textContent === '198 / 198'")
    until(tab, "document.querySelector('.sentence').textContent.startsWith('Step 198:')")
    assert tab.locator("button.play").inner_text() == "Play"
    for panel, name in zip(tab.locator(".panel").all(), ("ring", "halving_doubling"), strict=True):
        steps = rl.build(f"all_reduce/{name}", 100).steps
        assert panel.locator("dd").first.inner_text() == f"{steps} of {steps}"
        assert f"Step {steps}: " in panel.locator(".sentence").inner_text()
    until(tab, "location.hash.includes('at=198')")


def test_long_schedules_can_be_played_faster(tab, address):
    opened(tab, address, "player?n=1024&hints=0&speed=16")
    tab.keyboard.press("+")
    assert tab.locator(".rate").inner_text() == "64×"
    tab.keyboard.press(" ")
    until(tab, "parseInt(document.querySelector('.clock').textContent) > 60")
    tab.keyboard.press(" ")
    at = int(clock(tab).split(" /")[0])
    until(tab, f"document.querySelector('.sentence').textContent.startsWith('Step {at + 1}:')")
    opened(tab, address, "player?n=4&hints=0&speed=16")
    tab.keyboard.press("+")
    assert tab.locator(".rate").inner_text() == "16×"


def test_an_error_is_told_and_one_can_go_on(browser, address):
    made = browser.new_page(locale="en-GB")
    made.goto(f"{address}#player?algorithm=nothing")
    assert "unknown algorithm" in made.get_by_role("alert").inner_text()
    made.get_by_role("button", name="Start again").click()
    made.wait_for_selector("h2:text-is('all_reduce/ring')")
    made.close()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_one_file_opens_from_the_disk(browser, tmp_path, lang):
    state = {"n": "8", "against": "star", "lang": lang}
    file = tmp_path / "ring.html"
    file.write_text(one_file(asked("player", state), state_text("player", state)), "utf-8")
    context = browser.new_context(offline=True, locale="en-GB")
    made = context.new_page()
    requests, wrong = [], []
    made.on("request", lambda asked: requests.append(asked.url))
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    made.goto(file.as_uri())
    made.wait_for_selector(".clock:not(:empty)")
    assert made.locator(".panel").count() == 2
    made.keyboard.press("End")
    assert clock(made) == "14 / 14"
    assert not [url for url in requests if not url.startswith(("file:", "data:", "blob:"))]
    assert not wrong
    context.close()


PENS = """
async ([name, n, step, width]) => {
  const {geometryOf} = await import("/static/player/geometry.js");
  const {drawCards, drawWays, drawPieces} = await import("/static/player/draw.js");
  const {Model} = await import("/static/player/model.js");
  const data = await (await fetch(`/api/player?algorithm=${name}&n=${n}`)).json();
  const letters = [String(data.pieces.length - 1).length, 1 + 2 * String(n).length];
  const g = geometryOf(data.places, data.layout, data.pieces.length, width, 486, letters);
  const [model, texts, none] = [new Model(data), [], () => {}];
  model.goTo(step);
  const pen = {box: none, path: none, dot: none,
    text: (x, y, text, size) => texts.push([text, size])};
  drawCards(pen, model, g, {}, (key, of) =>
    key === "placeRank" ? `rank ${of.rank}` : `piece ${of.name}`);
  const cards = [...texts];
  drawPieces(pen, model, g, {}, step + 1, 0.5);
  const {wayOf, along} = await import("/static/player/geometry.js");
  const touches = (a, b, i) => {
    const [x, y] = along(wayOf(g, a, b), (i + 1) / 21);
    return g.centre.some(([u, v], at) => at !== a && at !== b
      && Math.abs(x - u) < g.side / 2 && Math.abs(y - v) < g.side / 2);
  };
  const over = data.states.flatMap((state) => state.moves).filter(([a, b]) =>
    [...Array(20).keys()].some((i) => touches(a, b, i))).length;
  return {cards, flying: texts.slice(cards.length), over, side: g.side, label: g.label};
}
"""


@pytest.mark.parametrize(("n", "width"), [(4, 1300), (4, 356), (8, 1300), (8, 660), (16, 1300)])
def test_what_flies_has_a_name_that_the_cards_have(tab, address, n, width):
    """And a bare number on a piece is its name, not how much is in it."""
    opened(tab, address, "player?hints=0")
    drawn = tab.evaluate(PENS, ["ring", n, 1, width])
    names = {re.sub("piece ", "", text) for text, _ in drawn["cards"]}
    assert {text for text, _ in drawn["flying"]} == {str(k) for k in range(n)} <= names
    assert all(size >= 7 for _, size in drawn["cards"])
    if (n, width) != (16, 1300):
        counted = [text for text, _ in drawn["cards"] if re.fullmatch(rf"\d/{n}", text)]
        assert counted.count(f"2/{n}") == n
        assert counted.count(f"1/{n}") == n * n - n


@pytest.mark.parametrize(("name", "width"), [("ring", 1300), ("ring", 660), ("double_tree", 660)])
def test_64_cards_have_their_numbers(tab, address, name, width):
    opened(tab, address, "player?hints=0")
    drawn = tab.evaluate(PENS, [name, 64, 5, width])
    assert {text for text, _ in drawn["cards"]} >= {str(rank) for rank in range(64)}
    assert all(size >= 8 for _, size in drawn["cards"])


@pytest.mark.parametrize(("name", "n"), [("halving_doubling", 8), ("double_tree", 8),
                                         ("double_tree", 64), ("ring", 64)])  # fmt: skip
def test_ways_pass_over_no_card(tab, address, name, n):
    opened(tab, address, "player?hints=0")
    assert tab.evaluate(PENS, [name, n, 1, 1300])["over"] == 0


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_newcomer_is_told_what_there_is_to_see(tab, address, lang):
    opened(tab, address, f"player?hints=0&lang={lang}")
    told = tab.locator(".panel").inner_text()
    known = {
        "en": ("cut into 4 pieces", "piece 1 of every rank with piece 1 of all the others",
               "A rank is one card", "of 4 ranks, the numbers of 1 are in it", "next clockwise",
               "n is the number of ranks, 4, and S the size of the data"),
        "zh": ("切成 4 个分块", "每个 rank 的分块 1 与其他所有 rank 的分块 1 相加",
               "一个 rank 就是一张卡", "4 个 rank 中，目前有 1 个的数在其中", "顺时针",
               "S 是数据量"),
    }  # fmt: skip
    for words in known[lang]:
        assert words in told
    halves = tab.locator(".parts").inner_text().split()
    assert halves[-1] == "all-gather"
    assert ("全收集" in halves) is (lang == "zh")
    for step, half in ((1, "reduce-scatter"), (4, "all-gather")):
        opened(tab, address, f"player?hints=0&lang={lang}&at={step}")
        assert half in tab.locator(".part-says").inner_text()
        words = tab.locator(".panel").inner_text().lower()
        assert ("card" in words or "卡" in words) is False


@pytest.mark.parametrize(("state", "shown"), [
    ("at=1.5&n=4", "2 / 6"), ("at=-3&n=4", "0 / 6"), ("at=x&n=4", "0 / 6"),
    ("at=1e99&n=4", "6 / 6"), ("at=1.5&n=100", "2 / 198"), ("n=&at=", "0 / 6"),
])  # fmt: skip
def test_odd_places_on_the_clock_are_the_nearest(tab, address, state, shown):
    opened(tab, address, f"player?hints=0&{state}")
    assert clock(tab) == shown


@pytest.mark.parametrize("view", ["player", "cluster", "curves"])
@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString"])
def test_names_that_javascript_knows_are_unknown(browser, address, view, name):
    made = browser.new_page(locale="en-GB")
    made.goto(f"{address}#{view}?collective={name}&hints=0")
    assert name in made.get_by_role("alert").inner_text()
    assert "unknown" in made.get_by_role("alert").inner_text()
    made.close()


def test_the_picture_is_in_sight_on_a_phone(tab, address):
    tab.set_viewport_size({"width": 380, "height": 760})
    opened(tab, address, "player")
    box = tab.locator(".stage").bounding_box()
    assert box["y"] < 500
    assert tab.locator(".hints").bounding_box()["y"] > box["y"]


@pytest.mark.parametrize("drop", ["2.4.1.0", "1.0.4.0"])
def test_a_broken_switch_is_told_in_the_pages_words(tab, address, drop):
    """A left out move that makes a later step impossible, and one that leaves a place empty."""
    opened(tab, address, f"player?algorithm=switch&hints=0&at=9&drop={drop}")
    said = tab.get_by_role("alert").inner_text()
    assert not re.search("chunk|round|REDUCE", said)
    assert ("becomes impossible" in said) is (drop == "1.0.4.0")
