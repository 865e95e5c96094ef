"""Put, get, peek, update, delete and clear messages, with their parameters. Source: reference §28.

Parameters are checked before the queue is looked up, and the form of a pop receipt after that (§30.1).
"""

import re
from collections.abc import Mapping

from lazulite.protocol.clock import format_http_date
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, Response
from lazulite.protocol.steps import finish
from lazulite.queue import limits
from lazulite.queue.call import Call
from lazulite.queue.model.message import MessageId, Receipt, SentReceipt, read_id, read_receipt, write_receipt
from lazulite.queue.payload import usual_text, write_got, write_peeked, write_put
from lazulite.queue.versions import LONG_TTL_SINCE, LONG_VISIBILITY_SINCE, PUT_CONTENT_SINCE
from lazulite.service.parameters import invalid, read_number, require
from lazulite.service.routing import Keys, PreparedOperation

_NO_END = "-1"
_LESS_THAN_ONE = re.compile(r"-[0-9]+|\+?0+")

_XML = "Content-Type: application/xml\r\n"
_XML_UNCACHED = f"{_XML}Cache-Control: no-cache\r\n"
_FEW = 4
"""Messages that are written in one step."""


def read_visibility(parameters: Mapping[str, str], version: str, default: int, least: int) -> int:
    """Return a `visibilitytimeout` in seconds. Raises as `read_number`."""
    since = version >= LONG_VISIBILITY_SINCE
    most = limits.VISIBILITY_SECONDS_MAX if since else limits.SHORT_VISIBILITY_SECONDS_MAX
    return read_number(parameters, "visibilitytimeout", default, least, most)


def read_delay(parameters: Mapping[str, str], version: str) -> int:
    """Return the `visibilitytimeout` of a put in seconds.

    Raises:
        ServiceError: as `read_number`.
    """
    if version < LONG_VISIBILITY_SINCE:
        return read_number(parameters, "visibilitytimeout", 0, 0, 0)
    return read_visibility(parameters, version, 0, 0)


def read_ttl(parameters: Mapping[str, str], version: str) -> int | None:
    """Return the `messagettl` in seconds; None for a message that never expires.

    Raises:
        ServiceError: as `read_number`.
    """
    if version < LONG_TTL_SINCE:
        return read_number(parameters, "messagettl", limits.TTL_SECONDS, 1, limits.TTL_SECONDS)
    text = parameters.get("messagettl", "")
    if text == _NO_END:
        return None
    if _LESS_THAN_ONE.fullmatch(text):
        reason = "Value must be greater than or equal to 1, or -1 to indicate an infinite TTL."
        raise invalid("messagettl", text, reason)
    return read_number(parameters, "messagettl", limits.TTL_SECONDS, 1, limits.TTL_SECONDS_MAX)


