"""The page from Python: files, and what a notebook shows."""

import re
from html import unescape

import pytest

import roundelay as rl
from roundelay.web.states import VIEWS


@pytest.mark.parametrize("view", [v for v in VIEWS if v != "curves"])
def test_every_view_has_its_door(view, tmp_path):
    made = rl.show.page(view, lang="zh")
    path = made.save(tmp_path / "page.html")
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert f'"state":"{view}?' in text
    assert repr(made) == f"Page(view={view!r})"
    assert str(made).startswith(f"{view}: ")
    frame = made._repr_html_()
    assert unescape(re.search(r'srcdoc="([^"]+)"', frame)[1]) == text
    assert "allow-same-origin" not in frame


def test_the_state_is_what_was_asked():
    text = rl.show.page("cluster", cluster="dgx-a100:2", algorithm="rails", size="1G").text
    assert '"state":"cluster?cluster=dgx-a100:2&algorithm=rails&size=1G"' in text
    assert "&algorithm=rails&cluster=dgx-a100:2&size=1G" not in text.partition('"data"')[0]
    assert "cluster&algorithm=rails&cluster=dgx-a100:2&collective=all_reduce&size=1G" in text


@pytest.mark.parametrize(
    ("view", "state"),
    [("nothing", {}), ("player", {"n": 65}), ("cluster", {"cluster": "/etc/passwd"}),
     ("player", {"algorithm": "x"})],
)  # fmt: skip
def test_what_is_none_is_refused(view, state):
    with pytest.raises(rl.RoundelayError):
        rl.show.page(view, **state)


def test_it_opens_in_the_browser(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = rl.show.page("bucket").open()
    assert opened == [path.as_uri()]
    assert path.read_text("utf-8") == rl.show.page("bucket").text
    path.unlink()


def test_a_schedule_is_still_shown_as_text():
    assert rl.show(rl.build("all_reduce/star", 2)).startswith("all_reduce/star: 2 ranks")
