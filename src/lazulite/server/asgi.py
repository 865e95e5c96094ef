"""The same service under ASGI 3: in uvicorn, in hypercorn, or in a test through `httpx.ASGITransport`.

Invariant: the service gets the path and query of the wire (`raw_path`, `query_string`), because signatures cover them.
Framing and header bounds are the ASGI server's; the body's bound, the time that it takes, and the request's are ours.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from contextlib import suppress
from functools import partial
from typing import cast
from urllib.parse import quote

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import ClientDisconnectedError, Request, Response, Service
from lazulite.server.http.head import METHODS, SINGLE_FIELDS
from lazulite.server.limits import Limits
from lazulite.server.observability.access_log import frames
from lazulite.server.observability.exchange import Exchange, ExchangeLog

Message = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

_logger = logging.getLogger(__name__)

_PATH_SAFE = "/!$&'()*+,;=:@-._~"


def asgi_app(
    service: Service, limits: Limits, new_request_id: Callable[[], str], logs: Sequence[ExchangeLog] = ()
) -> Application:
    """Return an ASGI 3 application that serves `service` in `http` scopes; any other scope raises `ValueError`.

    Each exchange is recorded in `logs` with the bytes of its bodies: the ASGI server has the heads.
    """
    unfinished: set[asyncio.Task[Response]] = set()

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"not an HTTP scope: {scope['type']}")
        request, body = _request(scope, new_request_id()), _IncomingBody(receive)
        try:
            response = await _answer(service, limits, request, scope, body.receive, unfinished)
        except ClientDisconnectedError:
            return
        elapsed_ms = (time.monotonic() - body.arrived_s) * 1000
        sent_bytes = await _send(request, response, send)
        for log in logs:
            log.record(Exchange(request, response, elapsed_ms, body.received_bytes, sent_bytes))

    return application


class _IncomingBody:
    """Measures a request: when its last part so far arrived, in monotonic seconds, and the length of its body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.arrived_s = time.monotonic()
        self.received_bytes = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self.arrived_s = time.monotonic()
        self.received_bytes += len(cast(bytes, message.get("body", b"")))
        return message


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


def _headers(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip(" \t")
        if name in headers:
            if name in SINGLE_FIELDS:
                raise ServiceError(SINGLE_FIELDS[name])
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


async def _answer(
    service: Service,
    limits: Limits,
    request: Request,
    scope: Message,
    receive: Receive,
    unfinished: set[asyncio.Task[Response]],
) -> Response:
    try:
        request.headers = _headers(cast("Iterable[tuple[bytes, bytes]]", scope["headers"]))
        if request.method not in METHODS:
            raise ServiceError("UnsupportedHttpVerb")
    except ServiceError as error:
        return service.refuse(request, error)
    began = asyncio.Event()
    request.body_to_come = partial(_body, receive, limits, began)
    # A task of its own: a client that leaves must not cut an operation short.
    running = asyncio.get_running_loop().create_task(_handle(service, request))
    unfinished.add(running)
    running.add_done_callback(unfinished.discard)
    running.add_done_callback(lambda _: began.set())
    with suppress(TimeoutError):
        async with asyncio.timeout(limits.body_read_seconds + limits.request_seconds):
            await began.wait()
    await asyncio.wait([running], timeout=limits.request_seconds)
    if not running.done():
        return service.refuse(request, ServiceError("OperationTimedOut"))
    return running.result()


async def _handle(service: Service, request: Request) -> Response:
    try:
        return await service.handle(request)
    except ClientDisconnectedError:
        raise
    except Exception as failure:  # noqa: BLE001 - the last line of defence; the text may quote a client, so it is left out
        _logger.error("request %s: %s at %s", request.id, type(failure).__name__, frames(failure))
        return service.refuse(request, ServiceError("InternalError"))


async def _body(receive: Receive, limits: Limits, began: asyncio.Event) -> bytes:
    """Read a whole body; with its end, the work on the request begins.

    Raises:
        ServiceError: it is too long, or takes too long.
        ClientDisconnectedError: it never became whole.
    """
    parts: list[bytes] = []
    received_bytes = 0
    try:
        async with asyncio.timeout(limits.body_read_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnectedError
                part = cast(bytes, message.get("body", b""))
                received_bytes += len(part)
                if received_bytes > limits.body_bytes:
                    raise ServiceError("RequestBodyTooLarge")
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise ServiceError("OperationTimedOut", status=408) from None
    finally:
        began.set()


async def _send(request: Request, response: Response, send: Send) -> int:
    """Send a response; return the length of the body that was sent."""
    body = b"" if response.status in (204, 304) else response.body
    fields = [
        (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in response.headers
    ]
    if response.status not in (204, 304):
        fields.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": response.status, "headers": fields})
    sent = b"" if request.method == "HEAD" else body
    await send({"type": "http.response.body", "body": sent})
    return len(sent)
