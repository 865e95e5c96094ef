"""Copy Blob, in both forms, and Abort Copy Blob. Source: reference §41.

A copy ends before its response, so no copy is ever pending.
"""

from collections.abc import Callable, Mapping
from contextlib import aclosing
from uuid import UUID

from lazulite.blob.blobs.put_blob import NewBlob, check_length, create_blob
from lazulite.blob.blobs.tiers import TIER, moved, read_priority
from lazulite.blob.content.digests import COPY_BLOB, COPY_BLOB_FROM_URL, Digests
from lazulite.blob.content.fetched_source import FetchedSource
from lazulite.blob.content.receiving import commit_received, create_digests, store
from lazulite.blob.content.source_errors import SourceUse
from lazulite.blob.content.sources import SOURCE, Source, open_source
from lazulite.blob.copies.duplicate import Duplicate
from lazulite.blob.limits import PUT_BLOB_BYTES_MAX
from lazulite.blob.model.blob import ARCHIVE, Blob, BlobType, ContentHeaders, Copy, require_not_archived, shown_source
from lazulite.blob.model.byte_range import read_source_range
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import DEFAULT_TYPE, read_content_headers, read_flag, written
from lazulite.blob.storage.catalog import Container
from lazulite.blob.versions import TIER_OF_WRITES_SINCE
from lazulite.engine.content.contract import Owner
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.fields import METADATA_PREFIX
from lazulite.protocol.message import Response
from lazulite.service.time_slice import TimeSlice

_ACTION = "x-ms-copy-action"
SYNC_BYTES_MAX = 256 * 1024 * 1024
"""The greatest length of the source of a synchronous copy."""


async def copy_blob(call: Call) -> Response:
    """Copy a blob, snapshot or version to the addressed blob."""
    headers = call.request.headers
    check_length(call, 0)
    is_sync = read_flag(headers, "x-ms-requires-sync")
    use = SourceUse.SYNC_COPY if is_sync else SourceUse.COPY
    digests = create_digests(call, COPY_BLOB_FROM_URL if is_sync else COPY_BLOB)
    retention, container = await call.retention(), await call.container()
    async with open_source(call, use, allows_archived=_is_online_tier(headers, call.version)) as source:
        blob = source.blob
        if is_sync and blob.length > SYNC_BYTES_MAX:
            raise ServiceError("CannotVerifyCopySource", status=409)
        copying = _Copying(call, blob, NewBlob(call, blob.type, blob.headers, retention))
        copying.new_blob.take_tags(blob)
        await call.decide_early(container, copying.allow)
        await copying.new_blob.prepare(container)
        if isinstance(source, FetchedSource):
            call.body_bytes_max = SYNC_BYTES_MAX if is_sync else PUT_BLOB_BYTES_MAX
            copied = await _commit_fetched(call, container, source, digests, copying.finish)
        else:
            if is_sync:
                await _compare(call, source, digests)
            copied = await Duplicate(call, container, source).commit(copying.finish)
    pairs = [("x-ms-copy-id", copying.id), ("x-ms-copy-status", "success"), *digests.headers()]
    return Response(202, written(copied, *pairs))


async def _compare(call: Call, source: Source, digests: Digests) -> None:
    """Read a source, which is copied without reading it otherwise, for its checksums. Raises as `Digests.check`."""
    time_slice = TimeSlice(call.context.limits.slice_seconds, call.context.monotonic)
    async with aclosing(source.chunks(0, source.blob.length)) as chunks:
        async for chunk in chunks:
            digests.update(chunk)
            await time_slice.checkpoint()
    digests.check()


