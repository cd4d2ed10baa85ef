"""A browser, a server and pages of it, for tests of views."""

import re
import shutil
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from roundelay.web.server import make_app

WAIT = 30
"""Seconds after which what should come is missing."""
LOADED = {
    "bucket": ".figures dd",
    "roads": ".picture svg",
    "cluster": ".spot",
    "curves": ".plot .main-svg",
    "run": "canvas",
    "walk": ".picture svg",
    "jobs": ".spot",
    "stack": ".layer",
}
"""[view] what is there when it is drawn."""


@contextmanager
def serving(known=None, warm=False):
    """The page's address; `warm` as the command has it, which works some answers out beforehand."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(make_app(known=known), log_level="error",
                                               lifespan="on" if warm else "off"))  # fmt: skip
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        server.should_exit = True
        thread.join(20)


@contextmanager
def browsing():
    """A browser without a window."""
    with sync_playwright() as playing:
        found = playing.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield found
        found.close()


@pytest.fixture(scope="module")
def address():
    """Where the page is served."""
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    """A browser for all tests of a file."""
    with browsing() as found:
        yield found


@pytest.fixture
def open_page(browser, address):
    """A function that opens a state and waits until it is drawn; complaints of the page fail."""
    complaints, contexts = [], []

    def opened(state, width=1200, height=900, scheme="light", where=None, ready="", **settings):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, **settings
        )
        contexts.append(context)
        found = context.new_page()
        found.on("pageerror", lambda error: complaints.append(str(error)))
        found.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        found.goto((where or address) + "#" + state)
        found.wait_for_selector(ready or LOADED[state.partition("?")[0]], timeout=WAIT * 1000)
        return found

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def until(page, expression):
    """Wait until JavaScript is true; playwright's own way is stopped by the page's policy."""
    end = time.monotonic() + WAIT
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(20)


def usable(seen, texts):
    """Nothing that axe finds or that stands beside the page, and no text without its words.

    Args:
        seen: the page.
        texts: what the names of its view's texts begin with.
    """
    found = Axe().run(seen)
    assert found.violations_count == 0, found.generate_report()
    assert seen.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sensible(seen, texts)


def sensible(seen, texts):
    """No figure that is none, and no text without its words."""
    shown = seen.locator("main").inner_text()
    assert not re.search(rf"\b(?:{texts})[A-Z_]|undefined|NaN", shown), shown
