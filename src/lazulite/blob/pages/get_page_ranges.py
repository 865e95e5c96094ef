"""Get Page Ranges, all of them or what changed since a snapshot. Source: reference §38.2."""

from collections.abc import Iterable, Iterator
from contextlib import aclosing
from itertools import islice

from lazulite.blob.model.blob import Blob, BlobType, read_blob
from lazulite.blob.model.byte_range import read_range
from lazulite.blob.model.copy_source import LocalSource, read_copy_source
from lazulite.blob.model.page_ranges import PageRange, append_ranges, changed_ranges, written_ranges
from lazulite.blob.model.pages import SEGMENT_BYTES
from lazulite.blob.model.rows import CURRENT, snapshot_row
from lazulite.blob.requests.call import Call
from lazulite.blob.requests.headers import version_of
from lazulite.blob.storage.segments import StoredSegment, stored_segments
from lazulite.blob.times import read_time
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.steps import Steps
from lazulite.protocol.xml import document as xml
from lazulite.service.parameters import read_number
from lazulite.service.responses import XML_TYPE

RANGES_MAX = 10_000
"""Ranges of one page of the list."""
PREVIOUS_URL = "x-ms-previous-snapshot-url"
"""The header that stands for `prevsnapshot`."""
_RANGES_OF_A_STEP = 500


async def get_page_ranges(call: Call) -> Response:
    """Return the ranges of a page blob that were written, or what a snapshot lacks."""
    parameters = call.parameters
    container, _, blob = await call.locate()
    call.preconditions.allow_read(blob, call.context.present())
    if blob.type is not BlobType.PAGE:
        raise ServiceError("InvalidBlobType")
    previous = await _previous(call, container.space, blob)
    sent = read_range(call.request.headers, call.version)
    start, stop = (0, blob.length) if sent is None or not blob.length else sent.within(blob.length)
    paged = "maxresults" in parameters
    most = read_number(parameters, "maxresults", RANGES_MAX, 1, RANGES_MAX)
    start = max(start, _marker(parameters.get("marker", "")))
    partition = container.space, call.resource.blob
    found: list[PageRange] = []
    async with aclosing(stored_segments(call.context.engine, partition, blob, start, stop)) as stored:
        async for segment in stored:
            append_ranges(found, segment.base, _ranges(segment, blob, previous, start, stop))
            if paged and len(found) > most:
                break
    marker = ""
    if paged and len(found) > most:
        marker = str(found[most].start)
        found = found[:most]
    body = b"".join(await call.in_slices(write_page_list(found, marker if paged else None)))
    return Response(200, [XML_TYPE, *version_of(blob), ("x-ms-blob-content-length", str(blob.length))], body)


def _ranges(segment: StoredSegment, blob: Blob, previous: Blob | None, start: int, stop: int) -> Iterator[PageRange]:
    first, last = max(start - segment.base, 0), min(stop - segment.base, SEGMENT_BYTES)
    now = segment.as_of(blob.epoch)
    if previous is None:
        return written_ranges(now, first, last)
    return changed_ranges(segment.as_of(previous.epoch), now, previous.epoch, first, last)


def _marker(text: str) -> int:
    if text and not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ServiceError("InvalidQueryParameterValue", details=[("QueryParameterName", "marker")])
    return int(text or "0")


def _previous_time(call: Call) -> int | None:
    """Return the time of the snapshot that a parameter or a URL names; None if neither does.

    The URL is that of a snapshot of the same blob, whose reader the request is already. *Unverified*: any other
    snapshot is 409, and the URL counts in every version.

    Raises:
        ServiceError: the time or the URL is none, or both were sent; `PreviousSnapshotOperationNotSupported`, the URL
            names another blob.
    """
    text, url = call.parameters.get("prevsnapshot"), call.request.headers.get(PREVIOUS_URL)
    if url is None:
        return None if text is None else read_time("prevsnapshot", text)
    named = read_copy_source(url, call.request, call.context.addressing, PREVIOUS_URL)
    if text is not None or (isinstance(named, LocalSource) and not named.snapshot):
        raise ServiceError("InvalidHeaderValue", details=[("HeaderName", PREVIOUS_URL)])
    if not isinstance(named, LocalSource) or (named.address.account, named.resource) != (call.account, call.resource):
        raise ServiceError("PreviousSnapshotOperationNotSupported")
    return read_time("snapshot", named.snapshot)


async def _previous(call: Call, space: int, blob: Blob) -> Blob | None:
    """Return the snapshot since which changes are asked for.

    Raises:
        ServiceError: there is no such snapshot, it is newer, or the blob was replaced since.
    """
    time = _previous_time(call)
    if time is None:
        return None
    row = snapshot_row(time)
    value = await call.context.engine.get(space, call.resource.blob, row)
    previous = None if value is None else read_blob(value)
    if previous is None or previous.deleted:
        raise ServiceError("PreviousSnapshotNotFound")
    if call.row != CURRENT and call.row < row:
        raise ServiceError("PreviousSnapshotCannotBeNewer")
    if previous.list != blob.list:
        raise ServiceError("BlobOverwritten")
    return previous


def write_page_list(ranges: Iterable[PageRange], marker: str | None = None) -> Steps[list[bytes]]:
    """Return the response in steps, in parts.

    Args:
        ranges: in ascending order.
        marker: of the next page, "" if this is the last one; None: the request did not ask for pages.
    """
    end = "" if marker is None else xml.leaf("NextMarker", marker)
    remaining: Iterator[PageRange] = iter(ranges)
    parts: list[bytes] = []
    while some := "".join(map(_range, islice(remaining, _RANGES_OF_A_STEP))):
        parts.append(some.encode())
        yield
    if not parts and not end:
        return [xml.document("<PageList />")]
    return [xml.document("<PageList>"), *parts, f"{end}</PageList>".encode()]


def _range(found: PageRange) -> str:
    name = "ClearRange" if found.is_cleared else "PageRange"
    return f"<{name}><Start>{found.start}</Start><End>{found.stop - 1}</End></{name}>"
