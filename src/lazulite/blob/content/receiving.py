"""The body of a request on its way to the store: small ones into a row, others into a content, window by window.

Invariants: at most a window of a body and what the content store has in hand is in memory. A content that no commit
came to refer to is deleted here; only where the outcome of the commit is unknown, the sweep of the store decides.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, TypeVar

from lazulite.blob.content.digests import Digests, Rule, digests_of_request
from lazulite.blob.content.sources import SOURCE, source_bytes
from lazulite.blob.content.structured_body import (
    BODY_HEADER,
    StructuredDecoder,
    decoded,
    read_structured_length,
    unsupported_structure,
)
from lazulite.blob.model.blob import INLINE_BYTES_MAX
from lazulite.blob.requests.call import Call
from lazulite.engine.content.contract import ContentId, ContentStore, ContentWriter, Owner
from lazulite.engine.contract import EngineError, SpaceDroppedError
from lazulite.protocol.errors import ServiceError, missing_length
from lazulite.protocol.message import pieces

T = TypeVar("T")


class ReceivedContent(NamedTuple):
    """A body that was received whole."""

    length: int
    inline: bytes
    """The bytes, unless there is a content."""
    content: ContentId | None
    digests: Digests
    """The digests of the bytes."""

    @property
    def number(self) -> int | None:
        """The number of the content; None: there is none."""
        return None if self.content is None else self.content.number


NOTHING = ReceivedContent(0, b"", None, Digests())
"""Before a body was received."""


async def receive(call: Call, owner: Owner, rule: Rule, content: AsyncIterator[bytes] | None = None) -> ReceivedContent:
    """Receive the body of a request whose route streams it, or the bytes at the URL that stands for a body.

    A structured body is decoded.

    Args:
        call: the request.
        owner: the partition whose rows are to refer to it.
        rule: of the operation, for checksums.
        content: what stands for the body, if it is open already.

    Raises:
        ServiceError: the body is too long, too slow, malformed, or not the one of its digests. Nothing is left of it.
        ClientDisconnectedError: it never became whole. Likewise.
        EngineUnavailableError: the content cannot be stored.
    """
    digests = digests_of(call, rule)
    chunks = content_of(call, digests) if content is None else content
    return await store(call.context.contents, owner, chunks, digests)


def digests_of(call: Call, rule: Rule) -> Digests:
    """Return the checksums of the content of a request, to be computed; with the URL of a source, those of its bytes.

    Raises:
        ServiceError: `UnsupportedHeader`, the body is structured and the operation takes no such one; or as
            `digests_of_request`.
    """
    headers = call.request.headers
    if rule.from_url is not None and SOURCE in headers:
        rule = rule.from_url
    if not rule.takes_structure and BODY_HEADER in headers:
        raise unsupported_structure(headers)
    return digests_of_request(rule, headers, call.version)


def length_of(call: Call) -> int:
    """Return the announced bytes of the content of a request. Raises `MissingContentLengthHeader`, or 400."""
    structured = read_structured_length(call.request.headers)
    encoded = _encoded_length(call)
    if encoded is None:
        raise missing_length()
    return encoded if structured is None else structured


def content_of(call: Call, digests: Digests) -> AsyncIterator[bytes]:
    """Accept the body of a request, or what stands for it, and yield its content in chunks. Raises as `receive`.

    The digests are to take in the content.
    """
    if SOURCE in call.request.headers:
        return source_bytes(call)
    length, encoded = read_structured_length(call.request.headers), _encoded_length(call)
    body = call.request.body_to_come
    call.request.body_to_come = None
    chunks = _whole(call.request.body) if body is None else body.chunks()
    return chunks if length is None else _decoded(chunks, StructuredDecoder(length, encoded), digests)


async def whole_content_of(call: Call, digests: Digests) -> bytes:
    """Return the content of a request whose body was received whole. Raises as `decoded`.

    The digests are to take in the content.
    """
    body = call.request.body
    length = read_structured_length(call.request.headers)
    if length is None:
        return body
    decoder = StructuredDecoder(length, len(body))
    return b"".join([chunk async for chunk in _decoded(_whole(body), decoder, digests)])


def checked_headers(call: Call, digests: Digests) -> list[tuple[str, str]]:
    """Return the headers of a response that tell how a body was checked."""
    structure = call.request.headers.get(BODY_HEADER)
    return digests.headers() if structure is None else [*digests.headers(), (BODY_HEADER, structure)]


async def store(
    contents: ContentStore, owner: Owner, chunks: AsyncIterator[bytes], digests: Digests
) -> ReceivedContent:
    """Store bytes.

    Args:
        contents: the store.
        owner: the partition whose rows are to refer to them.
        chunks: the bytes, in windows.
        digests: take in the bytes, and check them at the end. A window takes them less than a millisecond.

    Raises:
        ServiceError: the bytes are not those of their digests; or as the chunks. Nothing is left of the bytes.
        EngineUnavailableError: likewise.
    """
    inline = b""
    writer: ContentWriter | None = None
    try:
        async for chunk in chunks:
            digests.update(chunk)
            if writer is None and digests.length <= INLINE_BYTES_MAX:
                inline += chunk
                continue
            if writer is None:
                writer = await contents.create(owner)
                if inline:
                    await writer.write(inline)
                inline = b""
            await writer.write(chunk)
        digests.check()
        content = None if writer is None else await writer.seal()
        writer = None
    finally:
        if writer is not None:
            await writer.discard()
    return ReceivedContent(digests.length, inline, content, digests)


async def commit_received(contents: ContentStore, received: ReceivedContent, commit: Callable[[], Awaitable[T]]) -> T:
    """Return what `commit` returns, which makes a row refer to a body; delete the body if it is rejected.

    Raises:
        ServiceError, SpaceDroppedError: the commit was rejected.
        EngineError: its outcome may be unknown.
    """
    content = received.content
    if content is None:
        return await commit()
    try:
        result = await commit()
    except (ServiceError, SpaceDroppedError):
        await _delete(contents, content)
        raise
    contents.keep(content)
    return result


async def _delete(contents: ContentStore, content: ContentId) -> None:
    try:
        await contents.delete([content])
    except EngineError:
        return  # The next start deletes it.


def _encoded_length(call: Call) -> int | None:
    coming = call.request.body_to_come
    return len(call.request.body) if coming is None else coming.length


def _decoded(chunks: AsyncIterator[bytes], decoder: StructuredDecoder, digests: Digests) -> AsyncIterator[bytes]:
    digests.take_crc64(decoder.checksum)
    return decoded(chunks, decoder)


async def _whole(body: bytes) -> AsyncIterator[bytes]:
    for piece in pieces(body):
        yield piece
