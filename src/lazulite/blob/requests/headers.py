"""The headers that operations share: of requests, such as numbers, GUIDs and lease ids, and of responses.

A request with a header that asks for a protection which Lazulite does not give is rejected (reference §48). To ignore
it would be a false promise: content that its client takes for encrypted with its own key, or for safe from deletion.
"""

import re
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from lazulite.blob.model.blob import SMART, Blob, BlobType, ContentHeaders, Copy, etag_of
from lazulite.blob.model.lease import lease_facts
from lazulite.blob.times import write_time
from lazulite.blob.versions import head_lines, is_plain_text
from lazulite.protocol.clock import format_http_date
from lazulite.protocol.errors import ServiceError, invalid_header, missing_header
from lazulite.protocol.metadata import metadata_headers

_NUMBER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
DEFAULT_TYPE = "application/octet-stream"
"""The type of content that no header tells."""
_STORED = (
    ("x-ms-blob-content-type", "content-type"),
    ("x-ms-blob-content-encoding", "content-encoding"),
    ("x-ms-blob-content-language", "content-language"),
    ("x-ms-blob-content-md5", ""),
    ("x-ms-blob-cache-control", "cache-control"),
    ("x-ms-blob-content-disposition", ""),
)
"""For each of `ContentHeaders`: its header, and the usual one that stands in for it."""

IF_TAGS, LEASE_ID = "x-ms-if-tags", "x-ms-lease-id"
Headers = Mapping[str, str]
"""By their names in lower case."""
UNSUPPORTED_HEADERS = frozenset(
    {
        "x-ms-encryption-key",
        "x-ms-encryption-key-sha256",
        "x-ms-encryption-algorithm",
        "x-ms-encryption-scope",
        "x-ms-default-encryption-scope",
        "x-ms-immutability-policy-until-date",
        "x-ms-immutability-policy-mode",
        "x-ms-legal-hold",
        "x-ms-source-encryption-key",
        "x-ms-expiry-option",
    }
)
_ACCOUNT_KEY = "$account-encryption-key"
"""The scope that every account has: to name it asks for nothing."""
_UNBUILT_COMPONENTS = frozenset({"expiry", "immutabilitypolicies", "legalhold"})
"""The components whose operations set such a header's property. They are rejected as operations that are not built."""
Pairs = list[tuple[str, str]]
ENCRYPTED = ("x-ms-request-server-encrypted", "true")
"""A header of responses to writes. SDKs read it."""
_CONTENT = (
    "Content-Type",
    "Content-Encoding",
    "Content-Language",
    "Content-MD5",
    "Cache-Control",
    "Content-Disposition",
)
_CONTENT_OF_RANGE = tuple("x-ms-blob-content-md5" if name == "Content-MD5" else name for name in _CONTENT)
_TIER = "Hot"
"""The tier of a block blob whose tier was never set, and within the tier Smart."""


def require_header(headers: Headers, name: str) -> str:
    """Return a header. Raises `MissingRequiredHeader`."""
    text = headers.get(name)
    if not text:
        raise missing_header(name)
    return text


def read_number(headers: Headers, name: str, least: int = 0, most: int = 2**63 - 1) -> int | None:
    """Return a whole number; None: there is no such header.

    Raises:
        ServiceError: `InvalidHeaderValue`.
    """
    text = headers.get(name)
    if text is None:
        return None
    if _NUMBER.fullmatch(text) is None or not least <= int(text) <= most:
        raise invalid_header(name, text)
    return int(text)


def read_guid(headers: Headers, name: str) -> UUID | None:
    """Return a GUID in any of its formats; None: there is no such header.

    Raises:
        ServiceError: `InvalidHeaderValue`.
    """
    text = headers.get(name)
    if text is None:
        return None
    try:
        return UUID(text.strip("()"))
    except ValueError:
        raise invalid_header(name, text) from None


def read_flag(headers: Headers, name: str, default: bool = False) -> bool:
    """Return a header that is `true` or `false`. Raises `InvalidHeaderValue`."""
    text = headers.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise invalid_header(name, text)
    return text.lower() == "true"


def lease_id(headers: Headers) -> UUID | None:
    """Return the `x-ms-lease-id`. Raises `InvalidHeaderValue`."""
    return read_guid(headers, LEASE_ID)


def has_content_headers(headers: Headers) -> bool:
    """Tell whether a request has headers of its own to be stored with a blob."""
    return any(own in headers for own, _ in _STORED)


