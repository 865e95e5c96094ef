"""The source of a copy, given as a URL. Source: reference §41.

A URL of this service is resolved here, and never fetched. A source is read as if its URL was requested by itself, with
the SAS in it, or without credentials. Only Copy Blob opens each blob of its own account. Any other URL is a foreign
source (`fetched_source`).
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from lazulite.auth.grant import SHARED_KEY_GRANT
from lazulite.blob.auth.requirements import READ_TAGS
from lazulite.blob.content.fetched_source import FetchedSource, fetched_source, source_authorization
from lazulite.blob.content.reading import read_bytes
from lazulite.blob.content.source_errors import SourceUse, unmet, unverified_as
from lazulite.blob.model.blob import Blob, require_not_archived
from lazulite.blob.model.byte_range import ByteRange, read_source_range
from lazulite.blob.model.conditions import Outcome
from lazulite.blob.model.copy_source import ForeignSource, LocalSource, read_copy_source
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import require_header
from lazulite.blob.requests.preconditions import OF_SOURCES, SOURCE_PREFIX, read_conditions
from lazulite.blob.storage.readers import Partition
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request
from lazulite.protocol.query_string import parse_query_string

SOURCE = "x-ms-copy-source"
TAG_OPTION, COPY_TAGS = "x-ms-copy-source-tag-option", "COPY"
_IF_TAGS = f"{SOURCE_PREFIX}if-tags"


@dataclass(frozen=True, slots=True)
class Source:
    """A blob, snapshot or version that a request may copy."""

    call: Call
    """The request of its URL."""
    blob: Blob
    partition: Partition
    wanted: ByteRange | None = None
    """The bytes that are read; None: all."""

    async def content(self, bytes_max: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes that are wanted.

        Raises:
            ServiceError: `RequestBodyTooLarge`, they are more than `bytes_max`; 416; or as `read_bytes`.
        """
        length = self.blob.length
        start, stop = (0, length) if self.wanted is None else self.wanted.within(length)
        if stop - start > bytes_max:
            raise ServiceError("RequestBodyTooLarge")
        async with aclosing(self.chunks(start, stop)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def chunks(self, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """Yield its bytes from `start` up to `stop`. Raises as `read_bytes`."""
        context = self.call.context
        context.garbage.readers.begin(self.partition)
        try:
            async with aclosing(read_bytes(context, self.partition, self.blob, start, stop)) as found:
                async for piece in found:
                    yield bytes(piece)
        finally:
            context.garbage.readers.end(self.partition)


async def source_bytes(call: Call) -> AsyncIterator[bytes]:
    """Yield the bytes at the URL that stands for a request's body, or the range of them that it names.

    Raises:
        ServiceError: as `open_source`; `RequestBodyTooLarge`; 416 for the range.
    """
    async with (
        open_source(call, SourceUse.PART, read_source_range(call.request.headers)) as source,
        aclosing(source.content(call.body_bytes_max)) as chunks,
    ):
        async for chunk in chunks:
            yield chunk


@asynccontextmanager
async def open_source(
    call: Call, use: SourceUse, wanted: ByteRange | None = None, *, allows_archived: bool = False
) -> AsyncIterator[Source | FetchedSource]:
    """Yield the source that the headers of a request name.

    Args:
        call: the request.
        use: the operation.
        wanted: the bytes that are read of it; None: all.
        allows_archived: whether the source may be archived.

    Raises:
        ServiceError: `CannotVerifyCopySource`, with the status and code that the source's own request would get;
            `SourceConditionNotMet`; 400 for the URL.
    """
    found = read_copy_source(require_header(call.request.headers, SOURCE), call.request, call.context.addressing)
    if isinstance(found, ForeignSource):
        async with fetched_source(call, found, wanted, use) as fetched:
            yield fetched
    else:
        yield await _own_source(call, found, use, wanted, allows_archived=allows_archived)


async def _own_source(
    call: Call, found: LocalSource, use: SourceUse, wanted: ByteRange | None, *, allows_archived: bool
) -> Source:
    request = _request(call, found)
    kernel = call.context.inner.kernel
    try:
        source = await kernel.admit(
            request, SHARED_KEY_GRANT if use is SourceUse.COPY and _is_opened(call, found) else None
        )
        if _IF_TAGS in call.request.headers or call.request.headers.get(TAG_OPTION) == COPY_TAGS:
            source.authorize(READ_TAGS)
        container, _, blob = await source.locate()
        if not allows_archived:
            require_not_archived(blob)
    except ServiceError as error:
        raise unverified_as(error) from None
    outcome = read_conditions(OF_SOURCES, call.request.headers, call.version).read(blob.validators)
    if outcome is not Outcome.MET:
        raise unmet(outcome, use)
    return Source(source, blob, (container.space, source.resource.blob), wanted)


def _request(call: Call, source: LocalSource) -> Request:
    """Return the request of a source's URL. It has the version of the request that names it."""
    sent, request = call.request, source.request
    headers = {**request.headers, "x-ms-version": call.version}
    authorization = source_authorization(sent.headers)
    if authorization is not None:
        headers["authorization"] = authorization
    return Request("GET", request.path, request.query, headers, scheme=request.scheme, client=sent.client, id=sent.id)


def _is_opened(call: Call, source: LocalSource) -> bool:
    """Tell whether Copy Blob opens a source: it is in the account whose key signed the request, and has no SAS."""
    has_sas = "sig" in parse_query_string(source.request.query)
    return call.grant.kind == "shared-key" and source.address.account == call.account and not has_sas
