"""Measure the page in Chromium: first picture, frames, steps, sliders, sizes, accessibility.

    python benchmarks/page.py [--write]

Needs the extras `web` and `page-test`, and chromium. The browser has no GPU. A run takes five
minutes, in the first of which a run of a million events is recorded (page_trace.py). With --write
the table goes to benchmarks/page.md.
"""

import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from page_trace import EVENTS, recorded
from report import report

import roundelay
from roundelay.web.known import known

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from views_browser import browsing, serving, until

RUNS = 5
VIEWS = {
    "player": ".clock:not(:empty)",
    "bucket": ".figures dd",
    "roads": ".picture svg",
    "cluster": ".spot",
    "curves": ".lines label",
    "run": ".lanes canvas[width]",
    "walk": ".picture svg",
    "jobs": ".spot",
    "stack": ".layer",
}
LONG = "run?hints=0&run=long"
PANNED = 2.0
"""Seconds."""
COUNTING = """() => { window.frames_seen = 0; const tick = () => { window.frames_seen += 1;
 requestAnimationFrame(tick); }; requestAnimationFrame(tick); }"""
FRAMES = """() => new Promise(done => { document.querySelector('button.play').click(); let k = 0;
 const begin = performance.now(); const tick = () => { k += 1; const t = performance.now() - begin;
 t < 2000 ? requestAnimationFrame(tick) : done(1000 * k / t); }; requestAnimationFrame(tick); })"""
SLIDE = """name => new Promise(done => { const s = document.querySelector('#slider-' + name);
 s.value = Number(s.value) + (Number(s.value) < Number(s.max) ? 1 : -1);
 const begin = performance.now(); s.dispatchEvent(new Event('input'));
 requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin))); })"""


def seconds(act):
    """How long something takes."""
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


class Page:
    """A fresh page for every measurement."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address

    def opened(self, state, loaded=None, where=None, **settings):
        """The page, and seconds until its picture is there."""
        page = self.browser.new_page(locale="en-GB", **settings)
        page.set_default_timeout(60_000)
        selector = loaded or VIEWS[state.partition("?")[0]]

        def go():
            page.goto(f"{where or self.address}#{state}")
            page.wait_for_selector(selector)

        return page, seconds(go)

    def first(self, state, loaded=None):
        """Seconds until a picture: the median of some runs, and the most."""
        found = []
        for _ in range(RUNS):
            page, took = self.opened(state, loaded)
            page.close()
            found.append(took)
        return found

    def slider(self, state, name):
        """Milliseconds of a slider's answer, to the frame after it."""
        page, _ = self.opened(state)
        page.wait_for_timeout(3000)  # what is fetched beforehand
        found = [page.evaluate(SLIDE, name) for _ in range(RUNS)]
        page.close()
        return found

    def steps(self):
        """Milliseconds of a step of 16,384 ranks."""
        page, _ = self.opened("player?n=16384&hints=0")
        found = []
        for step in range(1, RUNS + 1):
            page.evaluate("document.activeElement.blur()")
            found.append(1000 * seconds(lambda k=step: self._step(page, k)))
        page.close()
        return found

    def _step(self, page, step):
        page.keyboard.press("ArrowRight")
        until(page, f"document.querySelector('.counters dd').textContent.startsWith('{step} of')")

    def frames(self):
        """Frames a second of two players of 64 ranks."""
        page, _ = self.opened("player?n=64&against=halving_doubling&hints=0&speed=1")
        found = [page.evaluate(FRAMES)]
        page.close()
        return found

    def panning(self, closer):
        """Frames a second while a long run is dragged to and fro, so many keys closer than all."""
        page, _ = self.opened(LONG)
        for _ in range(closer):
            page.keyboard.press("+")
        box = page.locator(".lanes canvas").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + 30
        page.mouse.move(x, y)
        page.mouse.down()
        page.evaluate(COUNTING)
        begin = time.perf_counter()
        while (now := time.perf_counter() - begin) < PANNED:
            page.mouse.move(x + 250 * math.sin(3 * now), y)
        found = [page.evaluate("window.frames_seen") / (time.perf_counter() - begin)]
        page.close()
        return found

    def faults(self, view):
        """What axe finds in a view: both languages, light and dark, narrow and wide."""
        found = 0
        for lang, scheme, width in (("en", "light", 1400), ("zh", "dark", 1400),
                                    ("zh", "light", 390), ("en", "dark", 390)):  # fmt: skip
            page, _ = self.opened(f"{view}?lang={lang}&hints=0&tables=1", color_scheme=scheme,
                                  viewport={"width": width, "height": 900})  # fmt: skip
            found += Axe().run(page).violations_count
            page.close()
        return found


def long_run(browser, row):
    """Figures of a run of a million events; the first time it is opened is the most."""
    with tempfile.TemporaryDirectory() as folder:
        given = known([recorded(Path(folder, "long.timeline"))])
        with serving(given, warm=True) as address:
            page = Page(browser, address)
            row(f"run: {EVENTS:,} events, open", page.first(LONG), "s", "< 5 s", 2)
            for closer in (1, 4, 10):
                row(f"run: {EVENTS:,} events, moved, 1/{2**closer} seen", page.panning(closer),
                    "frames a second", ">= 30")  # fmt: skip


def figures():
    load = os.getloadavg()[0]
    rows = []

    def row(what, values, unit, target, digits=0):
        shown = f"{statistics.median(values):.{digits}f}", f"{max(values):.{digits}f}"
        rows.append(f"| {what} | {shown[0]} | {shown[1]} | {unit} | {target} |")
        print(rows[-1], file=sys.stderr, flush=True)

    with browsing() as browser:
        long_run(browser, row)
    with serving(warm=True) as address, browsing() as browser:
        page = Page(browser, address)
        page.opened("player?hints=0")[0].close()
        for view in VIEWS:
            row(f"{view}: first picture", page.first(f"{view}?hints=0"), "s", "< 1 s", 2)
        row("curves: the charts", page.first("curves?hints=0", ".plot .main-svg"), "s", "", 2)
        row("player: two of 64 ranks", page.frames(), "frames a second", ">= 50")
        row("player: 16,384 ranks, open", page.first("player?n=16384&hints=0"), "s", "< 2 s", 2)
        row("player: 16,384 ranks, a step", page.steps(), "ms", "< 200 ms")
        row("cluster: 16,384 cards, open",
            page.first("cluster?hints=0&cluster=dgx-h100:2048"), "s", "< 2 s", 2)  # fmt: skip
        for view, name in (("bucket", "n"), ("roads", "cores"), ("curves", "bandwidth"),
                           ("curves", "nodes")):  # fmt: skip
            row(f"{view}: the slider {name}", page.slider(f"{view}?hints=0", name), "ms",
                "< 100 ms")  # fmt: skip
        size = len(roundelay.show.page("player").text.encode()) / 1000
        row("one file, a ring of 8", [size], "KB", "< 400 KB")
        for view in VIEWS:
            row(f"{view}: faults that axe finds", [page.faults(view)], "", "0")
    return [
        f"- load of the machine before the run: {load:.1f}",
        "",
        f"Chromium without a GPU; {RUNS} runs each, frames and faults once. First pictures are",
        "from an empty cache, with the server on the same machine.",
        "",
        "| what | median | most | unit | target |",
        "|---|---|---|---|---|",
        *rows,
    ]


if __name__ == "__main__":
    report(__file__, "The page: figures", "", figures)