def read_content_headers(headers: Headers, *, stored_only: bool = False) -> ContentHeaders:
    """Return the headers that are stored with a blob.

    Args:
        headers: of the request.
        stored_only: whether the usual headers, which tell of the body, do not count. Then no default counts either.

    Raises:
        ServiceError: `InvalidMd5`, the MD5 is not base64, which clients could not read (*unverified*). It may be of any
            length: the operations that compare it with content demand more.
    """
    found = [headers.get(own) or (headers.get(usual, "") if not stored_only else "") for own, usual in _STORED]
    if not found[0] and not stored_only:
        found[0] = DEFAULT_TYPE
    kept = ContentHeaders(*found)
    try:
        a2b_base64(kept.md5, strict_mode=True)
    except ValueError:
        raise ServiceError("InvalidMd5") from None
    return kept


def reject_unsupported(headers: Headers, component: str) -> None:
    """Reject a request with one of `UNSUPPORTED_HEADERS`.

    Args:
        headers: of the request.
        component: that the request addresses, as `component_of` returns it.

    Raises:
        ServiceError: `UnsupportedHeader`.
    """
    if UNSUPPORTED_HEADERS.isdisjoint(headers) or component in _UNBUILT_COMPONENTS:
        return
    for name in sorted(UNSUPPORTED_HEADERS.intersection(headers)):
        if headers[name] != _ACCOUNT_KEY:
            raise ServiceError("UnsupportedHeader", details=[("HeaderName", name)])


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
    content = _CONTENT_OF_RANGE if is_range else _CONTENT
    pairs += [pair for pair in zip(content, blob.headers, strict=True) if pair[1]]
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
    if blob.copy is not None:
        pairs += _copy_of(blob.copy)
    if blob.metadata:
        pairs += metadata_headers(blob.metadata)
    return pairs


class _Form(NamedTuple):
    """The headers of usual blobs: lines with `%s` for the values that differ."""

    lines: str
    values: Callable[[tuple[str, ...]], tuple[str, ...]]
    """Chooses those values of ETag, Last-Modified, creation time, and of `ContentHeaders`."""
    line_count: int


_USUAL = Blob(BlobType.BLOCK, modified=10**17, created=2 * 10**17)
_TIMES = 3
"""The values before those of `ContentHeaders`."""


@lru_cache(maxsize=1024)
def _form(operation: str, version: str, given: tuple[bool, ...], *, is_range: bool, with_lease: bool) -> _Form | None:
    """Return the form of blobs with the given ones of `ContentHeaders`, made by `describe`. See `usual_lines`."""
    marks = tuple(f"<{index}>" for index in range(_TIMES + len(given)))
    texts = [mark if is_given else "" for mark, is_given in zip(marks[_TIMES:], given, strict=True)]
    blob = _USUAL._replace(headers=ContentHeaders(*texts))
    pairs = describe(blob, 0 if with_lease else None, is_current=True, is_range=is_range) + tier_of(blob)
    lines = head_lines(pairs, operation, version)
    if lines is None:
        return None
    lines = lines.replace("%", "%%")
    for mark, text in zip(marks, (blob.etag, *map(format_http_date, (blob.modified, blob.created))), strict=False):
        lines = lines.replace(text, mark)
    indexes = [int(index) for index in re.findall("<([0-9])>", lines)]
    return _Form(re.sub("<[0-9]>", "%s", lines), itemgetter(*indexes), lines.count("\n"))


def usual_lines(blob: Blob, operation: str, version: str, *, is_range: bool, with_lease: bool) -> str | None:
    """Return `describe` and `tier_of` as on the wire, see `head_lines`; None: the blob is not one of the usual ones.

    Args:
        blob: usual are block blobs without a lease, tags, metadata, a copy, versions, and a tier of their own.
        operation: whose response has the headers.
        version: of the request.
        is_range: as of `describe`.
        with_lease: whether the response tells of the lease.
    """
    if blob.type is not BlobType.BLOCK or blob.version or blob.tier or blob.copy is not None or blob.lease is not None:
        return None
    if blob.metadata or blob.tags:
        return None
    given = tuple([text != "" for text in blob.headers])
    form = _form(operation, version, given, is_range=is_range, with_lease=with_lease)
    if form is None:
        return None
    modified, created = blob.modified, blob.created
    date = format_http_date(modified)
    values = (etag_of(modified), date, date if created == modified else format_http_date(created), *blob.headers)
    lines = form.lines % form.values(values)
    return lines if is_plain_text(lines, form.line_count) else None


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


def _copy_of(copy: Copy) -> Pairs:
    pairs = [("x-ms-copy-id", copy.id), ("x-ms-copy-source", copy.source), ("x-ms-copy-status", copy.status)]
    if copy.progress:
        pairs.append(("x-ms-copy-progress", copy.progress))
    if copy.completed:
        pairs.append(("x-ms-copy-completion-time", format_http_date(copy.completed)))
    if copy.description:
        pairs.append(("x-ms-copy-status-description", copy.description))
    return pairs