class _Copying:
    """One copy on its way to its destination.

    Args:
        call: the request.
        blob: the source.
        new_blob: of the destination.

    Raises:
        ServiceError: `InvalidHeaderValue`.
    """

    def __init__(self, call: Call, blob: Blob, new_blob: NewBlob) -> None:
        headers = call.request.headers
        self._call = call
        self._blob = blob
        self._source = shown_source(headers[SOURCE])
        self._seals = read_flag(headers, "x-ms-seal-blob", default=blob.sealed)
        if self._seals and blob.type is not BlobType.APPEND:
            raise invalid_header("x-ms-seal-blob", "true")
        self._priority, self._seconds = read_priority(headers, call.version), call.switches.rehydrate_after
        self._keeps_metadata = not any(name.startswith(METADATA_PREFIX) for name in headers)
        self.new_blob = new_blob
        self.id = str(UUID(int=call.context.random.getrandbits(128), version=4))

    def allow(self, transaction: Transaction) -> Blob:
        """Return the destination without its bytes. Raises as `_allow`."""
        return _allow(self._call, transaction, self.new_blob)

    def finish(self, transaction: Transaction, made: Blob) -> Blob:
        """Write the destination, with the bytes that were made for it, and return it. Raises as `_allow`."""
        allowed, blob = self.allow(transaction), self._blob
        copy = Copy(self.id, self._source, "success", f"{made.length}/{made.length}", transaction.now)
        copied = allowed._replace(
            metadata=blob.metadata if self._keeps_metadata else allowed.metadata,
            length=made.length,
            inline=made.inline,
            content=made.content,
            list=made.list,
            blocks=blob.blocks,
            sequence=blob.sequence,
            sealed=self._seals,
            copy=copy,
        )
        if blob.tier == ARCHIVE:
            copied = moved(copied._replace(tier=ARCHIVE), copied.tier, self._priority, transaction, self._seconds)
        return self.new_blob.put(transaction, copied)


async def _commit_fetched(
    call: Call,
    container: Container,
    source: FetchedSource,
    digests: Digests,
    finish: Callable[[Transaction, Blob], Blob],
) -> Blob:
    """Store the bytes of a source as one content, then commit the blob that has them. See `Duplicate.commit`."""
    contents, owner = call.context.contents, Owner(container.space, call.resource.blob)
    async with aclosing(source.content(call.body_bytes_max)) as chunks:
        received = await store(contents, owner, chunks, digests)
    made = source.blob._replace(length=received.length, inline=received.inline, content=received.number)
    return await commit_received(
        contents, received, lambda: call.commit(container, lambda transaction: finish(transaction, made))
    )


async def put_blob_from_url(call: Call) -> Response:
    """Put a block blob with the bytes at a URL."""
    headers = call.request.headers
    if headers["x-ms-blob-type"] != BlobType.BLOCK:
        raise invalid_header("x-ms-blob-type", headers["x-ms-blob-type"])
    call.body_bytes_max = PUT_BLOB_BYTES_MAX
    given = read_content_headers(headers, stored_only=True)
    async with open_source(call, SourceUse.PUT, read_source_range(headers)) as source:
        if read_flag(headers, "x-ms-copy-source-blob-properties", default=True):
            found = source.blob.headers
            given = ContentHeaders(*(one or other for one, other in zip(given, found, strict=True)))
        given = given if given.type else given._replace(type=DEFAULT_TYPE)
        return await create_blob(call, given, source.content(call.body_bytes_max), source.blob)


async def abort_copy(call: Call) -> Response:
    """Reject the abortion of a copy: none is pending."""
    if call.request.headers.get(_ACTION, "").lower() != "abort":
        raise invalid_header(_ACTION, call.request.headers.get(_ACTION, ""))
    if not call.parameters.get("copyid"):
        raise ServiceError("MissingRequiredQueryParameter", details=[("QueryParameterName", "copyid")])

    def decide(transaction: Transaction) -> None:
        call.preconditions.allow_write(transaction.require_blob(), transaction.present)
        raise ServiceError("NoPendingCopyOperation")

    await call.commit(await call.container(), decide)
    raise ServiceError("NoPendingCopyOperation")


def _is_online_tier(headers: Mapping[str, str], version: str) -> bool:
    """Tell whether a request names a tier for its copy whose blobs can be read."""
    return version >= TIER_OF_WRITES_SINCE and headers.get(TIER, ARCHIVE).lower() != ARCHIVE.lower()


def _allow(call: Call, transaction: Transaction, new_blob: NewBlob) -> Blob:
    """Return the destination without its bytes, if what is stored allows it.

    Raises:
        ServiceError: see the operation.
    """
    found = transaction.found
    if found is None or found.deleted:
        return new_blob.allow(transaction)
    allowed = new_blob.allow(transaction)
    if call.preconditions.lease is not None and found.lease is not None and found.lease.ends is not None:
        raise ServiceError("InfiniteLeaseDurationRequired")
    if found.type is not allowed.type:
        raise ServiceError("InvalidBlobType")
    require_not_archived(found)
    return allowed._replace(created=found.created)
