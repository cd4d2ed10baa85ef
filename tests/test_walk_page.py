"""A walk along a request in a browser."""

import json

import msgspec
import pytest
from views_browser import sensible, usable

from roundelay.web.known import known
from roundelay.web.page import page as one_file
from roundelay.web.states import asked, state_text
from roundelay.web.walks import EXAMPLE, examples


def test_keys_go_through_all_steps_of_all_tokens(open_page):
    seen = open_page("walk?hints=0&lang=en")
    walk = examples()[EXAMPLE]
    sentence, title = seen.locator(".sentence"), seen.locator("main h2").first
    assert "Somebody has pressed Enter" in sentence.inner_text()
    for step in walk.steps[1:]:
        seen.keyboard.press("ArrowRight")
        assert title.inner_text() == f"Token {step.token + 1} of 8"
        if step.name == "exchange":
            assert "61 all-reduces add them up" in sentence.inner_text()
    last = sentence.inner_text()
    seen.keyboard.press("ArrowRight")
    assert sentence.inner_text() == last
    seen.keyboard.press("Home")
    assert "Somebody has pressed Enter" in sentence.inner_text()
    seen.keyboard.press("End")
    assert sentence.inner_text() == last
    assert "A token takes 27.5 ms and needs 61 exchanges" in seen.locator("main").inner_text()


def test_a_deep_link_shows_the_same(open_page):
    first = open_page("walk?hints=0&lang=en&theme=light&token=3&step=2&tables=1")
    again = open_page(first.evaluate("location.href").partition("#")[2])
    assert first.locator("main").inner_text() == again.locator("main").inner_text()
    assert first.screenshot() == again.screenshot()
    assert len(first.locator("main table").nth(1).locator("tbody tr").all()) == 8


@pytest.mark.parametrize("odd", ["token=99&step=99", "token=-1&step=x", "token=1e9"])
def test_odd_states_are_put_right(open_page, odd):
    sensible(open_page(f"walk?hints=0&lang=en&{odd}"), "walk")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1500])
def test_everybody_can_use_it(open_page, lang, scheme, width):
    seen = open_page(f"walk?lang={lang}&step=6&tables=1", width=width, scheme=scheme)
    usable(seen, "walk")


def test_one_file_holds_it(open_page, tmp_path):
    file = tmp_path / "walk.html"
    file.write_text(one_file(asked("walk", {}), state_text("walk", {})), "utf-8")
    seen = open_page("", where=file.as_uri(), ready=".picture svg", offline=True)
    assert "Paris" in seen.locator("main .answer").inner_text()


def test_no_time_and_a_long_prompt_are_shown(open_page, tmp_path):
    """A share of nothing is none; of a long text as much as has room."""
    data = json.loads(msgspec.json.encode(examples()[EXAMPLE])) | {"prompt": "word " * 10_000}
    data |= {"token_us": 0.0, "wait_us": 5.0, "exchange_share": 0.0}
    (tmp_path / "odd.json").write_text(json.dumps(data))
    walks = known([], [tmp_path / "odd.json"], [])
    text = one_file(asked("walk", {"walk": "odd"}), "walk?walk=odd&hints=0&lang=en", walks)
    (tmp_path / "odd.html").write_text(text, "utf-8")
    seen = open_page("walk?walk=odd&hints=0&lang=en", where=(tmp_path / "odd.html").as_uri())
    assert "Infinity" not in seen.locator("main").inner_text()
    assert seen.evaluate("document.documentElement.scrollHeight") < 3000