def check_delay(parameters: Mapping[str, str], delay: int, ttl: int | None) -> None:
    """Reject a message that would expire before it becomes visible.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    if ttl is not None and delay >= ttl:
        text = parameters.get("visibilitytimeout", "0")
        raise invalid("visibilitytimeout", text, "messagettl must be greater than visibilitytimeout")


def receipt_of(text: str) -> SentReceipt:
    """Return the `popreceipt` of a text.

    Raises:
        ServiceError: `InvalidQueryParameterValue`.
    """
    try:
        return read_receipt(text)
    except ValueError:
        raise invalid("popreceipt", text, "Invalid pop receipt format") from None


class PutMessage(PreparedOperation):
    """Adds messages."""

    __slots__ = ("_call", "_delay_and_ttl")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._delay_and_ttl: tuple[int, int | None] | None = None

    async def respond(self, request: Request, _: Keys) -> Response:
        """See `PreparedOperation`."""
        call = self._call
        text = usual_text(request.body, call.version)
        if text is None:
            text = await call.read_text(request.body)
        delay, ttl = self._delay_and_ttl or self._read_parameters()  # The text is checked before the parameters.
        message = await call.with_queue(lambda queue: call.context.messages.put(queue, text, delay, ttl))
        if call.version < PUT_CONTENT_SINCE:
            return Response(201)
        return Response(201, [], write_put(message), opening=_XML)

    def _read_parameters(self) -> tuple[int, int | None]:
        """Return delay and time to live. Raises `ServiceError`, 400."""
        parameters, version = self._call.parameters, self._call.version
        delay, ttl = read_delay(parameters, version), read_ttl(parameters, version)
        check_delay(parameters, delay, ttl)
        self._delay_and_ttl = delay, ttl
        return delay, ttl


class GetMessages(PreparedOperation):
    """Claims messages: they become invisible, and each has a new pop receipt. Making it raises `ServiceError`, 400."""

    __slots__ = ("_call", "_count", "_timeout")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._count = _read_count(call)
        self._timeout = read_visibility(call.parameters, call.version, limits.VISIBILITY_SECONDS, 1)

    async def respond(self, request: Request, _: Keys) -> Response:
        """See `PreparedOperation`."""
        call = self._call
        messages = await call.with_queue(lambda queue: call.context.messages.get(queue, self._count, self._timeout))
        request.record.rows_scanned = request.record.rows_returned = len(messages)
        parts = write_got(messages, call.version)
        body = b"".join(finish(parts)) if len(messages) <= _FEW else await call.write(parts)
        return Response(200, [], body, opening=_XML_UNCACHED)


async def peek_messages(call: Call) -> Response:
    """Return visible messages without claiming them."""
    count = _read_count(call)
    messages = await call.with_queue(lambda queue: call.context.messages.peek(queue, count))
    call.record.rows_scanned = call.record.rows_returned = len(messages)
    return Response(200, [], await call.write(write_peeked(messages, call.version)), opening=_XML_UNCACHED)


def _read_count(call: Call) -> int:
    return read_number(call.parameters, "numofmessages", 1, 1, limits.MESSAGES_MAX)


class UpdateMessage(PreparedOperation):
    """Sets when a message becomes visible again, and its text if there is a body. Making it raises `ServiceError`, 400.

    The receipt is demanded before the other parameters.
    """

    __slots__ = ("_call", "_timeout")

    def __init__(self, call: Call) -> None:
        self._call = call
        require(call.parameters, "popreceipt")
        require(call.parameters, "visibilitytimeout")
        self._timeout = read_visibility(call.parameters, call.version, 0, 0)

    async def respond(self, request: Request, keys: Keys) -> Response:
        """See `PreparedOperation`."""
        call, body, timeout = self._call, request.body, self._timeout
        _require_receipt(keys)
        text = usual_text(body, call.version) if body else None
        if text is None and body:
            text = await call.read_text(body)
        message, receipt = await _addressed(call, keys)
        updated = await call.with_queue(
            lambda queue: call.context.messages.update(queue, message, receipt, timeout, text)
        )
        if updated is None:
            raise ServiceError("MessageNotFound")
        receipt_text = write_receipt(updated, updated=True)
        headers = [("x-ms-popreceipt", receipt_text), ("x-ms-time-next-visible", format_http_date(updated.visible))]
        return Response(204, headers)


class DeleteMessage(PreparedOperation):
    """Deletes a message by its latest pop receipt."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    async def respond(self, _: Request, keys: Keys) -> Response:
        """See `PreparedOperation`."""
        call = self._call
        _require_receipt(keys)
        message, receipt = await _addressed(call, keys)
        if not await call.with_queue(lambda queue: call.context.messages.delete(queue, message, receipt)):
            raise ServiceError("MessageNotFound")
        return Response(204)


def _require_receipt(keys: Keys) -> None:
    """Raise `MissingRequiredQueryParameter` if a request has no pop receipt."""
    require({"popreceipt": keys[1]}, "popreceipt")


async def _addressed(call: Call, keys: Keys) -> tuple[MessageId, Receipt]:
    """Return the id of a message and its pop receipt; no text but a GUID is the id of a message.

    Raises:
        ServiceError: `QueueNotFound`; `InvalidQueryParameterValue`, the receipt; `MessageNotFound`.
    """
    identity, receipt_text = keys
    catalog, name = call.context.catalog, call.resource.queue
    if catalog.cached(call.account, name) is None:
        await catalog.require(call.account, name)
    receipt = receipt_of(receipt_text)
    try:
        message = read_id(identity)
    except ValueError:
        raise ServiceError("MessageNotFound") from None
    return message, receipt.of(message)


async def clear_messages(call: Call) -> Response:
    """Delete all messages, however many there are, at once."""
    await call.context.catalog.clear(call.account, call.resource.queue)
    return Response(204)
