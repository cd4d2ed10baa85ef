"""The front over HTTP, as OpenAI's API has it: chat and completions, whole or streamed."""

from __future__ import annotations

import asyncio
import logging
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...errors import RoundelayError
from ...extras import need
from ...patience import connections, impatient
from .answers import Answer, usage
from .asked import Chat, Refused, Text, choices, read, requests
from .messages import Ask, Piece
from .replicas import Replicas
from .replies import defect, error_of, event, json_reply, metrics, no_such, refusal, told
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

BODY: Final = 1 << 20
"""Bytes of a request at most."""
SHORT: Final = 2048
"""Bytes of a request whose text becomes tokens at once; longer ones do so in turn, in a thread."""
BESIDE: Final = 64
"""Connections beside those of the requests that are let in: for those who ask, or who look."""
BACKLOG: Final = 256
"""Connections that wait to be taken up."""
LOOK: Final = 0.1
"""Seconds from one look whether the server shall end to the next."""
LAST: Final = 2
"""Seconds that answers have to be sent, when their requests have been ended."""
_KNOWN: Final = ("graceful shutdown", "without completing response")
"""What uvicorn tells of an end that is wanted."""


def need_web() -> None:
    """Raise where the packages of the server are missing.

    Raises:
        RoundelayError: with the extra that brings them.
    """
    need("llm", "requests are served with it", "starlette", "uvicorn")


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
        self._turns = asyncio.Semaphore(1)

    async def models(self, request: Request) -> Response:
        """GET /v1/models."""
        return json_reply({"object": "list", "data": [self._about()]})

    async def one_model(self, request: Request) -> Response:
        """GET /v1/models/NAME."""
        if (name := request.path_params["name"]) != self.model:
            return refusal(Refused(f"no model {name!r:.80}; there is {self.model!r}", 404))
        return json_reply(self._about())

    def _about(self) -> dict[str, Any]:
        return {"id": self.model, "object": "model", "created": 0, "owned_by": "roundelay"}

    async def health(self, request: Request) -> Response:
        """GET /health: 200 while an instance is ready."""
        ready = [bool(instance.ready) for instance in self.replicas.instances]
        status = "ok" if all(ready) else "degraded" if any(ready) else "down"
        pids = [i.ready.pids if i.ready else [] for i in self.replicas.instances]
        found = {"status": status, "instances": [{"ready": bool(p), "pids": p} for p in pids]}
        return json_reply(found, 200 if any(ready) else 503)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics, as Prometheus reads it."""
        from starlette.responses import PlainTextResponse

        return PlainTextResponse(metrics(self.replicas))

    async def complete(self, kind: type[Chat] | type[Text], request: Request, send: Any) -> None:
        """Answer a request; its places are taken until all is sent."""
        with ExitStack() as places:
            try:
                body = await _body(request)
                asked = read(body, kind)
                prompts, n = choices(asked)
                places.enter_context(self.replicas.admitted(prompts * n))
                asks = await self._asks(asked, len(body))
                answer = Answer(_name(kind), self.model, kind is Chat)
                whole = self._streamed if asked.stream else self._whole
                response = await whole(request, answer, asks, asked)
            except RoundelayError as error:
                response = refusal(error)
            await response(request.scope, request.receive, send)

    async def _asks(self, asked: Chat | Text, size: int) -> list[Ask]:
        """Its requests. A long text takes seconds, in which the others shall go on."""
        work = partial(requests, asked, self.tokenizer, self.context, self.model)
        if size <= SHORT:
            return work()
        async with self._turns:
            return await asyncio.to_thread(work)

    async def _whole(self, request: Request, answer: Answer, asks: Sequence[Ask],
                     asked: Chat | Text) -> Response:  # fmt: skip
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
        counts = usage(asks, [last.made for _, last in found], asked.n or 1)
        return json_reply(answer.whole(found, counts))

    async def _collect(self, ask: Ask) -> tuple[str, Piece]:
        parts = []
        async with aclosing(self.replicas.ask(ask)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                parts.append(piece.text)
        return "".join(parts), piece

    async def _streamed(self, request: Request, answer: Answer, asks: Sequence[Ask],
                        asked: Chat | Text) -> Response:  # fmt: skip
        """Events as tokens come; the client's going ends the requests."""
        from starlette.responses import StreamingResponse

        counted = asked.stream_options is not None and asked.stream_options.include_usage
        events = self._events(answer, asks, (asked.n or 1) if counted else 0)
        return StreamingResponse(events, media_type="text/event-stream",
                                 headers={"Cache-Control": "no-cache"})  # fmt: skip

    async def _events(self, answer: Answer, asks: Sequence[Ask],
                      counted: int) -> AsyncIterator[bytes]:  # fmt: skip
        """Events; at the end tokens are counted, where it is said how many choices a prompt has."""
        queue: asyncio.Queue[tuple[int, Piece | RoundelayError]] = asyncio.Queue()
        tasks = [asyncio.create_task(self._pour(i, ask, queue)) for i, ask in enumerate(asks)]
        made = [0] * len(asks)
        left = len(asks)
        try:
            for i in range(left if answer.chat else 0):
                yield event(answer.role(i))
            while left:
                i, piece = await queue.get()
                if isinstance(piece, RoundelayError):
                    yield event(error_of(piece)[0])
                    return
                made[i] = piece.made
                left -= piece.finish is not None
                if piece.text or piece.finish:
                    yield event(answer.part(i, piece))
            if counted:
                yield event(answer.counted(usage(asks, made, counted)))
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
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await service.replicas.stop()

    app = Starlette(
        routes=[
            Route("/v1/chat/completions", _Completions(service, Chat), methods=["POST"]),
            Route("/v1/completions", _Completions(service, Text), methods=["POST"]),
            Route("/v1/models", service.models, methods=["GET"]),
            Route("/v1/models/{name:path}", service.one_model, methods=["GET"]),
            Route("/health", service.health, methods=["GET"]),
            Route("/metrics", service.metrics, methods=["GET"]),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: no_such, Exception: defect},
    )
    app.router.redirect_slashes = False
    return app


