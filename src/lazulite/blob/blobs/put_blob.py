"""Put Blob: create a block blob with its bytes, an empty append blob, or a page blob of zeros.

Source: reference §36.1.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace

from lazulite.blob.blobs.creation import Creation
from lazulite.blob.content.digests import PUT_BLOB, PUT_EMPTY_BLOB
from lazulite.blob.content.receiving import (
    NOTHING,
    Received,
    checked_headers,
    commit_received,
    digests_of,
    length_of,
    receive,
)
from lazulite.blob.content.sources import SOURCE
from lazulite.blob.limits import PAGE_BLOB_BYTES_MAX, PUT_BLOB_BYTES_BY_VERSION, limit_of
from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.ledger import new_number
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.request_headers import read_content_headers, read_number, require_header
from lazulite.blob.requests.response_headers import written
from lazulite.engine.content.contract import Owner
from lazulite.protocol.errors import ServiceError, invalid_header, missing_header
from lazulite.protocol.message import Response

TYPE, _LENGTH, _SEQUENCE = "x-ms-blob-type", "x-ms-blob-content-length", "x-ms-blob-sequence-number"
_PAGE_BYTES = 512

Make = Callable[[Blob, Received], Blob]
"""Takes what all types have in common, and the body, to a blob of one type."""


async def put_blob(call: Call) -> Response:
    """Create a blob in place of any that has its name; its lease and its snapshots stay."""
    return await create_blob(call, read_content_headers(call.request.headers))


async def create_blob(
    call: Call,
    content_headers: ContentHeaders,
    content: AsyncIterator[bytes] | None = None,
    source: Blob | None = None,
) -> Response:
    """Create a blob with stored headers that are read already, and the content of `receive`. See `put_blob`.

    The tags are those of `source` if the request says so.
    """
    headers = call.request.headers
    text = require_header(headers, TYPE)
    if text not in _TYPES:
        raise invalid_header(TYPE, text)
    type_ = BlobType(text)
    check_length(call, limit_of(PUT_BLOB_BYTES_BY_VERSION, call.version) if type_ is BlobType.BLOCK else 0)
    make = _TYPES[type_](headers, call)
    creation = Creation(call, type_, content_headers, await call.retention())
    if source is not None:
        creation.take_tags(source)
    container = await call.container()
    last: list[Blob] = []
    received = NOTHING

    def decide(draft: Draft) -> None:
        last[:] = [creation.put(draft, make(creation.allow(draft), received))]

    if call.request.body_to_come is not None or creation.has_tags:
        await call.decide_early(container, decide)
    if type_ is BlobType.BLOCK:
        received = await receive(call, Owner(container.space, call.resource.blob), PUT_BLOB, content)
    else:
        digests_of(call, PUT_EMPTY_BLOB).check()
    await creation.prepare(container)
    await commit_received(call.context.contents, received, lambda: call.commit(container, decide))
    checked = checked_headers(call, received.digests) if type_ is BlobType.BLOCK else []
    return Response(201, written(last[0], *checked))


def check_length(call: Call, most: int) -> None:
    """Reject a body without a length, and one whose content is too long. With the URL of a source, there is none.

    Raises:
        ServiceError: `MissingContentLengthHeader`, `RequestBodyTooLarge`, `InvalidHeaderValue` where there can be none.
    """
    most = 0 if SOURCE in call.request.headers else most
    length = length_of(call)
    if length and not most:
        raise invalid_header("Content-Length", str(length))
    if length > most:
        raise ServiceError("RequestBodyTooLarge", details=[("MaxLimit", str(most))])


def _block(_: Mapping[str, str], __: Call) -> Make:
    def make(common: Blob, received: Received) -> Blob:
        headers = common.headers._replace(md5=received.digests.md5)
        return replace(common, headers=headers, length=received.length, inline=received.inline, content=received.number)

    return make


def _append(_: Mapping[str, str], call: Call) -> Make:
    number = new_number(call.context.random)
    return lambda common, _: replace(common, list=number)


def _page(headers: Mapping[str, str], call: Call) -> Make:
    length = read_number(headers, _LENGTH, 0, PAGE_BLOB_BYTES_MAX)
    if length is None:
        raise missing_header(_LENGTH)
    if length % _PAGE_BYTES:
        raise invalid_header(_LENGTH, headers[_LENGTH])
    sequence = read_number(headers, _SEQUENCE) or 0
    number = new_number(call.context.random)
    return lambda common, _: replace(common, list=number, length=length, sequence=sequence)


_TYPES = {BlobType.BLOCK: _block, BlobType.APPEND: _append, BlobType.PAGE: _page}
