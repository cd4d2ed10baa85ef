"""The front over HTTP, as OpenAI's API has it: chat and completions, whole or streamed."""

from __future__ import annotations

import asyncio
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...errors import RoundelayError
from .answers import Answer, usage
from .asked import Chat, Refused, Text, read, requests
from .messages import Ask, Piece
from .replicas import Full, NoneReady, Replicas
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

BODY: Final = 1 << 20
"""Bytes of a request at most."""


def need_web() -> None:
    """Raise where the packages of the server are missing.

    Raises:
        RoundelayError: with the extra that brings them.
    """
    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise RoundelayError(
            f"no package {error.name}, and requests are served with it; try: "
            "pip install 'roundelay[llm]'"
        ) from None
    del starlette, uvicorn


class Service:
    """Answers requests.

    Attributes:
        replicas: that compute.
        tokenizer: of the model.
        context: tokens that prompt and answer may have together.
        model: its name.
    """

    def __init__(self, replicas: Replicas, tokenizer: Tokenizer, context: int, model: str) -> None:
        """For instances that are started with the application, and stopped with it."""
        self.replicas, self.tokenizer = replicas, tokenizer
        self.context, self.model = context, model

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions."""
        return await self._answer(request, Chat)

    async def text(self, request: Request) -> Response:
        """POST /v1/completions."""
        return await self._answer(request, Text)

    async def models(self, request: Request) -> Response:
        """GET /v1/models."""
        one = {"id": self.model, "object": "model", "created": 0, "owned_by": "roundelay"}
        return _json({"object": "list", "data": [one]})

    async def health(self, request: Request) -> Response:
        """GET /health: 200 while an instance is ready."""
        ready = [bool(instance.ready) for instance in self.replicas.instances]
        status = "ok" if all(ready) else "degraded" if any(ready) else "down"
        pids = [i.ready.pids if i.ready else [] for i in self.replicas.instances]
        found = {"status": status, "instances": [{"ready": bool(p), "pids": p} for p in pids]}
        return _json(found, 200 if any(ready) else 503)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics, as Prometheus reads it."""
        from starlette.responses import PlainTextResponse

        return PlainTextResponse(_metrics(self.replicas))

    async def _answer(self, request: Request, kind: type[Chat] | type[Text]) -> Response:
        try:
            asked = read(await _body(request), kind)
            asks = requests(asked, self.tokenizer, self.context, self.model)
            self.replicas.room(len(asks))
            if not any(instance.ready for instance in self.replicas.instances):
                raise NoneReady("no instance is ready; it is being started, so try again later")
            answer = Answer(_name(kind), self.model, kind is Chat)
            if asked.stream:
                return self._streamed(answer, asks, asked)
            return await self._whole(request, answer, asks)
        except RoundelayError as error:
            return _refusal(error)

    async def _whole(self, request: Request, answer: Answer, asks: Sequence[Ask]) -> Response:
        """The answer at once, unless the client goes before."""
        tasks = [asyncio.create_task(self._collect(ask)) for ask in asks]
        collecting, going = asyncio.gather(*tasks), asyncio.create_task(_gone(request))
        try:
            both: set[asyncio.Future[Any]] = {collecting, going}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not collecting.done():
                raise Refused("the client has gone", 499)
            found = collecting.result()
        finally:
            for task in (going, *tasks):
                task.cancel()
            await asyncio.gather(going, collecting, *tasks, return_exceptions=True)
        return _json(answer.whole(found, usage(asks, [last.made for _, last in found])))

    async def _collect(self, ask: Ask) -> tuple[str, Piece]:
        parts = []
        async with aclosing(self.replicas.ask(ask)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                parts.append(piece.text)
        return "".join(parts), piece

    def _streamed(self, answer: Answer, asks: Sequence[Ask], asked: Chat | Text) -> Response:
        """Events as tokens come; the client's going ends the requests."""
        from starlette.responses import StreamingResponse

        counts = asked.stream_options is not None and asked.stream_options.include_usage
        events = self._events(answer, asks, counts)
        return StreamingResponse(events, media_type="text/event-stream",
                                 headers={"Cache-Control": "no-cache"})  # fmt: skip

    async def _events(self, answer: Answer, asks: Sequence[Ask],
                      counts: bool) -> AsyncIterator[bytes]:  # fmt: skip
        queue: asyncio.Queue[tuple[int, Piece | RoundelayError]] = asyncio.Queue()
        tasks = [asyncio.create_task(self._pour(i, ask, queue)) for i, ask in enumerate(asks)]
        made = [0] * len(asks)
        left = len(asks)
        try:
            for i in range(left if answer.chat else 0):
                yield _event(answer.role(i))
            while left:
                i, piece = await queue.get()
                if isinstance(piece, RoundelayError):
                    yield _event(_error(piece)[0])
                    return
                made[i] = piece.made
                left -= piece.finish is not None
                if piece.text or piece.finish:
                    yield _event(answer.part(i, piece))
            if counts:
                yield _event(answer.counted(usage(asks, made)))
            yield b"data: [DONE]\n\n"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pour(self, i: int, ask: Ask, queue: asyncio.Queue[Any]) -> None:
        try:
            async with aclosing(self.replicas.ask(ask)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    queue.put_nowait((i, piece))
        except RoundelayError as error:
            queue.put_nowait((i, error))


def make_app(service: Service) -> Starlette:
    """The application; its instances start and end with it.

    Raises:
        RoundelayError: the packages of the extra `llm` are missing.
    """
    need_web()
    from starlette.applications import Starlette
    from starlette.routing import Route

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await service.replicas.stop()

    return Starlette(
        routes=[
            Route("/v1/chat/completions", service.chat, methods=["POST"]),
            Route("/v1/completions", service.text, methods=["POST"]),
            Route("/v1/models", service.models, methods=["GET"]),
            Route("/health", service.health, methods=["GET"]),
            Route("/metrics", service.metrics, methods=["GET"]),
        ],
        lifespan=lifespan,
    )


async def serve(app: Starlette, listener: socket.socket, grace: int) -> None:
    """Serve until SIGINT or SIGTERM: then new connections are refused, and running requests done.

    Args:
        app: of `make_app`.
        listener: where to listen.
        grace: seconds that running requests have at the end.
    """
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False,
                            timeout_graceful_shutdown=grace)  # fmt: skip
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)  # uvicorn has its own, and raises the signal again
        signal.signal(number, _done)
    await uvicorn.Server(config).serve(sockets=[listener])


def _done(number: int, frame: object) -> None:
    """The signal that ended the server has had its effect."""


def _name(kind: type[Chat] | type[Text]) -> str:
    return f"{'chatcmpl' if kind is Chat else 'cmpl'}-{secrets.token_hex(12)}"


async def _body(request: Request) -> bytes:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > BODY:
            raise Refused(f"the body is larger than {BODY:,} bytes", 413)
    return data


async def _gone(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _error(error: RoundelayError) -> tuple[dict[str, Any], int]:
    if isinstance(error, Full):
        kind, status = "rate_limit_error", 429
    elif isinstance(error, Refused) or type(error) is RoundelayError:
        kind, status = "invalid_request_error", getattr(error, "status", 400)
    else:
        kind, status = "server_error", 503
    return {"error": {"message": str(error), "type": kind, "param": None, "code": None}}, status


def _refusal(error: RoundelayError) -> Response:
    found, status = _error(error)
    return _json(found, status, {"Retry-After": "1"} if status in (429, 503) else None)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import Response

    return Response(msgspec.json.encode(value), status, headers, "application/json")


def _event(value: Any) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _metrics(replicas: Replicas) -> str:
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
