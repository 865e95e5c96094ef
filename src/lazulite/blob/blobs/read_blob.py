"""Get Blob, Get Blob Properties, Get Blob Metadata. Source: reference §37, §40."""

from http import HTTPStatus

from lazulite.blob.content.digests import RANGE_HEADERS, Digests
from lazulite.blob.content.reading import BlobContent
from lazulite.blob.content.structured_body import BODY_HEADER, LENGTH_HEADER, StructuredContent, asks_for_structure
from lazulite.blob.limits import RANGE_DIGEST_BYTES_MAX
from lazulite.blob.model.blob import Blob, require_not_archived
from lazulite.blob.model.byte_range import read_range
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.requests.call import Call, FoundBlob
from lazulite.blob.requests.headers import describe, read_flag, tier_of, usual_lines, version_of
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.message import EventualResponse, Response
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
_MADE = frozenset({*RANGE_HEADERS, BODY_HEADER})
"""The headers by which a response has bytes that are not stored as they are."""


def get_blob(call: Call) -> EventualResponse:
    """Return the bytes of a blob, or a range of them."""
    found = call.locate_now()
    if found is None or found.blob.reference or not _MADE.isdisjoint(call.request.headers):
        return _get_blob(call)
    return _answer(call, found)[0]


async def _get_blob(call: Call) -> Response:
    found = await call.locate()
    response, start, stop = _answer(call, found)
    sent = call.request.headers
    wanted = _wanted_digests(call, None if response.status == HTTPStatus.OK else stop - start)
    is_structured = asks_for_structure(sent)
    if not found.blob.reference and wanted is None and not is_structured:
        return response
    content = BlobContent(call.context, (found.container.space, call.resource.blob), found.blob, start, stop)
    response.content = content
    if wanted is not None:
        response.headers += await _digests_of(call, content, wanted)
    if is_structured:
        response.content = StructuredContent(content)
        response.headers += [(BODY_HEADER, sent[BODY_HEADER]), (LENGTH_HEADER, str(content.length))]
    return response


def _answer(call: Call, found: FoundBlob) -> tuple[Response, int, int]:
    """Return the response of which only the content may lack, and its range: the first byte and the one behind it."""
    blob = _readable(call, found.blob)
    require_not_archived(blob)
    part = read_range(call.request.headers, call.version)
    start, stop = (0, blob.length) if part is None else part.within(blob.length)
    response = _described(call, found.row, blob, "GetBlob", is_range=part is not None)
    response.body = blob.inline[start:stop]
    if part is not None:
        response.status = 206
        response.headers.append(("Content-Range", f"bytes {start}-{stop - 1}/{blob.length}"))
    return response, start, stop


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


def get_properties(call: Call) -> EventualResponse:
    """Return everything about a blob but its bytes; their number is the Content-Length."""
    found = call.locate_now()
    if found is None or found.blob.reference:
        return _get_properties(call)
    return _properties(call, found)


async def _get_properties(call: Call) -> Response:
    found = await call.locate()
    response = _properties(call, found)
    if found.blob.reference:
        partition = found.container.space, call.resource.blob
        response.content = BlobContent(call.context, partition, found.blob, 0, found.blob.length)
    return response


def _properties(call: Call, found: FoundBlob) -> Response:
    """Return the response, unless the blob has its bytes elsewhere: then it lacks them."""
    blob = _readable(call, found.blob)
    response = _described(call, found.row, blob, "GetBlobProperties")
    response.body = blob.inline
    return response


async def get_metadata(call: Call) -> Response:
    """Return the metadata, as headers."""
    blob = _readable(call, (await call.locate()).blob)
    return Response(200, [*version_of(blob), *metadata_headers(blob.metadata)])


def _described(call: Call, row: str, blob: Blob, operation: str, *, is_range: bool = False) -> Response:
    """Return a response with the headers of a row of the addressed blob."""
    with_lease = call.row == CURRENT
    opening = usual_lines(blob, operation, call.version, is_range=is_range, with_lease=with_lease)
    if opening is not None:
        return Response(200, opening=opening)
    now = call.context.present() if with_lease else None
    return Response(200, describe(blob, now, is_current=row == CURRENT, is_range=is_range) + tier_of(blob))


def _readable(call: Call, blob: Blob) -> Blob:
    """Return what the request addresses, if it may be read now, as it sees it: with the headers that a SAS asks for."""
    if call.preconditions.has_any:
        call.preconditions.allow_read(blob, call.context.present())
    blob = call.hide_tags(blob)
    if not call.grant.response_headers:
        return blob
    wanted = {_OVERRIDES[name]: value for name, value in call.grant.response_headers}
    return blob._replace(headers=blob.headers._replace(**wanted))
