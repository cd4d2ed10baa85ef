"""Jobs over time in a browser."""

import json
from importlib.resources import files

import pytest
from views_browser import sensible, serving, until, usable

from roundelay.web.jobs import EXAMPLE, examples
from roundelay.web.known import known
from roundelay.web.page import page as one_file
from roundelay.web.states import asked, state_text

LOG = examples()[EXAMPLE]
OURS = LOG.policies[-1].events


def figure(seen, name):
    """A counter."""
    return seen.locator(f".figures div:has(dt:text-is('{name}')) dd").inner_text()


def cards_at(k):
    """Cards that jobs have after so many events of ours, by the record itself."""
    held = {}
    for event in OURS[:k]:
        if event.what == "start":
            held[event.job] = LOG.jobs[event.job].cards
        elif event.what in ("stop", "end"):
            del held[event.job]
    return len(held), sum(held.values())


def test_steps_go_through_all_events(open_page):
    """Forwards by key: the counters are those of the record; at the end all jobs are done."""
    seen = open_page("jobs?hints=0&lang=en&at=0")
    assert "all cards are free" in seen.locator(".sentence").inner_text()
    told, arrivals = 0, sorted(job.submit_s for job in LOG.jobs)
    for _ in range(45):
        seen.keyboard.press("ArrowRight")
        sentence = seen.locator(".sentence").inner_text()
        if " arrives. " in sentence:
            arrivals.pop(0)
        else:
            told += 1
        running, held = cards_at(told)
        assert figure(seen, "Jobs running") == str(running)
        assert figure(seen, "Cards that no job has") == f"{LOG.nodes * LOG.cards - held} / 256"
    waiting = len(LOG.jobs) - len(arrivals) - running - int(figure(seen, "Jobs done").split()[0])
    assert figure(seen, "Jobs waiting") == str(waiting)
    seen.keyboard.press("End")
    assert figure(seen, "Jobs done") == "40 / 40"
    assert figure(seen, "Cards that no job has") == "256 / 256"
    seen.keyboard.press("ArrowLeft")
    assert figure(seen, "Jobs done") == "39 / 40"
    seen.keyboard.press("Home")
    assert figure(seen, "Jobs done") == "0 / 40"


def test_it_plays_and_scrubs(open_page):
    seen = open_page("jobs?hints=0&lang=en&at=0&speed=16")
    seen.keyboard.press("Space")
    until(seen, "parseInt(document.querySelector('.clock').textContent) >= 5")
    seen.keyboard.press("Space")
    stopped = seen.locator(".clock").inner_text()
    seen.wait_for_timeout(300)
    assert seen.locator(".clock").inner_text() == stopped
    seen.locator(".scrub").fill("1000")
    assert figure(seen, "Jobs done") == "40 / 40"


def test_nodes_say_who_has_them(open_page):
    """After the last start of a job each node's button names it; choosing one shows its story."""
    k = next(i for i, e in enumerate(OURS) if e.what == "start" and len(e.nodes) == 8)
    event = OURS[k]
    at = 1 + k + sum(job.submit_s <= event.at_s for job in LOG.jobs)
    seen = open_page(f"jobs?hints=0&lang=en&at={at}")
    letter = chr(65 + event.job)
    labels = [spot.get_attribute("aria-label") for spot in seen.locator(".spot").all()]
    assert len(labels) == LOG.nodes
    named = [i for i, label in enumerate(labels) if f"job {letter}, 64 cards" in label]
    assert named == sorted(set(event.nodes))
    seen.locator(".spot").nth(named[-1]).focus()
    seen.keyboard.press("Enter")
    assert f"The story of job {letter}: 64 cards" in seen.locator("section h2").inner_text()
    pressed = seen.locator(".spot[aria-pressed=true]")
    assert pressed.count() == len(named)
    rows = seen.locator("section table tbody tr").all_inner_texts()
    assert [int(row.split("\t")[1]) for row in rows] == event.nodes
    assert rows[1].startswith("8–15")


def test_a_story_tells_failures_and_costs(open_page):
    """Of the job with most failures: each stop with what is lost, and a start with its price."""
    stops = [e for e in OURS if e.what == "stop" and e.reason in ("card", "switch", "host")]
    job = stops[0].job
    own = [e for e in OURS if e.job == job]
    seen = open_page(f"jobs?hints=0&lang=en&job={job}")
    items = seen.locator(".story li")
    assert items.count() == len(own) + 1
    text = seen.locator(".story").inner_text()
    assert text.count("to be done again") == sum(e.lost_s > 0 for e in own)
    assert text.count(" starts on ") == sum(e.what == "start" for e in own)
    items.last.get_by_role("button").click()
    assert " ends. " in seen.locator(".sentence").inner_text()
    seen.keyboard.press("n")
    assert f"job={job + 1}" in seen.url
    seen.keyboard.press("p")
    assert f"job={job}" in seen.url


