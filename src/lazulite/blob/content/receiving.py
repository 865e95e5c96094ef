"""Receive request bodies: a small body is stored in its row, a larger one as a content, window by window.

Invariants: memory holds at most one window of a body, and the buffers of the content store. If the commit is rejected,
this module deletes the content. If the outcome is unknown, the store decides at its next start.
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


EMPTY = ReceivedContent(0, b"", None, Digests())
"""The result for a request without a body. It also stands for a body that was not received yet."""


async def receive(call: Call, owner: Owner, rule: Rule, content: AsyncIterator[bytes] | None = None) -> ReceivedContent:
    """Receive the body of a request whose route streams it, or the bytes at the URL that stands for a body.

    A structured body is decoded.

    Args:
        call: the request.
        owner: the partition whose rows may refer to the content.
        rule: the checksums of the operation.
        content: the bytes at the URL, if they are open already.

    Raises:
        ServiceError: the body is too long, too slow or malformed, or does not match its checksums. The stored bytes
            are deleted.
        ClientDisconnectedError: the client disconnected before the end of the body. The stored bytes are deleted.
        EngineUnavailableError: the content cannot be stored.
    """
    digests = create_digests(call, rule)
    if content is None and _is_small(call):
        await call.request.receive_body()
        return _taken_in(call.request.body, digests)
    chunks = open_content(call, digests) if content is None else content
    return await store(call.context.contents, owner, chunks, digests)


async def receive_allowed(
    call: Call,
    owner: Owner,
    rule: Rule,
    allow: Callable[[], Awaitable[None]],
    content: AsyncIterator[bytes] | None = None,
) -> ReceivedContent:
    """Receive as `receive`, unless the request can be rejected by what is stored, before its body comes.

    Of a body that has come already, only a rejection of the body asks for that first: the commit decides soon enough.

    Args:
        call: the request.
        owner: as of `receive`.
        rule: as of `receive`.
        allow: rejects the request by what is stored.
        content: as of `receive`.

    Raises:
        ServiceError: of `allow`; or as `receive`, with its other errors.
    """
    coming = call.request.body_to_come
    if coming is None:
        return await receive(call, owner, rule, content)
    if not (coming.is_whole and _is_small(call)):
        await allow()
        return await receive(call, owner, rule, content)
    try:
        return await receive(call, owner, rule, content)
    except ServiceError:
        await allow()
        raise


def _is_small(call: Call) -> bool:
    """Tell whether the content of a request is its body as it comes, and in its row."""
    headers, length = call.request.headers, _encoded_length(call)
    return length is not None and length <= INLINE_BYTES_MAX and SOURCE not in headers and BODY_HEADER not in headers


def receive_now(call: Call, rule: Rule) -> ReceivedContent | None:
    """Return what `receive` returns for a small body that is whole; None for any other. Raises as `receive`."""
    if call.request.body_to_come is not None or not _is_small(call):
        return None
    return _taken_in(call.request.body, create_digests(call, rule))


def _taken_in(body: bytes, digests: Digests) -> ReceivedContent:
    digests.update(body)
    digests.check()
    return ReceivedContent(len(body), body, None, digests)


def create_digests(call: Call, rule: Rule) -> Digests:
    """Return new digests for the content of a request; with the URL of a source, for the bytes at the URL.

    Raises:
        ServiceError: `UnsupportedHeader`, the body is structured and the operation takes no structured body; or as
            `digests_of_request`.
    """
    headers = call.request.headers
    if rule.from_url is not None and SOURCE in headers:
        rule = rule.from_url
    if not rule.takes_structure and BODY_HEADER in headers:
        raise unsupported_structure(headers)
    return digests_of_request(rule, headers, call.version)


def read_length(call: Call) -> int:
    """Return the announced length of a request's content, in bytes. Raises `MissingContentLengthHeader`, or 400."""
    structured = read_structured_length(call.request.headers)
    encoded = _encoded_length(call)
    if encoded is None:
        raise missing_length()
    return encoded if structured is None else structured


def open_content(call: Call, digests: Digests) -> AsyncIterator[bytes]:
    """Return the content of a request in chunks: of its body, or at the URL of a source. Raises as `receive`.

    For a structured body, `digests` takes its CRC-64 from the decoder; the caller updates `digests` with each chunk.
    """
    if SOURCE in call.request.headers:
        return source_bytes(call)
    length, encoded = read_structured_length(call.request.headers), _encoded_length(call)
    body = call.request.body_to_come
    call.request.body_to_come = None
    chunks = _whole(call.request.body) if body is None else body.chunks()
    return chunks if length is None else _decoded(chunks, StructuredDecoder(length, encoded), digests)


async def read_whole_content(call: Call, digests: Digests) -> bytes:
    """Return the content of a request whose body was received whole. Raises as `decoded`.

    For a structured body, `digests` takes its CRC-64 from the decoder; the caller updates `digests` with the content.
    """
    body = call.request.body
    length = read_structured_length(call.request.headers)
    if length is None:
        return body
    decoder = StructuredDecoder(length, len(body))
    return b"".join([chunk async for chunk in _decoded(_whole(body), decoder, digests)])


def make_checksum_headers(call: Call, digests: Digests) -> list[tuple[str, str]]:
    """Return the headers of a response that tell which checksums of the body were verified."""
    structure = call.request.headers.get(BODY_HEADER)
    return digests.headers() if structure is None else [*digests.headers(), (BODY_HEADER, structure)]


async def store(
    contents: ContentStore, owner: Owner, chunks: AsyncIterator[bytes], digests: Digests
) -> ReceivedContent:
    """Store chunks inline or as a content, and verify their checksums.

    Args:
        contents: the store.
        owner: the partition whose rows may refer to the content.
        chunks: the bytes, in windows.
        digests: new digests, with the checksums to compare. `update` blocks the event loop for less than a millisecond
            per window.

    Raises:
        ServiceError: the bytes do not match their checksums; or as the chunks. The stored bytes are deleted.
        EngineUnavailableError: the content cannot be stored. The stored bytes are deleted.
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
    """Run `commit`, which writes a row that refers to the body. Return its result.

    If the commit is rejected, delete the body's content.

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
