"""`roundelay serve`: the page, on this machine."""

from __future__ import annotations

import logging
import os
import sys
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path

import click

from ..patience import connections, impatient
from ..web.known import known
from ..web.named import name_of
from ..web.server import HEADERS, HOSTS, make_app, refusal
from ..web.states import state_text
from .base import Command, say
from .listening import EVERY, listen, listening_options
from .output import emit

MOST = 256
"""Connections at one time."""
GRACE = 1
"""Seconds that answers which are being sent have at the end."""


@click.command(
    cls=Command,
    short_help="serve the page: watch the cards exchange",
    help="Serve the page on this machine and open it in the browser: the player of every "
    "algorithm, card by card; links, curves and more. Ctrl-C ends it.",
)
@listening_options(8765)
@click.option("--trace", "traces", multiple=True, type=click.Path(exists=True, path_type=Path),
              metavar="FILE", help="a trace of a real run to be seen, or a folder that "
              "ROUNDELAY_TRACE has filled; may be given several times")  # fmt: skip
@click.option("--walk", "walks", multiple=True, type=click.Path(exists=True, path_type=Path),
              metavar="FILE", help="a walk along a request to be seen, as roundelay walk --save "
              "writes it; may be given several times")  # fmt: skip
@click.option("--jobs", "events", multiple=True, type=click.Path(exists=True, path_type=Path),
              metavar="FILE", help="jobs over time to be seen, as roundelay cluster-sim --events "
              "writes them; may be given several times")  # fmt: skip
@click.option("--cluster", "files", multiple=True, type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="a cluster file that may be chosen by its name; repeat it for "
              "more")  # fmt: skip
@click.option("--open/--no-open", "opens", default=True, help="open the browser, or don't")
def command(
    host: str, port: int, traces: tuple[Path, ...], walks: tuple[Path, ...],
    events: tuple[Path, ...], files: tuple[Path, ...], opens: bool, as_json: str | None,
) -> None:  # fmt: skip
    """Serve."""
    shown = f"[{host}]" if ":" in host else host.lower()
    hosts = ("*",) if host in EVERY else tuple(dict.fromkeys((shown, *HOSTS)))
    app = make_app(hosts, known(traces, walks, files, events))
    import uvicorn

    listener, url = listen(host, port)
    with listener:
        url += "/"
        if traces:
            url += f"#{state_text('run', {'run': name_of(traces[0])})}"
        elif walks:
            url += f"#{state_text('walk', {'walk': name_of(walks[0])})}"
        elif events:
            url += f"#{state_text('jobs', {'jobs': name_of(events[0])})}"
        emit({"url": url}, as_json, lambda: say("the page is at {url} (Ctrl-C ends it)", url=url))
        if opens:
            opening = threading.Timer(0.5, webbrowser.open, (url,))
            opening.daemon = True
            opening.start()
        config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False,
                                http=impatient(HEADERS, connections(MOST), refusal), ws="none",
                                timeout_graceful_shutdown=GRACE)  # fmt: skip
        ends = "graceful shutdown"  # which is told although it is wanted
        logging.getLogger("uvicorn.error").addFilter(lambda record: ends not in record.msg)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
    _end()


def _end() -> None:
    """End now, though an answer be worked out that nobody wants any more.

    Python would end beneath its thread, which native code does not survive quietly.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