def test_another_policy_stays_at_the_moment(open_page):
    seen = open_page("jobs?hints=0&lang=en&at=60")
    day = seen.locator(".sentence").inner_text().partition(":")[0]
    seen.get_by_label("Placed by").select_option("best_fit")
    seen.wait_for_selector(".spot")
    assert seen.locator(".sentence").inner_text().startswith(day)
    assert "policy=best_fit" in seen.url
    costly = next(i for i, e in enumerate(LOG.policies[1].events) if e.exchange > 1.3)
    event = LOG.policies[1].events[costly]
    at = 1 + costly + sum(job.submit_s <= event.at_s for job in LOG.jobs)
    dear = open_page(f"jobs?hints=0&lang=en&policy=best_fit&at={at}").locator(".sentence")
    assert f"{100 * (event.exchange - 1):.1f} % longer than the cheapest" in dear.inner_text()
    assert "its busiest link is" in dear.inner_text()


def test_a_deep_link_shows_the_same(open_page):
    first = open_page("jobs?hints=0&lang=en&theme=light&policy=first_fit&at=88&job=7&tables=1")
    again = open_page(first.evaluate("location.href").partition("#")[2])
    assert first.locator("main").inner_text() == again.locator("main").inner_text()
    assert first.screenshot() == again.screenshot()


@pytest.mark.parametrize(
    "odd", ["at=99999&job=4000", "at=-1&job=-3", "at=x&job=x", "policy=nobody", "speed=1e9"]
)
def test_odd_states_are_put_right(open_page, odd):
    sensible(open_page(f"jobs?hints=0&lang=en&{odd}"), "jobs")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1500])
def test_everybody_can_use_it(open_page, lang, scheme, width):
    seen = open_page(f"jobs?lang={lang}&tables=1", width=width, scheme=scheme)
    usable(seen, "jobs")
    seen.locator(".scrub").fill("1000")
    sensible(seen, "jobs")


def test_one_file_holds_it(open_page, tmp_path):
    file = tmp_path / "jobs.html"
    text = one_file(asked("jobs", {}), state_text("jobs", {}))
    assert len(text.encode()) < 400_000
    file.write_text(text, "utf-8")
    seen = open_page("", where=file.as_uri(), ready=".spot", offline=True)
    seen.keyboard.press("End")
    assert "40 / 40" in seen.locator(".figures").inner_text()


def test_a_file_of_ones_own(browser, tmp_path):
    """A thousand nodes, and half nodes."""
    data = json.loads(files("roundelay.web").joinpath("examples", "jobs.json").read_bytes())
    data["nodes"] = 1000
    data["jobs"][0] |= {"cards": 8, "block": 4}
    start = {"at_s": data["jobs"][0]["submit_s"], "what": "start", "job": 0, "nodes": [0, 999]}
    data["policies"] = [{"policy": "ours", "events": [start]}]
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(data))
    with serving(known(events=[file])) as address, browser.new_context() as context:
        seen = context.new_page()
        seen.goto(f"{address}#jobs?hints=0&lang=en&jobs=mine&at=2")
        seen.wait_for_selector(".spot")
        assert seen.locator(".spot").count() == 1000
        assert "job A, 8 cards" in seen.locator(".spot").last.get_attribute("aria-label")
        assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_few_nodes_under_a_large_leaf_take_no_room(browser, tmp_path):
    data = json.loads(files("roundelay.web").joinpath("examples", "jobs.json").read_bytes())
    data |= {"levels": [{"name": "leaf", "nodes": 32}, {"name": "spine", "nodes": 1024}]}
    data |= {"nodes": 32, "policies": data["policies"][:1]}
    for event in data["policies"][0]["events"]:
        event.pop("above", None)
    file = tmp_path / "flat.json"
    file.write_text(json.dumps(data))
    with serving(known(events=[file])) as address, browser.new_context() as context:
        seen = context.new_page()
        seen.goto(f"{address}#jobs?hints=0&lang=en&jobs=flat")
        seen.wait_for_selector(".spot")
        boxes = [spot.bounding_box() for spot in seen.locator(".spot").all()]
        low = max(box["y"] + box["height"] for box in boxes)
        picture = seen.locator(".spotted .picture svg").bounding_box()
        assert picture["y"] + picture["height"] - low < 60
        assert "%" not in "".join(seen.locator(".spotted svg text").all_text_contents())
