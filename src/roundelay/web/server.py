"""The server of the page: static files, and the data of its views as JSON."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from ..errors import RoundelayError
from ..extras import need
from .charts import packed, script
from .data import answer
from .known import Known
from .runs import EXAMPLES
from .turns import Busy, Gone, Turns

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, and no script or style in the page itself."""
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
QUERY_LIMIT: Final = 2000
"""Bytes of a request's parameters."""
PACKED_LIMIT: Final = 2**22
"""Bytes up to which an answer is compressed; above, that takes longer than it saves."""
AT_ONCE: Final = 2
"""Answers worked out at one time, so that many requests don't add up their memory."""
WAITING: Final = 32
"""Requests that may wait for their answer to be worked out."""
SOON: Final = frozenset({"catalogue", "runs", "walks", "logs", "live", "charts"})
"""Views whose data is there soon, and does not wait for the others'."""
SLOWEST: Final = "curves", {"collective": "all_reduce", "cluster": "dgx-h100", "nodes": "4"}
"""The usual question that takes longest the first time; its answer is kept."""
HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine."""
TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


def need_web() -> None:
    """Raise where the packages of the page are missing.

    Raises:
        RoundelayError: with the extra that brings them.
    """
    need("web", "the page is served with it", "starlette", "uvicorn")


def make_app(hosts: Sequence[str] = HOSTS, known: Known | None = None) -> Starlette:
    """The application: ``/``, ``/static/...``, ``/plotly.min.js`` and ``/api/VIEW?...``.

    Args:
        hosts: names under which it may be asked, so that no other site's name leads to it.
        known: runs, walks and clusters that can be seen; without it, those that come with the page.

    Raises:
        RoundelayError: the packages of the extra `web` are missing.
    """
    need_web()
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.middleware.gzip import GZipMiddleware
    from starlette.routing import Route

    app = Starlette(
        routes=[
            Route("/", _index, methods=["GET"]),
            Route("/plotly.min.js", _charts, methods=["GET"]),
            Route("/static/{path:path}", _static, methods=["GET"]),
            Route("/api/{view}", _api, methods=["GET"]),
        ],
        middleware=[
            Middleware(_Outer, hosts=list(hosts)),
            Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4),
        ],
        lifespan=_ready,
        exception_handlers={HTTPException: _refused, Exception: _defect},
    )
    app.router.redirect_slashes = False
    app.state.known = known
    app.state.turns, app.state.soon = Turns(AT_ONCE, WAITING), Turns(AT_ONCE, WAITING)
    return app


@asynccontextmanager
async def _ready(app: Starlette) -> AsyncIterator[None]:
    """Work the slowest answers out beforehand, so that nobody waits for them."""
    ending = Event()
    Thread(target=_prepare, args=(app.state.known, ending), daemon=True).start()
    yield
    ending.set()  # what it has begun is wanted by nobody, and not waited for


def _prepare(known: Known | None, ending: Event) -> None:
    """What files give is what will be looked at; then the usual question that takes longest."""
    given = [name for name in (known.runs if known else ()) if name not in EXAMPLES]
    for question, parameters in [*(("run", {"name": name}) for name in given), SLOWEST]:
        if ending.is_set():
            return
        answer(question, parameters, known)


class _Outer:
    """Refuses other hosts' names, and puts the headers on every answer."""

    def __init__(self, app: Any, hosts: Sequence[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        asked = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if "*" in self.hosts or re.sub(r":\d*$", "", asked).lower() in self.hosts:
            await self.app(scope, receive, sent)
            return
        refused = _error(400, f"host {asked!r:.80}; expected {', '.join(self.hosts)}")
        await refused(scope, receive, sent)


def static(path: str) -> bytes | None:
    """A file of the page by its path below `static`; None where there is none."""
    at = files(__package__).joinpath("static")
    for name in path.split("/"):
        if name not in {child.name for child in at.iterdir()} if at.is_dir() else True:
            return None
        at = at.joinpath(name)
    return at.read_bytes() if at.is_file() else None


async def _index(request: Request) -> Response:
    return _file("index.html")


async def _charts(request: Request) -> Response:
    from starlette.responses import Response

    found = script()
    if found is None:
        return _error(404, "no package plotly; try: pip install 'roundelay[web]'")
    kept = {"Cache-Control": "max-age=3600"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        found, kept = packed(), kept | {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(found, media_type="text/javascript", headers=kept)


async def _static(request: Request) -> Response:
    return _file(request.path_params["path"])


def _file(path: str) -> Response:
    from starlette.responses import Response

    found = static(path)
    if found is None:
        return _error(404, f"no file {path!r:.80}")
    ending = path[path.rfind(".") :]
    kind = TYPES.get(ending) or mimetypes.guess_type(path)[0] or "application/octet-stream"
    return Response(found, media_type=kind, headers={"Cache-Control": "no-cache"})


async def _api(request: Request) -> Response:
    from starlette.responses import Response

    if len(request.url.query) > QUERY_LIMIT:
        return _error(414, f"parameters of more than {QUERY_LIMIT:,} bytes; expected fewer")
    keys = [key for key, _ in request.query_params.multi_items()]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        return _error(400, f"{', '.join(twice)!r:.80}: given more than once; expected once")
    asked, state = request.path_params["view"], request.app.state
    work = partial(answer, asked, dict(request.query_params), state.known)
    try:
        turns = state.soon if asked in SOON else state.turns
        found = await turns.do(work, request.is_disconnected)
    except (Busy, Gone) as error:
        return _error(503, str(error))
    except RoundelayError as error:
        return _error(400, str(error))
    headers = {"Cache-Control": "no-store"}
    if len(found) > PACKED_LIMIT:
        headers["Content-Encoding"] = "identity"  # and so it is sent as it is
    return Response(found, media_type="application/json", headers=headers)


def _refused(request: Request, error: Exception) -> Response:
    from starlette.exceptions import HTTPException

    assert isinstance(error, HTTPException)
    return _error(error.status_code, f"{error.detail}: {request.method} {request.url.path!r:.80}")


def _defect(request: Request, error: Exception) -> Response:
    return _error(500, f"a defect: {type(error).__name__}; please report it with this address")


def _error(status: int, text: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(refusal(text, status), status, headers={"Cache-Control": "no-store"})


def refusal(text: str, status: int) -> dict[str, str]:
    """What stands in an answer that says why there is none."""
    return {"error": text}
