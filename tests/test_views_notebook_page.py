"""A view in a notebook's frame: it works without an address of its own."""

import pytest
from views_browser import browsing

import roundelay as rl


@pytest.mark.parametrize(
    ("view", "state", "loaded"),
    [("player", {"algorithm": "star", "n": 4}, ".clock:not(:empty)"),
     ("cluster", {"cluster": "dgx-h100:2"}, ".spot"),
     ("curves", {"cluster": "v100-pcie"}, ".plot .main-svg")],
)  # fmt: skip
def test_a_frame_of_a_notebook(view, state, loaded):
    frame = rl.show.page(view, lang="en", **state)._repr_html_()
    with browsing() as browser:
        seen = browser.new_page()
        wrong = []
        seen.on("pageerror", lambda error: wrong.append(str(error)))
        seen.set_content(f"<h1>A notebook</h1>{frame}")
        inner = seen.frame_locator("iframe")
        inner.locator(loaded).first.wait_for(timeout=30_000)
        inner.get_by_role("button", name="Dark").click()
        inner.locator(loaded).first.wait_for(timeout=30_000)
        assert inner.get_by_role("button", name="Light").is_visible()
        inner.get_by_role("link", name="Bucket").click()
        inner.locator(".figures dd").first.wait_for(timeout=30_000)
        assert seen.locator("h1").inner_text() == "A notebook"
        assert wrong == []
