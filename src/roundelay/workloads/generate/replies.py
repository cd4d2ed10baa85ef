"""What is said over HTTP: JSON, errors as OpenAI's API has them, and figures for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ...errors import RoundelayError
from .asked import Refused
from .replicas import Full, Replicas

if TYPE_CHECKING:
    from starlette.responses import Response


def json_reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as the body of an answer."""
    from starlette.responses import Response

    return Response(msgspec.json.encode(value), status, headers, "application/json")


def event(value: Any) -> bytes:
    """A value as a part of a stream."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def error_of(error: RoundelayError) -> tuple[dict[str, Any], int]:
    """What a client is told of an error, and the status of HTTP."""
    if isinstance(error, Full):
        return _told(str(error), "rate_limit_error"), 429
    if isinstance(error, Refused) or type(error) is RoundelayError:
        return _told(str(error)), getattr(error, "status", 400)
    return _told(str(error), "server_error"), 503


def refusal(error: RoundelayError) -> Response:
    """The answer where there is none."""
    found, status = error_of(error)
    return json_reply(found, status, {"Retry-After": "1"} if status in (429, 503) else None)


async def no_such(request: Any, error: Any) -> Response:
    """Starlette's own refusals: a path or a method that there is not."""
    text = f"{request.method} {request.url.path:.200}: {error.detail}; expected such as POST " \
        "/v1/chat/completions, POST /v1/completions or GET /v1/models"  # fmt: skip
    return json_reply(_told(text), error.status_code, error.headers)


async def defect(request: Any, error: Exception) -> Response:
    """A defect of this program; the traceback goes into its log."""
    text = f"{type(error).__name__} in the server; its log has more"
    return json_reply(_told(text, "server_error"), 500)


def metrics(replicas: Replicas) -> str:
    """Figures as Prometheus reads them."""
    counts, lines = replicas.counts, []

    def add(name: str, kind: str, text: str, values: dict[str, float]) -> None:
        lines.append(f"# HELP roundelay_llm_{name} {text}\n# TYPE roundelay_llm_{name} {kind}")
        lines.extend(f"roundelay_llm_{name}{label} {value}" for label, value in values.items())

    add("requests_total", "counter", "Requests by how they ended.",
        {f'{{end="{end}"}}': n for end, n in counts.requests.items()})  # fmt: skip
    add("tokens_total", "counter", "Tokens made.", {"": counts.tokens})
    add("restarts_total", "counter", "Instances started again.", {"": counts.restarts})
    add("requests", "gauge", "Requests running or waiting, by instance.",
        {f'{{instance="{i}"}}': one.load for i, one in enumerate(replicas.instances)})  # fmt: skip
    add("running", "gauge", "Requests running, by instance.",
        {f'{{instance="{i}"}}': min(one.load, replicas.places)
         for i, one in enumerate(replicas.instances)})  # fmt: skip
    add("ready", "gauge", "Whether an instance is ready.",
        {f'{{instance="{i}"}}': int(bool(one.ready))
         for i, one in enumerate(replicas.instances)})  # fmt: skip
    return "\n".join(lines) + "\n"


def told(text: str, status: int) -> dict[str, Any]:
    """What a client is told that has not got as far as a request."""
    return _told(text, "server_error" if status >= 500 else "invalid_request_error")


def _told(text: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}
