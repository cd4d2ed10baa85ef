"""`roundelay serve`: the page, on this machine."""

from __future__ import annotations

import socket
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Timer

import click

from ..web.known import known
from ..web.named import name_of
from ..web.server import make_app
from ..web.states import state_text
from .base import Command, say
from .output import emit


@click.command(
    cls=Command,
    short_help="serve the page: watch the cards exchange",
    help="Serve the page on this machine and open it in the browser: the player of every "
    "algorithm, card by card; links, curves and more. Ctrl-C ends it.",
)
@click.option("--host", default="127.0.0.1",
              help="where to listen (default 127.0.0.1: this machine only)")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8765,
              help="on which port (default 8765; 0: any that is free)")  # fmt: skip
@click.option("--trace", "traces", multiple=True, type=click.Path(exists=True, path_type=Path),
              metavar="FILE", help="a trace of a real run to be seen, or a folder that "
              "ROUNDELAY_TRACE has filled; may be given several times")  # fmt: skip
@click.option("--walk", "walks", multiple=True, type=click.Path(exists=True, path_type=Path),
              metavar="FILE", help="a walk along a request to be seen, as roundelay walk --save "
              "writes it; may be given several times")  # fmt: skip
@click.option("--cluster", "files", multiple=True, type=click.Path(dir_okay=False, path_type=Path),
              metavar="FILE", help="a cluster file that may be chosen by its name; repeat it for "
              "more")  # fmt: skip
@click.option("--open/--no-open", "opens", default=True, help="open the browser, or don't")
def command(
    host: str, port: int, traces: tuple[Path, ...], walks: tuple[Path, ...],
    files: tuple[Path, ...], opens: bool, as_json: str | None,
) -> None:  # fmt: skip
    """Serve."""
    hosts = (host, "127.0.0.1", "localhost", "[::1]") if not _any(host) else ("*",)
    app = make_app(hosts, known(traces, walks, files))
    import uvicorn

    with _listening(host, port) as listener:
        shown = "127.0.0.1" if _any(host) else f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{listener.getsockname()[1]}/"
        if traces:
            url += f"#{state_text('run', {'run': name_of(traces[0])})}"
        elif walks:
            url += f"#{state_text('walk', {'walk': name_of(walks[0])})}"
        emit({"url": url}, as_json, lambda: say("the page is at {url} (Ctrl-C ends it)", url=url))
        if opens:
            opening = Timer(0.5, webbrowser.open, (url,))
            opening.daemon = True
            opening.start()
        config = uvicorn.Config(app, log_level="warning", access_log=False, limit_concurrency=64,
                                timeout_graceful_shutdown=2, server_header=False)  # fmt: skip
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def _any(host: str) -> bool:
    """Whether it listens under every name of this machine."""
    return host in ("0.0.0.0", "::", "")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=64)
