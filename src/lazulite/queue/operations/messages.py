"""Put, get, peek, update, delete and clear messages, with their parameters. Source: reference §28.

Parameters are checked before the queue is looked up, and the form of a pop receipt after that (§30.1).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lazulite.protocol.clock import format_http_date
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fault import Effect
from lazulite.protocol.message import Request, Response
from lazulite.protocol.query_string import percent_decode
from lazulite.protocol.steps import finish
from lazulite.protocol.template import KEY, Answer, HeadValues, Miss, PendingAnswer
from lazulite.queue import limits
from lazulite.queue.call import Call
from lazulite.queue.model.message import Message, MessageId, Receipt, SentReceipt, read_id, read_receipt, write_receipt
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


class _Joined:
    """An operation that has joined a commit group. Implements `CommitWaiter`.

    Args:
        later: gets the answer once the operation is durable.

    Attributes:
        answer: makes it.
    """

    __slots__ = ("_later", "answer")
    answer: Callable[[], Answer]

    def __init__(self, later: PendingAnswer) -> None:
        self._later = later

    def set_result(self, _: object) -> None:
        """See `CommitWaiter`."""
        self._later.answer(self.answer())

    def set_exception(self, exception: BaseException) -> None:
        """See `CommitWaiter`."""
        self._later.fail(exception)


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
        answer = _answer_to_put(message, call.version)
        return Response(answer.status, [], answer.body, opening=answer.opening)

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`."""
        return self._call.context.alone

    def repeated(self, _: Sequence[str]) -> "RepeatedPut | None":
        """See `PreparedOperation`: of a request that has succeeded, the parameters are good."""
        return None if self._delay_and_ttl is None else RepeatedPut(self._call, *self._delay_and_ttl)

    def _read_parameters(self) -> tuple[int, int | None]:
        """Return delay and time to live. Raises `ServiceError`, 400."""
        parameters, version = self._call.parameters, self._call.version
        delay, ttl = read_delay(parameters, version), read_ttl(parameters, version)
        check_delay(parameters, delay, ttl)
        self._delay_and_ttl = delay, ttl
        return delay, ttl


def _answer_to_put(message: Message, version: str) -> Answer:
    return Answer(201, "") if version < PUT_CONTENT_SINCE else Answer(201, _XML, write_put(message))


