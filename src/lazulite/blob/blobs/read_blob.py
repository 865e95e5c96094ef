"""Get Blob, Get Blob Properties, Get Blob Metadata. Source: reference §37, §40."""

from dataclasses import replace

from lazulite.blob.content.digests import RANGE_HEADERS, Digests
from lazulite.blob.content.reading import BlobContent
from lazulite.blob.content.structured_body import BODY_HEADER, LENGTH_HEADER, StructuredContent, asks_for_structure
from lazulite.blob.limits import RANGE_DIGEST_BYTES_MAX
from lazulite.blob.model.blob import Blob, require_not_archived
from lazulite.blob.model.byte_range import read_range
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import describe, read_flag, tier_of, version_of
from lazulite.blob.storage.catalog import Container
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import Response
from lazulite.protocol.metadata import metadata_headers
from lazulite.service.time_slice import TimeSlice

_OVERRIDES = {
    "Cache-Control": "cache_control",
    "Content-Disposition": "disposition",
    "Content-Encoding": "encoding",
    "Content-Language": "language",
    "Content-Type": "type",
}
"""The fields that a SAS may replace -> their names in `ContentHeaders`."""


async def get_blob(call: Call) -> Response:
    """Return the bytes of a blob, or a range of them."""
    container = await call.container()
    row, blob = await _readable(call, container)
    require_not_archived(blob)
    found = read_range(call.request.headers, call.version)
    start, stop = (0, blob.length) if found is None else found.within(blob.length)
    headers = _described(call, blob, row, is_range=found is not None)
    if found is not None:
        headers.append(("Content-Range", f"bytes {start}-{stop - 1}/{blob.length}"))
    status = 200 if found is None else 206
    wanted = _wanted_digests(call, None if found is None else stop - start)
    is_structured = asks_for_structure(call.request.headers)
    if not blob.reference and wanted is None and not is_structured:
        return Response(status, headers, blob.inline[start:stop])
    content = BlobContent(call.context, (container.space, call.resource.blob), blob, start, stop)
    if wanted is not None:
        headers += await _digests_of(call, content, wanted)
    if not is_structured:
        return Response(status, headers, content=content)
    headers += [(BODY_HEADER, call.request.headers[BODY_HEADER]), (LENGTH_HEADER, str(content.length))]
    return Response(status, headers, content=StructuredContent(content))


def _wanted_digests(call: Call, length: int | None) -> Digests | None:
    """Return what computes the digest of a range that a request asks for; None: it asks for none.

    Args:
        call: the request.
        length: of the range; None: the request has none. *Unverified*: the code for that.

    Raises:
        ServiceError: `InvalidHeaderValue`, `OutOfRangeInput`, `BothCrc64AndMd5HeaderPresent`.
    """
    headers = call.request.headers
    asked = [
        (name, algorithm)
        for name, algorithm in RANGE_HEADERS.items()
        if name in headers and call.version >= algorithm.since and read_flag(headers, name)
    ]
    if not asked:
        return None
    if len(asked) > 1:
        raise ServiceError("BothCrc64AndMd5HeaderPresent")
    (name, algorithm), *_ = asked
    if length is None:
        raise invalid_header(name, "true")
    if length > RANGE_DIGEST_BYTES_MAX:
        raise ServiceError("OutOfRangeInput")
    return Digests(answered=(algorithm,))


async def _digests_of(call: Call, content: BlobContent, digests: Digests) -> list[tuple[str, str]]:
    """Return the headers with the digests of content, which is read twice so that it is not held."""
    time_slice = TimeSlice(call.context.limits.slice_seconds, call.context.monotonic)
    try:
        async for chunk in content.chunks():
            digests.update(chunk)
            await time_slice.checkpoint()
    except BaseException:
        await content.aclose()
        raise
    return digests.headers()


async def get_properties(call: Call) -> Response:
    """Return everything about a blob but its bytes; their number is the Content-Length."""
    container = await call.container()
    row, blob = await _readable(call, container)
    headers = _described(call, blob, row, is_range=False)
    content = BlobContent(call.context, (container.space, call.resource.blob), blob, 0, blob.length)
    return Response(200, headers, content=content)


async def get_metadata(call: Call) -> Response:
    """Return the metadata, as headers."""
    _, blob = await _readable(call, await call.container())
    return Response(200, [*version_of(blob), *metadata_headers(blob.metadata)])


def _described(call: Call, blob: Blob, row: str, *, is_range: bool) -> list[tuple[str, str]]:
    """Return the headers of a row of the addressed blob."""
    now = call.context.present() if call.row == CURRENT else None
    return describe(blob, now, is_current=row == CURRENT, is_range=is_range) + tier_of(blob)


async def _readable(call: Call, container: Container) -> tuple[str, Blob]:
    """Return what the request addresses and its row, if it may be read now. It has the headers that a SAS asks for."""
    row, blob = await call.locate(container)
    call.preconditions.allow_read(blob, call.context.present())
    blob = call.hide_tags(blob)
    wanted = {_OVERRIDES[name]: value for name, value in call.grant.response_headers}
    return row, replace(blob, headers=blob.headers._replace(**wanted)) if wanted else blob