class _Completions:
    """Completions of a kind, as an application of their own: it ends when its answer is sent."""

    def __init__(self, service: Service, kind: type[Chat] | type[Text]) -> None:
        self._service, self._kind = service, kind

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        with suppress(asyncio.CancelledError):  # the server ends, and this client takes nothing
            await self._service.complete(self._kind, Request(scope, receive), send)


async def serve(app: Starlette, listener: socket.socket, grace: int, replicas: Replicas) -> None:
    """Serve until SIGINT or SIGTERM: then new connections are refused, and running requests done.

    Args:
        app: of `make_app`.
        listener: where to listen.
        grace: seconds that running requests have at the end; then each is ended by an error.
        replicas: that have them.
    """
    import uvicorn

    http = impatient({}, connections(replicas.limit + BESIDE), told)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False,
                            ws="none", http=http, backlog=BACKLOG,
                            timeout_graceful_shutdown=grace + LAST)  # fmt: skip
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.remove_signal_handler(number)  # uvicorn has its own, and raises the signal again
        signal.signal(number, _done)
    logging.getLogger("uvicorn.error").addFilter(
        lambda record: not any(known in record.msg for known in _KNOWN)
    )
    server = uvicorn.Server(config)
    ending = asyncio.create_task(_end(server, grace, replicas))
    try:
        await server.serve(sockets=[listener])
    finally:
        ending.cancel()


async def _end(server: Any, grace: int, replicas: Replicas) -> None:
    """End what still runs when the time is up, or when SIGINT has come twice."""
    while not server.should_exit:
        await asyncio.sleep(LOOK)
    end = time.monotonic() + grace
    while time.monotonic() < end and not server.force_exit:
        await asyncio.sleep(LOOK)
    replicas.give_up("the server ends, and the time for running requests is up")


def _done(number: int, frame: object) -> None:
    """The signal that ended the server has had its effect."""


def _name(kind: type[Chat] | type[Text]) -> str:
    return f"{'chatcmpl' if kind is Chat else 'cmpl'}-{secrets.token_hex(12)}"


async def _body(request: Request) -> bytes:
    from starlette.requests import ClientDisconnect

    data = b""
    try:
        async for part in request.stream():
            data += part
            if len(data) > BODY:
                raise Refused(f"the body is larger than {BODY:,} bytes", 413)
    except ClientDisconnect:
        raise Refused("the client has gone", 499) from None
    return data


async def _gone(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
