"""The XML of queues and messages. Source: reference §26.1, §28, §28.8."""

from collections.abc import Iterable, Sequence
from email.utils import formatdate

from lazulite.protocol.addressing import Address
from lazulite.protocol.clock import LAST_TICK, TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute
from lazulite.queue import limits
from lazulite.queue.catalog import Queue
from lazulite.queue.model.message import Message
from lazulite.queue.model.receipt import write_receipt
from lazulite.queue.versions import DEQUEUE_COUNT_SINCE, LIST_WITHOUT_URL_SINCE, LONG_TEXT_SINCE

_ELEMENTS_MAX = 16


def read_text(body: bytes, version: str) -> Steps[bytes]:
    """Read the text of a message from a `QueueMessage` document, white space included.

    Raises:
        ServiceError: `InvalidXmlDocument`; `RequestBodyTooLarge`, the text is.
    """
    root = yield from xml.reading(body, max_bytes=limits.BODY_BYTES_MAX, max_elements=_ELEMENTS_MAX)
    if root.name != "QueueMessage":
        raise xml.invalid_document("The root must be QueueMessage.", root.place)
    nodes = [node for node in xml.only_children(root) if node.name == "MessageText"]
    if len(nodes) != 1 or nodes[0].children:
        raise xml.invalid_document("QueueMessage needs one MessageText, which holds text only.", root.place)
    text = nodes[0].text.encode()
    most = limits.TEXT_BYTES_MAX if version >= LONG_TEXT_SINCE else limits.SHORT_TEXT_BYTES_MAX
    if len(text) > most:
        raise ServiceError("RequestBodyTooLarge", details=[("MaxLimit", str(most))])
    return text


def format_date(ticks: int) -> str:
    """Return an instant as RFC 1123 has it."""
    return formatdate((min(ticks, LAST_TICK) - UNIX_EPOCH_TICKS) // TICKS_PER_SECOND, usegmt=True)


def write_put(message: Message) -> bytes:
    """Return the response to a put."""
    return xml.document(xml.element("QueueMessagesList", _message(message, *_times(message), *_claim(message))))


def write_got(messages: Iterable[Message], version: str) -> Steps[bytes]:
    """Return the response to a get."""
    return _list(
        _message(message, *_times(message), *_claim(message), *_content(message, version)) for message in messages
    )


def write_peeked(messages: Iterable[Message], version: str) -> Steps[bytes]:
    """Return the response to a peek."""
    return _list(_message(message, *_times(message), *_content(message, version)) for message in messages)


def _list(messages: Iterable[str]) -> Steps[bytes]:
    written = yield from _collect(messages)
    return xml.document(xml.element("QueueMessagesList", *written))


def _collect(parts: Iterable[str]) -> Steps[list[str]]:
    """Make parts of a document, each in a step."""
    made = []
    for part in parts:
        made.append(part)
        yield
    return made


def _message(message: Message, *leaves: str) -> str:
    return xml.element("QueueMessage", xml.leaf("MessageId", str(message.id)), *leaves)


def _times(message: Message) -> tuple[str, str]:
    return (
        xml.leaf("InsertionTime", format_date(message.inserted)),
        xml.leaf("ExpirationTime", format_date(message.expires)),
    )


def _claim(message: Message) -> tuple[str, str]:
    return (
        xml.leaf("PopReceipt", write_receipt(message)),
        xml.leaf("TimeNextVisible", format_date(message.visible)),
    )


def _content(message: Message, version: str) -> list[str]:
    count = [xml.leaf("DequeueCount", str(message.dequeues))] if version >= DEQUEUE_COUNT_SINCE else []
    return [*count, xml.leaf("MessageText", message.text.decode())]


def write_queues(
    address: Address,
    version: str,
    sent: Sequence[tuple[str, str]],
    queues: Iterable[Queue],
    *,
    with_metadata: bool,
    marker: str,
) -> Steps[bytes]:
    """Return a page of a list of queues.

    Args:
        address: of the request.
        version: of the request.
        sent: elements for the parameters that the request has.
        queues: of the page.
        with_metadata: whether each has its metadata.
        marker: of the next page; "" if this is the last one.
    """
    if version >= LIST_WITHOUT_URL_SINCE:
        opening = f'<EnumerationResults ServiceEndpoint="{attribute(address.base)}">'
        base = ""
    else:
        opening = f'<EnumerationResults AccountName="{attribute(address.base)}">'
        base = address.base
    written = yield from _collect(_queue(queue, base, with_metadata=with_metadata) for queue in queues)
    listed = xml.element("Queues", *written)
    parameters = "".join(xml.leaf(name, text) for name, text in sent)
    return xml.document(f"{opening}{parameters}{listed}{xml.leaf('NextMarker', marker)}</EnumerationResults>")


def _queue(queue: Queue, base: str, *, with_metadata: bool) -> str:
    url = [xml.leaf("Url", base + queue.name)] if base else []
    pairs = (xml.leaf(name, text) for name, text in queue.metadata)
    metadata = [xml.element("Metadata", *pairs)] if with_metadata else []
    return xml.element("Queue", xml.leaf("Name", queue.name), *url, *metadata)
