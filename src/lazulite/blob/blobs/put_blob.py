"""Put Blob: create a block blob with its bytes, an empty append blob, or a page blob of zeros.

`NewBlob` is what Put Blob, Put Block List and Copy Blob have in common. Source: reference §36, §40.
"""

from collections.abc import AsyncIterator, Callable, Mapping

from lazulite.blob.auth.requirements import WRITE_TAGS, may_overwrite
from lazulite.blob.blobs.tiers import read_tier_of_write
from lazulite.blob.content.digests import PUT_BLOB, PUT_EMPTY_BLOB
from lazulite.blob.content.receiving import (
    EMPTY,
    ReceivedContent,
    commit_received,
    create_digests,
    make_checksum_headers,
    read_length,
    receive_allowed,
    receive_now,
)
from lazulite.blob.content.sources import COPY_TAGS, SOURCE, TAG_OPTION
from lazulite.blob.limits import PAGE_BLOB_BYTES_MAX, PUT_BLOB_BYTES_BY_VERSION, limit_of
from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders
from lazulite.blob.model.ledger import new_number
from lazulite.blob.model.retention import Retention, replace_blob
from lazulite.blob.model.tags import read_tags_header
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import read_content_headers, read_number, require_header, written
from lazulite.blob.storage.catalog import Container
from lazulite.blob.storage.tag_index import NOT_INDEXED, index_tags
from lazulite.blob.versions import TAGS_SINCE
from lazulite.engine.content.contract import Owner
from lazulite.engine.contract import UNKNOWN, Waiter
from lazulite.protocol.errors import ServiceError, invalid_header, missing_header
from lazulite.protocol.message import Response
from lazulite.protocol.metadata import read_metadata

TYPE, _LENGTH, _SEQUENCE = "x-ms-blob-type", "x-ms-blob-content-length", "x-ms-blob-sequence-number"
_PAGE_BYTES = 512

Make = Callable[[Blob, ReceivedContent], Blob]
"""Takes what all types have in common, and the body, to a blob of one type."""
_REPLACE = "REPLACE"


async def put_blob(call: Call) -> Response:
    """Create a blob in place of any that has its name; its lease and its snapshots stay."""
    return await create_blob(call, read_content_headers(call.request.headers))


def put_blob_now(call: Call, waiter: Waiter) -> Response | None:
    """Put a small block blob in this step, see `operation.Begin`. Raises as `put_blob`."""
    retention, container = call.retention_now(), call.container_now()
    if retention is None or container is None:
        return None
    put = BlobPut(call, read_content_headers(call.request.headers), retention)
    received = receive_now(call, PUT_BLOB) if put.type is BlobType.BLOCK and not put.new_blob.has_tags else None
    if received is None:
        return None
    put.received = received
    blob = call.commit_now(container, put.decide, waiter)
    return None if blob is UNKNOWN else put.response(blob)


async def create_blob(
    call: Call,
    content_headers: ContentHeaders,
    content: AsyncIterator[bytes] | None = None,
    source: Blob | None = None,
) -> Response:
    """Create a blob with stored headers that are read already, and the content of `receive`. See `put_blob`.

    The tags are those of `source` if the request says so.
    """
    put = BlobPut(call, content_headers, await call.retention())
    if source is not None:
        put.new_blob.take_tags(source)
    container = await call.container()

    async def allow() -> None:
        await call.decide_early(container, put.decide)

    if put.new_blob.has_tags:
        await allow()
    if put.type is BlobType.BLOCK:
        owner = Owner(container.space, call.resource.blob)
        put.received = await receive_allowed(call, owner, PUT_BLOB, allow, content)
    else:
        create_digests(call, PUT_EMPTY_BLOB).check()
    await put.new_blob.prepare(container)
    return put.response(
        await commit_received(call.context.contents, put.received, lambda: call.commit(container, put.decide))
    )


class BlobPut:
    """One Put Blob, or Put Blob From URL.

    Args:
        call: the request.
        content_headers: to be stored with the blob.
        retention: what is kept of its predecessor.

    Attributes:
        type: of the blob.
        new_blob: the blob without its bytes.
        received: its content, once it was received.

    Raises:
        ServiceError: 400, 411, 413.
    """

    def __init__(self, call: Call, content_headers: ContentHeaders, retention: Retention) -> None:
        headers = call.request.headers
        text = require_header(headers, TYPE)
        make = _TYPES.get(text)
        if make is None:
            raise invalid_header(TYPE, text)
        self._call = call
        self.type = type_ = BlobType(text)
        check_length(call, limit_of(PUT_BLOB_BYTES_BY_VERSION, call.version) if type_ is BlobType.BLOCK else 0)
        self._make = make(headers, call)
        self.new_blob = NewBlob(call, type_, content_headers, retention)
        self.received = EMPTY

    def decide(self, transaction: Transaction) -> Blob:
        """Write the blob and return it. Raises as `NewBlob.allow`."""
        return self.new_blob.put(transaction, self._make(self.new_blob.allow(transaction), self.received))

    def response(self, blob: Blob) -> Response:
        """Return the response, given the blob as it was written."""
        checked = make_checksum_headers(self._call, self.received.digests) if self.type is BlobType.BLOCK else ()
        return Response(201, written(blob, *checked))