class RepeatedPut:
    """A put, for templates. Implements `RepeatedOperation`.

    Args:
        call: of a request that has succeeded.
        delay: seconds.
        ttl: seconds; None: the messages never expire.
    """

    __slots__ = ("_account", "_catalog", "_delay", "_messages", "_queue", "_ttl", "_version")
    waits = True

    def __init__(self, call: Call, delay: int, ttl: int | None) -> None:
        self._catalog, self._messages = call.context.catalog, call.context.messages
        self._account, self._queue, self._version = call.account, call.resource.queue, call.version
        self._delay, self._ttl = delay, ttl

    def answer(self, _: HeadValues, body: bytes, later: PendingAnswer | None) -> Miss | None:
        """See `RepeatedOperation`."""
        text = usual_text(body, self._version)
        queue = self._catalog.cached(self._account, self._queue)
        if text is None or queue is None:
            return Miss.OPERATION
        assert later is not None, "it waits"
        joined = _Joined(later)
        message = self._messages.put_now(queue, text, self._delay, self._ttl, joined)
        if message is None:
            return Miss.OPERATION
        joined.answer = partial(_answer_to_put, message, self._version)
        return None


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
        fault = request.record.fault
        timeout = 0 if fault is not None and fault.effect is Effect.DUPLICATE else self._timeout
        messages = await call.with_queue(lambda queue: call.context.messages.get(queue, self._count, timeout))
        request.record.rows_scanned = request.record.rows_returned = len(messages)
        parts = write_got(messages, call.version)
        body = b"".join(finish(parts)) if len(messages) <= _FEW else await call.write(parts)
        return Response(200, [], body, opening=_XML_UNCACHED)

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`: of few messages, which are written in one step."""
        return self._call.context.alone and self._count <= _FEW

    def repeated(self, _: Sequence[str]) -> "RepeatedGet":
        """See `PreparedOperation`."""
        return RepeatedGet(self._call, self._count, self._timeout)


class RepeatedGet:
    """A get, for templates. Implements `RepeatedOperation`.

    Args:
        call: of a request that has succeeded.
        count: of the messages.
        timeout: the messages become invisible for so many seconds.
    """

    __slots__ = ("_account", "_catalog", "_count", "_messages", "_queue", "_timeout", "_version")
    waits = True

    def __init__(self, call: Call, count: int, timeout: int) -> None:
        self._catalog, self._messages = call.context.catalog, call.context.messages
        self._account, self._queue, self._version = call.account, call.resource.queue, call.version
        self._count, self._timeout = count, timeout

    def answer(self, _: HeadValues, __: bytes, later: PendingAnswer | None) -> Miss | None:
        """See `RepeatedOperation`."""
        queue = self._catalog.cached(self._account, self._queue)
        assert later is not None, "it waits"
        if queue is None:
            return Miss.OPERATION
        joined = _Joined(later)
        claimed = self._messages.get_now(queue, self._count, self._timeout, joined)
        if claimed is None:
            return Miss.OPERATION
        joined.answer = partial(_answer_to_get, claimed, self._version)
        return None


def _answer_to_get(claimed: Sequence[Message], version: str) -> Answer:
    return Answer(200, _XML_UNCACHED, b"".join(finish(write_got(claimed, version))), len(claimed))


class PeekMessages(PreparedOperation):
    """Returns visible messages without claiming them. Making it raises `ServiceError`, 400."""

    __slots__ = ("_call", "_count")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._count = _read_count(call)

    async def respond(self, request: Request, _: Keys) -> Response:
        """See `PreparedOperation`."""
        call = self._call
        messages = await call.with_queue(lambda queue: call.context.messages.peek(queue, self._count))
        request.record.rows_scanned = request.record.rows_returned = len(messages)
        return Response(200, [], await call.write(write_peeked(messages, call.version)), opening=_XML_UNCACHED)

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`: of few messages, which are written in one step."""
        return self._call.context.alone and self._count <= _FEW

    def repeated(self, _: Sequence[str]) -> "RepeatedPeek":
        """See `PreparedOperation`."""
        return RepeatedPeek(self._call, self._count)


class RepeatedPeek:
    """A peek, for templates: of messages that an earlier one has returned. Implements `RepeatedOperation`.

    Args:
        call: of a request that has succeeded.
        count: of the messages.
    """

    __slots__ = ("_account", "_catalog", "_count", "_messages", "_queue", "_version")
    waits = False

    def __init__(self, call: Call, count: int) -> None:
        self._catalog, self._messages = call.context.catalog, call.context.messages
        self._account, self._queue, self._version = call.account, call.resource.queue, call.version
        self._count = count

    def answer(self, _: HeadValues, __: bytes, ___: PendingAnswer | None) -> Answer | Miss | None:
        """See `RepeatedOperation`."""
        queue = self._catalog.cached(self._account, self._queue)
        messages = None if queue is None else self._messages.peek_now(queue, self._count)
        if messages is None:
            return Miss.OPERATION
        body = b"".join(finish(write_peeked(messages, self._version)))
        return Answer(200, _XML_UNCACHED, body, len(messages))


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

    @property
    def has_templates(self) -> bool:
        """See `PreparedOperation`."""
        return self._call.context.alone

    def repeated(self, names: Sequence[str]) -> "RepeatedDelete | None":
        """See `PreparedOperation`."""
        return RepeatedDelete(self._call) if names[:2] == (KEY, KEY) else None

    async def respond(self, _: Request, keys: Keys) -> Response:
        """See `PreparedOperation`."""
        call = self._call
        _require_receipt(keys)
        message, receipt = await _addressed(call, keys)
        if not await call.with_queue(lambda queue: call.context.messages.delete(queue, message, receipt)):
            raise ServiceError("MessageNotFound")
        return Response(204)


class RepeatedDelete:
    """A delete, for templates. Implements `RepeatedOperation`.

    Args:
        call: of a request that has succeeded.
    """

    __slots__ = ("_account", "_catalog", "_messages", "_queue")
    waits = True

    def __init__(self, call: Call) -> None:
        self._catalog, self._messages = call.context.catalog, call.context.messages
        self._account, self._queue = call.account, call.resource.queue

    def answer(self, values: HeadValues, _: bytes, later: PendingAnswer | None) -> Miss | None:
        """See `RepeatedOperation`."""
        queue = self._catalog.cached(self._account, self._queue)
        try:
            message = read_id(values[0].decode("ascii"))
            sent = read_receipt(percent_decode(values[1].decode("ascii")))
        except (ServiceError, ValueError):
            return Miss.OPERATION
        assert later is not None, "it waits"
        joined = _Joined(later)
        if queue is None or not self._messages.delete_now(queue, message, sent.of(message), joined):
            return Miss.OPERATION
        joined.answer = _answer_to_delete
        return None


def _answer_to_delete() -> Answer:
    return Answer(204, "")


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
