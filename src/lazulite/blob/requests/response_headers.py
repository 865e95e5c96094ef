"""The headers of responses that tell of a blob. Source: reference §32.2, §37."""

from lazulite.blob.model.blob import SMART, Blob, BlobType
from lazulite.blob.model.lease import lease_facts
from lazulite.blob.times import write_time
from lazulite.protocol.clock import format_http_date
from lazulite.protocol.metadata import metadata_headers

Pairs = list[tuple[str, str]]

ENCRYPTED = ("x-ms-request-server-encrypted", "true")
"""Of writes. SDKs read it."""
_CONTENT = (
    "Content-Type",
    "Content-Encoding",
    "Content-Language",
    "Content-MD5",
    "Cache-Control",
    "Content-Disposition",
)
_MD5 = 3
_TIER = "Hot"
"""Of a block blob whose tier was never set, and within the tier Smart."""


def version_of(blob: Blob) -> Pairs:
    """Return the ETag and Last-Modified of a blob."""
    return [("ETag", f'"{blob.etag}"'), ("Last-Modified", format_http_date(blob.modified))]


def written(blob: Blob, *more: tuple[str, str]) -> Pairs:
    """Return the headers of a response to a write: version, more, encryption, and the version's id if it has one."""
    pairs = [*version_of(blob), *more, ENCRYPTED]
    if blob.version:
        pairs.append(("x-ms-version-id", write_time(blob.version)))
    return pairs


def describe(blob: Blob, now: int | None, *, is_current: bool, is_range: bool) -> Pairs:
    """Return the headers with everything about a blob, but for its length and range.

    Args:
        blob: the blob, snapshot or version.
        now: the time, in ticks; None: the response has no headers of its lease, as it was addressed by an id (§44).
        is_current: whether it is the current blob.
        is_range: whether the response has a range, so that Content-MD5 is not that of the blob.
    """
    pairs = version_of(blob)
    for index, (name, text) in enumerate(zip(_CONTENT, blob.headers, strict=True)):
        if text:
            pairs.append(("x-ms-blob-content-md5" if index == _MD5 and is_range else name, text))
    pairs += [
        ("Accept-Ranges", "bytes"),
        ("x-ms-blob-type", blob.type),
        ("x-ms-creation-time", format_http_date(blob.created)),
        ("x-ms-server-encrypted", "true"),
    ]
    if now is not None:
        pairs += [(f"x-ms-lease-{name}", text) for name, text in lease_facts(blob.lease, now)]
    if blob.type is BlobType.APPEND:
        pairs.append(("x-ms-blob-committed-block-count", str(blob.blocks)))
        if blob.sealed:
            pairs.append(("x-ms-blob-sealed", "true"))
    elif blob.type is BlobType.PAGE:
        pairs.append(("x-ms-blob-sequence-number", str(blob.sequence)))
    if blob.version:
        pairs.append(("x-ms-version-id", write_time(blob.version)))
        if is_current:
            pairs.append(("x-ms-is-current-version", "true"))
    if blob.tags:
        pairs.append(("x-ms-tag-count", str(len(blob.tags))))
    pairs += _copy_of(blob)
    pairs += metadata_headers(blob.metadata)
    return pairs


def tier_of(blob: Blob) -> Pairs:
    """Return the headers about the tier; only block blobs, and page blobs whose tier was set, have one (§45)."""
    if blob.tier:
        pairs = [("x-ms-access-tier", blob.tier)]
        if blob.tier == SMART:
            pairs.append(("x-ms-smart-access-tier", _TIER))
        if blob.tier_changed:
            pairs.append(("x-ms-access-tier-change-time", format_http_date(blob.tier_changed)))
        if blob.archive is not None:
            pairs.append(("x-ms-archive-status", f"rehydrate-pending-to-{blob.archive.target.lower()}"))
            pairs.append(("x-ms-rehydrate-priority", blob.archive.priority))
        return pairs
    if blob.type is not BlobType.BLOCK:
        return []
    return [("x-ms-access-tier", _TIER), ("x-ms-access-tier-inferred", "true")]


def _copy_of(blob: Blob) -> Pairs:
    copy = blob.copy
    if copy is None:
        return []
    pairs = [("x-ms-copy-id", copy.id), ("x-ms-copy-source", copy.source), ("x-ms-copy-status", copy.status)]
    if copy.progress:
        pairs.append(("x-ms-copy-progress", copy.progress))
    if copy.completed:
        pairs.append(("x-ms-copy-completion-time", format_http_date(copy.completed)))
    if copy.description:
        pairs.append(("x-ms-copy-status-description", copy.description))
    return pairs