def check_length(call: Call, most: int) -> None:
    """Reject a body without a length, and one whose content is too long. With the URL of a source, there is none.

    Raises:
        ServiceError: `MissingContentLengthHeader`, `RequestBodyTooLarge`, `InvalidHeaderValue` where there can be none.
    """
    most = 0 if SOURCE in call.request.headers else most
    length = read_length(call)
    if length and not most:
        raise invalid_header("Content-Length", str(length))
    if length > most:
        raise ServiceError("RequestBodyTooLarge", details=[("MaxLimit", str(most))])


def _block(_: Mapping[str, str], __: Call) -> Make:
    def make(common: Blob, received: ReceivedContent) -> Blob:
        headers = common.headers._replace(md5=received.digests.md5)
        return common._replace(headers=headers, length=received.length, inline=received.inline, content=received.number)

    return make


def _append(_: Mapping[str, str], call: Call) -> Make:
    number = new_number(call.context.random)
    return lambda common, _: common._replace(list=number)


def _page(headers: Mapping[str, str], call: Call) -> Make:
    length = read_number(headers, _LENGTH, 0, PAGE_BLOB_BYTES_MAX)
    if length is None:
        raise missing_header(_LENGTH)
    if length % _PAGE_BYTES:
        raise invalid_header(_LENGTH, headers[_LENGTH])
    sequence = read_number(headers, _SEQUENCE) or 0
    number = new_number(call.context.random)
    return lambda common, _: common._replace(list=number, length=length, sequence=sequence)


_TYPES: Mapping[str, Callable[[Mapping[str, str], Call], Make]] = {
    BlobType.BLOCK: _block,
    BlobType.APPEND: _append,
    BlobType.PAGE: _page,
}
"""For each type, what reads the headers that it alone has."""


class NewBlob:
    """What a request says of the blob that it creates.

    Args:
        call: the request.
        type_: of the blob.
        headers: to be stored with it.
        retention: what is kept of its predecessor.

    Raises:
        ServiceError: 400.
    """

    def __init__(self, call: Call, type_: BlobType, headers: ContentHeaders, retention: Retention) -> None:
        sent = call.request.headers
        self._type = type_
        self._headers = headers
        self._retention = retention
        self._metadata = read_metadata(sent)
        self._overwrites = may_overwrite(call.grant, call.resource.name)
        self._tags = _read_tags(call)
        self._indexed = NOT_INDEXED
        self._call = call
        self._tier = read_tier_of_write(sent, type_, call.version)

    def allow(self, transaction: Transaction) -> Blob:
        """Return the blob without its bytes, if its predecessor allows it.

        Raises:
            ServiceError: the credentials, the lease or a condition do not allow it.
        """
        found = transaction.found if transaction.found is not None and not transaction.found.deleted else None
        if found is not None and not self._overwrites:
            raise ServiceError("UnauthorizedBlobOverwrite")
        lease = self._call.preconditions.allow_write(found, transaction.present)
        self._indexed.check(transaction.now)
        return Blob(
            type=self._type,
            modified=transaction.modified,
            created=transaction.modified,
            headers=self._headers,
            metadata=self._metadata,
            tags=tuple(self._tags.items()),
            lease=lease,
            tier=self._tier,
            tier_changed=transaction.now if self._tier else 0,
        )

    def take_tags(self, source: Blob) -> None:
        """Take the tags of the source of a copy, if the request says so by `x-ms-copy-source-tag-option: COPY`.

        Raises:
            ServiceError: `InvalidHeaderValue`; the credentials do not permit it; or the request has tags of its own.
        """
        text = self._call.request.headers.get(TAG_OPTION, _REPLACE)
        if text not in (_REPLACE, COPY_TAGS):
            raise invalid_header(TAG_OPTION, text)
        if text == _REPLACE:
            return
        if "x-ms-tags" in self._call.request.headers:
            raise ServiceError("BothUserTagsAndSourceTagsCopyPresentException")
        self._call.authorize(WRITE_TAGS)
        self._tags = dict(source.tags)

    @property
    def has_tags(self) -> bool:
        """Whether the blob gets tags, which `prepare` indexes."""
        return bool(self._tags)

    async def prepare(self, container: Container) -> None:
        """Write what must stand before the blob is written: the index of its tags. Raises `EngineError`."""
        call = self._call
        if self._tags:
            partition = container.space, call.resource.blob
            self._indexed = await index_tags(call.context.engine, partition, self._tags, call.context.clock())

    def put(self, transaction: Transaction, blob: Blob) -> Blob:
        """Write the blob; return it as it is written."""
        return replace_blob(transaction, blob, self._retention)


def _read_tags(call: Call) -> dict[str, str]:
    """Return the `x-ms-tags` of a request, which needs a permission. Raises `ServiceError`."""
    text = call.request.headers.get("x-ms-tags") if call.version >= TAGS_SINCE else None
    if text is None:
        return {}
    call.authorize(WRITE_TAGS)
    return read_tags_header(text)
