"""The same service under ASGI 3: in uvicorn, in hypercorn, or in a test through `httpx.ASGITransport`.

Invariants: the service gets the path and query of the wire (`raw_path`, `query_string`), because signatures cover them.
Framing and header bounds are the ASGI server's; the bounds of the body, of the memory for all bodies and of time are
those of `lazulite serve`. Once `drain` has returned, no request runs.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import TypeAlias, cast
from urllib.parse import quote

from lazulite.engine.contract import EngineUnavailableError
from lazulite.protocol.errors import ServiceError, unsupported_verb
from lazulite.protocol.fields import CHANGING, Fields, join_values, lower_name
from lazulite.protocol.message import ClientDisconnectedError, Request, Response, ResponseContent, Service, Window
from lazulite.server.admission.budgets import BodyBudget
from lazulite.server.admission.scheduler import SLICE_SECONDS
from lazulite.server.asgi.body import AsgiBody, Message, Receive, Send
from lazulite.server.http.head import METHODS, SINGLE_FIELDS
from lazulite.server.http.outbound import body_of, content_of, length_of, send_windows
from lazulite.server.limits import Limits
from lazulite.server.observability.access_log import frames
from lazulite.server.observability.exchange import Exchange, ExchangeLog
from lazulite.service.time_slice import TimeSlice

Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]
"""An ASGI 3 application."""

_logger = logging.getLogger(__name__)

_PATH_SAFE = "/!$&'()*+,;=:@-._~"


class HttpApplication:
    """An ASGI 3 application that serves a service in `http` scopes; any other scope raises `ValueError`.

    Args:
        service: answers the requests.
        limits: of bodies and times; those of connections are the ASGI server's.
        new_request_id: never the same twice.
        logs: record every exchange, with the bytes of its bodies; heads are written by the ASGI server.
    """

    def __init__(
        self, service: Service, limits: Limits, new_request_id: Callable[[], str], logs: Sequence[ExchangeLog] = ()
    ) -> None:
        self._service = service
        self._limits = limits
        self._new_request_id = new_request_id
        self._logs = logs
        self._bodies = BodyBudget(limits.buffered_bytes)
        self._running: set[asyncio.Task[Response]] = set()

    @property
    def buffered_bytes(self) -> int:
        """The bytes of request bodies: held, or reserved."""
        return self._bodies.held_bytes

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            raise ValueError(f"not an HTTP scope: {scope['type']}")
        began_s = time.monotonic()
        request, body = _request(scope, self._new_request_id()), AsgiBody(receive, self._limits, self._bodies)
        try:
            response = await self._answer(request, scope, body)
        except ClientDisconnectedError:
            return
        elapsed_ms = (time.monotonic() - body.arrived_s) * 1000
        content = response.content
        try:
            sent_bytes = await _send(request, response, send)
        except EngineUnavailableError:  # The first window cannot be read, and nothing was sent.
            response = self._service.reject(request, ServiceError("ServerBusy"))
            sent_bytes = await _send(request, response, send)
        finally:
            if content is not None:
                await content.aclose()
        total_ms = (time.monotonic() - began_s) * 1000
        for log in self._logs:
            log.record(Exchange(request, response, elapsed_ms, body.received_bytes, sent_bytes, total_ms=total_ms))

    async def drain(self) -> None:
        """Wait until no request runs; after the drain's time, cancel the requests that still run."""
        if self._running:
            await asyncio.wait(self._running, timeout=self._limits.drain_seconds)
        late = list(self._running)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _answer(self, request: Request, scope: Message, body: AsgiBody) -> Response:
        try:
            request.headers = _headers(cast("Iterable[tuple[bytes, bytes]]", scope["headers"]))
            if request.method not in METHODS:
                raise unsupported_verb(METHODS)
            body.announce(request.headers, str(scope.get("http_version", "1.1")))
        except ServiceError as error:
            return self._service.reject(request, error)
        request.body_to_come = body
        try:
            response = self._service.respond(request)
        except Exception as failure:  # noqa: BLE001 - as in `_await`
            return self._fail(request, failure)
        if isinstance(response, Response):
            return response
        # A task of its own: a client that leaves must not cut an operation short.
        running = asyncio.get_running_loop().create_task(self._await(response, request, body))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.request_seconds) as body.deadline:
                await asyncio.wait([running])
        body.deadline = None
        if not running.done():
            return self._service.reject(request, ServiceError("OperationTimedOut"))
        if running.cancelled():  # By `drain`.
            return self._service.reject(request, ServiceError("ServerBusy"))
        return running.result()

    async def _await(self, work: Coroutine[object, None, Response], request: Request, body: AsgiBody) -> Response:
        try:
            return await work
        except ClientDisconnectedError:
            raise
        except Exception as failure:  # noqa: BLE001 - the last line of defence; the text may quote a client, so it is left out
            return self._fail(request, failure)
        finally:
            body.release()

    def _fail(self, request: Request, failure: Exception) -> Response:
        _logger.error("request %s: %s at %s", request.id, type(failure).__name__, frames(failure))
        for log in self._logs:
            log.failed(request.id, failure)
        return self._service.reject(request, ServiceError("InternalError"))


