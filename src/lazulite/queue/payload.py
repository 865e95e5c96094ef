"""The XML of queues and messages. Source: reference §26.1, §28, §28.8."""

import re
from collections.abc import Callable, Iterable, Sequence

from lazulite.protocol.addressing import Address
from lazulite.protocol.clock import format_http_date
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute, content
from lazulite.queue import limits
from lazulite.queue.catalog import Queue
from lazulite.queue.model.message import Message, write_id, write_receipt
from lazulite.queue.versions import DEQUEUE_COUNT_SINCE, LIST_WITHOUT_URL_SINCE, LONG_TEXT_SINCE

_ELEMENTS_MAX = 16
_USUAL_OPENING = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?>(?:<\?xml\ version=(?:"1.0"|'1.0')(?>(?:\ encoding=(?:"(?i:utf-8)"|'(?i:utf-8)'))?)
    (?>(?:\ standalone=(?:"yes"|'yes'))?)\ ?\?>[ \t\r\n]*+)?)<QueueMessage>[ \t\r\n]*+<MessageText>""",
    re.VERBOSE,
)
_USUAL_CLOSING = re.compile(rb"</MessageText>[ \t\r\n]*+</QueueMessage>[ \t\r\n]*+")
"""What stands before and behind the texts of usual clients."""
_USUAL_BYTES_MAX = 32 * 1024
_ESCAPES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&apos;", b"'"), (b"&amp;", b"&"))
"""In this order, so that nothing is unescaped twice."""
_PLAIN = bytes(each for each in (0x09, 0x0A, *range(0x20, 0x7F)) if each not in b"&<>")
"""Characters that stand for themselves in a document."""
_OPENING, _CLOSING = xml.document("<QueueMessagesList>").decode(), "</QueueMessagesList>"
_NO_TEXT = b"<MessageText /></QueueMessage>"


def usual_text(body: bytes, version: str) -> bytes | None:
    """Return the text of a message from a body as clients write it; None: `read_text` has to read it."""
    if len(body) > _USUAL_BYTES_MAX:
        return None
    opening, end = _USUAL_OPENING.match(body), body.rfind(b"</MessageText>")
    if opening is None or _USUAL_CLOSING.fullmatch(body, max(0, end)) is None:
        return None
    text = body[opening.end() : end]
    if marks := text.translate(None, _PLAIN):
        escapes_left = marks.count(b"&")
        if len(marks) > escapes_left and (marks.translate(None, b"&>") or b"]]>" in text):
            return None
        for escape, character in _ESCAPES:
            if escapes_left:
                length, text = len(text), text.replace(escape, character)
                escapes_left -= (length - len(text)) // (len(escape) - 1)
        if escapes_left:
            return None
    return text if len(text) <= _most(version) else None


def read_text(body: bytes, version: str) -> Steps[bytes]:
    """Read the text of a message from a `QueueMessage` document, white space included.

    Raises:
        ServiceError: `InvalidXmlDocument`; `RequestBodyTooLarge`, the text is.
    """
    root = yield from xml.parse_in_steps(body, max_bytes=limits.BODY_BYTES_MAX, max_elements=_ELEMENTS_MAX)
    if root.name != "QueueMessage":
        raise xml.invalid_document("The root must be QueueMessage.", root.position)
    nodes = [node for node in xml.only_children(root) if node.name == "MessageText"]
    if len(nodes) != 1 or nodes[0].children:
        raise xml.invalid_document("QueueMessage needs one MessageText, which holds text only.", root.position)
    text = nodes[0].text.encode()
    if len(text) > _most(version):
        most = limits.BODY_BYTES_STATED if len(body) > limits.BODY_BYTES_STATED else _most(version)
        raise ServiceError("RequestBodyTooLarge", details=[("MaxLimit", str(most))])
    return text


def _most(version: str) -> int:
    return limits.TEXT_BYTES_MAX if version >= LONG_TEXT_SINCE else limits.SHORT_TEXT_BYTES_MAX


def write_put(message: Message) -> bytes:
    """Return the response to a put."""
    return f"{_OPENING}{_identity(message)}{_claim(message)}</QueueMessage>{_CLOSING}".encode()


def write_got(messages: Iterable[Message], version: str) -> Steps[list[bytes]]:
    """Return the response to a get, in parts."""
    return _list(messages, version, _claim)


def write_peeked(messages: Iterable[Message], version: str) -> Steps[list[bytes]]:
    """Return the response to a peek, in parts."""
    return _list(messages, version, lambda _: "")


def _list(messages: Iterable[Message], version: str, claim: Callable[[Message], str]) -> Steps[list[bytes]]:
    counted = version >= DEQUEUE_COUNT_SINCE
    parts: list[bytes] = []
    head = _OPENING
    for message in messages:
        count = f"<DequeueCount>{message.dequeues}</DequeueCount>" if counted else ""
        parts.append(f"{head}{_identity(message)}{claim(message)}{count}".encode())
        text = message.text
        if text.translate(None, _PLAIN):
            text = content(text.decode()).encode()
        parts += (b"<MessageText>", text, b"</MessageText></QueueMessage>") if text else (_NO_TEXT,)
        head = ""
        yield
    return [*parts, _CLOSING.encode()] if parts else [xml.document(xml.element("QueueMessagesList"))]


def _identity(message: Message) -> str:
    return (
        f"<QueueMessage><MessageId>{write_id(message.id)}</MessageId>"
        f"<InsertionTime>{format_http_date(message.inserted)}</InsertionTime>"
        f"<ExpirationTime>{format_http_date(message.expires)}</ExpirationTime>"
    )


def _claim(message: Message) -> str:
    return (
        f"<PopReceipt>{write_receipt(message)}</PopReceipt>"
        f"<TimeNextVisible>{format_http_date(message.visible)}</TimeNextVisible>"
    )


def write_queues(
    address: Address,
    version: str,
    sent: Sequence[tuple[str, str]],
    queues: Iterable[Queue],
    *,
    with_metadata: bool,
    marker: str,
) -> Steps[list[bytes]]:
    """Return a page of a list of queues, in parts.

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
    written = []
    for queue in queues:
        written.append(_queue(queue, base, with_metadata=with_metadata))
        yield
    listed = xml.element("Queues", *written)
    parameters = "".join(xml.leaf(name, text) for name, text in sent)
    return [xml.document(f"{opening}{parameters}{listed}{xml.leaf('NextMarker', marker)}</EnumerationResults>")]


def _queue(queue: Queue, base: str, *, with_metadata: bool) -> str:
    url = [xml.leaf("Url", base + queue.name)] if base else []
    pairs = (xml.leaf(name, text) for name, text in queue.metadata)
    metadata = [xml.element("Metadata", *pairs)] if with_metadata else []
    return xml.element("Queue", xml.leaf("Name", queue.name), *url, *metadata)
