"""Put, get, peek, update, delete and clear messages. Source: reference §28.

Parameters are checked before the queue is looked up (§30.1).
"""

from uuid import UUID

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.http_date import format_http_date
from lazulite.protocol.message import Request, Response
from lazulite.protocol.steps import finish
from lazulite.queue import limits
from lazulite.queue.call import Call
from lazulite.queue.messages import ExpiryError
from lazulite.queue.model.receipt import write_receipt
from lazulite.queue.parameters import (
    check_delay,
    read_delay,
    read_ttl,
    read_visibility,
    require_receipt,
)
from lazulite.queue.payload import usual_text, write_got, write_peeked, write_put
from lazulite.queue.versions import PUT_CONTENT_SINCE
from lazulite.service.parameters import invalid, read_number, require
from lazulite.service.routing import Keys, Operation

_XML = "Content-Type: application/xml\r\n"
_XML_UNCACHED = f"{_XML}Cache-Control: no-cache\r\n"
_FEW = 4
"""Messages that are written in one step."""


class _WaitingOperation:
    """A `PlannedOperation` that waits: for its commit, or to read ahead.

    Args:
        call: one of its requests. Its parameters are checked.

    Raises:
        ServiceError: 400.
    """

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def at_once(self, request: Request, keys: Keys) -> Response | None:  # noqa: ARG002 - the interface has them
        """See `PlannedOperation`."""
        return None


class PutMessage(_WaitingOperation):
    """Adds messages."""

    __slots__ = ("_delay", "_ttl")

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        parameters = call.parameters
        self._delay = read_delay(parameters, call.version)
        self._ttl = read_ttl(parameters, call.version)
        check_delay(parameters, self._delay, self._ttl)

    async def run(self, request: Request, _: Keys) -> Response:
        """See `PlannedOperation`."""
        text = usual_text(request.body, self._call.version)
        return await self.put(await self._call.read_text(request.body) if text is None else text)

    async def put(self, text: bytes) -> Response:
        """Put a message with a text."""
        call = self._call
        message = await call.with_queue(lambda queue: call.context.messages.put(queue, text, self._delay, self._ttl))
        if call.version < PUT_CONTENT_SINCE:
            return Response(201)
        return Response(201, [], write_put(message), opening=_XML)


async def put_message(call: Call) -> Response:
    """Add a message. The text is checked before the parameters."""
    text = await call.read_text(call.request.body)
    return await PutMessage(call).put(text)


class GetMessages(_WaitingOperation):
    """Claims messages: they become invisible, and each has a new pop receipt."""

    __slots__ = ("_count", "_timeout")

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self._count = _read_count(call)
        self._timeout = read_visibility(call.parameters, call.version, limits.VISIBILITY_SECONDS, 1)

    async def run(self, request: Request, _: Keys) -> Response:
        """See `PlannedOperation`."""
        call = self._call
        messages = await call.with_queue(lambda queue: call.context.messages.get(queue, self._count, self._timeout))
        request.record.rows_scanned = request.record.rows_returned = len(messages)
        parts = write_got(messages, call.version)
        body = b"".join(finish(parts)) if len(messages) <= _FEW else await call.write(parts)
        return Response(200, [], body, opening=_XML_UNCACHED)


def get_messages(call: Call) -> Operation:
    """Return the claim of a call, to be awaited. Raises as `GetMessages`."""
    return GetMessages(call).run(call.request, ())


async def peek_messages(call: Call) -> Response:
    """Return visible messages without claiming them."""
    count = _read_count(call)
    messages = await call.with_queue(lambda queue: call.context.messages.peek(queue, count))
    call.record.rows_scanned = call.record.rows_returned = len(messages)
    return Response(200, [], await call.write(write_peeked(messages, call.version)), opening=_XML_UNCACHED)


def _read_count(call: Call) -> int:
    return read_number(call.parameters, "numofmessages", 1, 1, limits.MESSAGES_MAX)


class UpdateMessage(_WaitingOperation):
    """Sets when a message becomes visible again, and its text if there is a body."""

    __slots__ = ("_timeout",)

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        require(call.parameters, "visibilitytimeout")
        self._timeout = read_visibility(call.parameters, call.version, 0, 0)

    async def run(self, request: Request, keys: Keys) -> Response:
        """See `PlannedOperation`."""
        call, body, timeout = self._call, request.body, self._timeout
        identity, receipt_text = keys
        receipt = require_receipt({"popreceipt": receipt_text})
        text = usual_text(body, call.version) if body else None
        if text is None and body:
            text = await call.read_text(body)
        message = await _addressed(call, identity)
        try:
            updated = await call.with_queue(
                lambda queue: call.context.messages.update(queue, message, receipt.of(message), timeout, text)
            )
        except ExpiryError:
            # *Unverified*: the code. Documented is only that a message cannot be invisible beyond its expiration.
            reason = "The message expires before it becomes visible."
            raise invalid("visibilitytimeout", call.parameters["visibilitytimeout"], reason) from None
        if updated is None:
            raise ServiceError("MessageNotFound")
        receipt_text = write_receipt(updated, updated=True)
        headers = [("x-ms-popreceipt", receipt_text), ("x-ms-time-next-visible", format_http_date(updated.visible))]
        return Response(204, headers)


def update_message(call: Call) -> Operation:
    """Return the update of a message, to be awaited. The receipt is checked before the other parameters."""
    require_receipt(call.parameters)
    return UpdateMessage(call).run(call.request, (call.resource.message, call.parameters["popreceipt"]))


class DeleteMessage(_WaitingOperation):
    """Deletes a message by its latest pop receipt."""

    __slots__ = ()

    async def run(self, _: Request, keys: Keys) -> Response:
        """See `PlannedOperation`."""
        call = self._call
        identity, receipt_text = keys
        receipt = require_receipt({"popreceipt": receipt_text})
        message = await _addressed(call, identity)
        if not await call.with_queue(lambda queue: call.context.messages.delete(queue, message, receipt.of(message))):
            raise ServiceError("MessageNotFound")
        return Response(204)


def delete_message(call: Call) -> Operation:
    """Return the deletion of a message, to be awaited."""
    return DeleteMessage(call).run(call.request, (call.resource.message, call.parameters.get("popreceipt", "")))


async def _addressed(call: Call, identity: str) -> UUID:
    """Return a message's id, given its text; any other text than a GUID is none of a message of the queue.

    Raises:
        ServiceError: `QueueNotFound`, or `MessageNotFound`.
    """
    catalog, name = call.context.catalog, call.resource.queue
    if catalog.cached(call.account, name) is None:
        await catalog.require(call.account, name)
    try:
        return UUID(identity)
    except ValueError:
        raise ServiceError("MessageNotFound") from None


async def clear_messages(call: Call) -> Response:
    """Delete all messages, however many there are, at once."""
    await call.context.catalog.clear(call.account, call.resource.queue)
    return Response(204)
