"""Put, get, peek, update, delete and clear messages. Source: reference §28.

Parameters are checked before the queue is looked up (§30.1).
"""

from uuid import UUID

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.queue import limits
from lazulite.queue.call import Call
from lazulite.queue.messages import ExpiryError
from lazulite.queue.model.receipt import write_receipt
from lazulite.queue.parameters import (
    check_delay,
    invalid,
    read_delay,
    read_number,
    read_ttl,
    read_visibility,
    require,
    require_receipt,
)
from lazulite.queue.payload import format_date, write_got, write_peeked, write_put
from lazulite.queue.versions import PUT_CONTENT_SINCE
from lazulite.service.responses import NO_CACHE, XML_TYPE


async def put_message(call: Call) -> Response:
    """Add a message."""
    parameters = call.parameters
    text = await call.read_text()
    delay = read_delay(parameters, call.version)
    ttl = read_ttl(parameters, call.version)
    check_delay(parameters, delay, ttl)
    message = await call.with_queue(lambda queue: call.context.messages.put(queue, text, delay, ttl))
    if call.version < PUT_CONTENT_SINCE:
        return Response(201)
    return Response(201, [XML_TYPE], write_put(message))


async def get_messages(call: Call) -> Response:
    """Claim messages: they become invisible, and each has a new pop receipt."""
    count = _read_count(call)
    timeout = read_visibility(call.parameters, call.version, limits.VISIBILITY_SECONDS, 1)
    messages = await call.with_queue(lambda queue: call.context.messages.get(queue, count, timeout))
    return Response(200, [XML_TYPE, NO_CACHE], await call.write(write_got(messages, call.version)))


async def peek_messages(call: Call) -> Response:
    """Return visible messages without claiming them."""
    count = _read_count(call)
    messages = await call.with_queue(lambda queue: call.context.messages.peek(queue, count))
    return Response(200, [XML_TYPE, NO_CACHE], await call.write(write_peeked(messages, call.version)))


def _read_count(call: Call) -> int:
    return read_number(call.parameters, "numofmessages", 1, 1, limits.MESSAGES_MAX)


async def update_message(call: Call) -> Response:
    """Set when a message becomes visible again, and its text if there is a body."""
    parameters = call.parameters
    receipt = require_receipt(parameters)
    require(parameters, "visibilitytimeout")
    timeout = read_visibility(parameters, call.version, 0, 0)
    text = await call.read_text() if call.request.body else None
    await call.context.catalog.require(call.account, call.resource.queue)
    message = _message_id(call)
    try:
        updated = await call.with_queue(
            lambda queue: call.context.messages.update(queue, message, receipt, timeout, text)
        )
    except ExpiryError:
        # *Unverified*: the code. Documented is only that a message cannot be invisible beyond its expiration.
        reason = "The message expires before it becomes visible."
        raise invalid("visibilitytimeout", parameters["visibilitytimeout"], reason) from None
    if updated is None:
        raise ServiceError("MessageNotFound")
    receipt_text = write_receipt(updated, updated=True)
    headers = [("x-ms-popreceipt", receipt_text), ("x-ms-time-next-visible", format_date(updated.visible))]
    return Response(204, headers)


async def delete_message(call: Call) -> Response:
    """Delete a message by its latest pop receipt."""
    receipt = require_receipt(call.parameters)
    await call.context.catalog.require(call.account, call.resource.queue)
    message = _message_id(call)
    if not await call.with_queue(lambda queue: call.context.messages.delete(queue, message, receipt)):
        raise ServiceError("MessageNotFound")
    return Response(204)


def _message_id(call: Call) -> UUID:
    """Return the message's id; any other text than a GUID is none of a message."""
    try:
        return UUID(call.resource.message)
    except ValueError:
        raise ServiceError("MessageNotFound") from None


async def clear_messages(call: Call) -> Response:
    """Delete all messages, however many there are, at once."""
    await call.context.catalog.clear(call.account, call.resource.queue)
    return Response(204)