def _request(scope: Message, request_id: str) -> Request:
    raw_path = cast("bytes | None", scope.get("raw_path"))
    path = raw_path.decode("latin-1") if raw_path else quote(str(scope["path"]), _PATH_SAFE)
    client = cast("tuple[str, int] | None", scope.get("client"))
    return Request(
        str(scope["method"]),
        path.partition("?")[0],  # Some servers leave the query in raw_path.
        cast(bytes, scope.get("query_string", b"")).decode("latin-1"),
        scheme=str(scope.get("scheme", "http")),
        client=client[0] if client else "",
        id=request_id,
    )


def _headers(fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    headers = Fields()
    steady = []
    for raw_name, raw_value in fields:
        name, value = lower_name(raw_name.decode("latin-1")), raw_value.decode("latin-1").strip(" \t")
        if name not in CHANGING:
            steady.append(b"%s: %s" % (raw_name, raw_value))
        if name in headers:
            if name in SINGLE_FIELDS:
                raise ServiceError(SINGLE_FIELDS[name])
            value = join_values(headers[name], value)
        headers[name] = value
    headers.steady = tuple(steady)
    return headers


async def _send(request: Request, response: Response, send: Send) -> int:
    """Send a response; return the length of the body that was sent.

    Raises:
        ValueError: its content has another length than it said; the ASGI server then ends the connection.
    """
    fields = [
        (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in response.fields()
    ]
    if response.status not in (204, 304):
        fields.append((b"content-length", b"%d" % length_of(response)))
    start: Message = {"type": "http.response.start", "status": response.status, "headers": fields}
    content = content_of(response)
    if content is not None:
        return await _send_content(request, content, send, start)
    await send(start)
    sent = body_of(response, request.method)
    await send({"type": "http.response.body", "body": sent})
    return len(sent)


async def _send_content(request: Request, content: ResponseContent, send: Send, start: Message) -> int:
    """Send the start of a response when the first window of its content is there, and the content."""
    has_begun = False

    async def begin() -> None:
        nonlocal has_begun
        if not has_begun:
            has_begun = True
            await send(start)

    async def send_window(window: Window) -> None:
        await begin()
        await send({"type": "http.response.body", "body": bytes(window), "more_body": True})

    sent_bytes = 0
    if request.method != "HEAD":
        try:
            await send_windows(content, send_window, TimeSlice(SLICE_SECONDS, time.monotonic))
        except EngineUnavailableError as error:
            if has_begun:
                raise ValueError("the content ends early") from error
            raise
        sent_bytes = content.length
    await begin()
    await send({"type": "http.response.body", "body": b""})
    return sent_bytes
