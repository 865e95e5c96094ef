"""The versions of the protocol at which the Blob service changed, oldest first for each part of it.

The constants are rows of the table in `protocol/version.py`, first of credentials, then of operations. Each one is the
first version with the behaviour in its text. The behaviour of older versions follows "Before:".

The tables tell the first version of response headers and of elements of lists. Operations and writers of lists make
everything that the newest version has. What the version of a request does not know is taken away in one place each:
`known_headers` for every route, and the writers of lists. What no table names is in all versions.

Source: REST reference, Versioning for the Azure Storage services, the pages of the operations and of each SAS;
reference §32.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

SHARED_KEY_SINCE = "2009-09-19"
"""Shared Key of blobs signs all query parameters and more headers. Before: it signs what Shared Key Lite does."""
VERSION_SIGNED_SINCE = "2012-02-12"
"""A SAS of blobs has `sv`. Before: it has none, and is valid for an hour at most if it has no stored access policy."""
OVERRIDES_SINCE = "2013-08-15"
"""A SAS of blobs signs fields of the response (`rscc`, `rscd`, `rsce`, `rscl`, `rsct`). Before: they are ignored."""
BEARER_SINCE = "2017-11-09"
"""Bearer tokens on blobs. Before: 400 `InvalidAuthenticationInfo`."""
RESOURCE_SIGNED_SINCE = "2018-11-09"
"""A SAS of blobs signs `sr`, and can be for one snapshot (`bs`). Before: 403 `AuthenticationFailed` for a snapshot."""
DELEGATION_SINCE = "2018-11-09"
"""User delegation keys and user delegation SAS for blobs. Before: 400 `InvalidQueryParameterValue`, and 403
`AuthenticationFailed`."""
CHALLENGE_SINCE = "2019-12-12"
"""A rejected bearer token for blobs, and a request without credentials, get 401 with a challenge. Before: 400
`InvalidAuthenticationInfo`, and 404 `ResourceNotFound`."""
VERSION_SAS_SINCE = "2019-12-12"
"""A SAS can be for one version of a blob (`bv`). Before: 403 `AuthenticationFailed`."""
OBJECT_IDS_SIGNED_SINCE = "2020-02-10"
"""A user delegation SAS of blobs signs `saoid`, `suoid` and `scid`. Before: they are ignored."""
USER_SIGNED_SINCE = "2025-07-05"
"""A user delegation SAS of blobs can be bound to a user (`sduoid`, `skdutid`). Before: 403 `AuthenticationFailed`."""
CROSS_TENANT_SINCE = "2026-04-06"
"""`DelegatedUserTid` in the request for a user delegation key of blobs. Before: 400 `UnsupportedXmlNode`."""
REQUEST_SIGNED_SINCE = "2026-04-06"
"""A user delegation SAS of blobs can sign fields of the request (`srh`, `srq`). Before: 403 `AuthenticationFailed`."""
DIRECTORY_SAS_SINCE = "2026-06-06"
"""A SAS of blobs can be for the blobs below one prefix (`d`). Before: 403 `AuthenticationFailed`."""
NEW_BLOCKS_SINCE = "2026-06-06"
"""The permission to create a blob permits Put Block and Put Block List. Before: only the permission to write does."""


OPEN_RANGE_SINCE = "2011-08-18"
"""A read takes the range `bytes=N-`. Before: it is ignored, and the response has the whole blob."""
COMPUTED_MD5_SINCE = "2012-02-12"
"""Put Blob computes the MD5 of a block blob, stores it and returns it. Before: only if the request has an MD5."""
LIST_WITHOUT_URL_SINCE = "2013-08-15"
"""Lists of containers and blobs have `ServiceEndpoint`. Before: another attribute."""
READS_COMBINE_SINCE = "2013-08-15"
"""A read of a blob combines any conditional headers. Before: the pairs of a write; 400
`MultipleConditionHeadersNotSupported`."""
MEDIUM_BLOCKS_SINCE = "2016-05-31"
"""Put Blob of up to 256 MiB, Put Block of up to 100 MiB. Before: 64 MiB and 4 MiB; 413 `RequestBodyTooLarge`."""
TIERS_SINCE = "2017-04-17"
"""Set Blob Tier, and `x-ms-access-tier` of writes of page blobs. Before: 400 `InvalidQueryParameterValue` (unverified),
and it means nothing."""
STAR_ON_READS_SINCE = "2016-05-31"
"""`If-None-Match: *` on a read of a blob is 400 `UnsatisfiableCondition`. Before: it means nothing."""
SOFT_DELETE_SINCE = "2017-07-29"
"""Service property `DeleteRetentionPolicy` of blobs. Before: 400 `InvalidXmlDocument`."""
UNDELETE_SINCE = "2017-07-29"
"""Undelete Blob. Before: 400 `InvalidQueryParameterValue` (unverified)."""
INFORMATION_SINCE = "2018-03-28"
"""Get Account Information of blobs. Before: 400 `InvalidQueryParameterValue` (unverified)."""
WEBSITE_SINCE = "2018-03-28"
"""Service property `StaticWebsite` of blobs. Before: 400 `InvalidXmlDocument`."""
TIER_OF_WRITES_SINCE = "2018-11-09"
"""`x-ms-access-tier` of Put Blob, Put Block List and Copy Blob, for block blobs. Before: it means nothing."""
BATCH_SINCE = "2018-11-09"
"""Blob Batch. Before: 400 `InvalidQueryParameterValue` (unverified)."""
EMPTY_PREFIX_SINCE = "2018-11-09"
"""Lists that are asked for an empty `prefix` have an empty `Prefix`. Before: they lack it."""
CRC64_SINCE = "2019-02-02"
"""CRC-64 of content: `x-ms-content-crc64`. Before: MD5 only."""
PRIORITY_SINCE = "2019-02-02"
"""`x-ms-rehydrate-priority` of Set Blob Tier and Copy Blob. Before: it means nothing."""
RESTORE_SINCE = "2019-12-12"
"""Restore Container. Before: 400 `InvalidQueryParameterValue` (unverified)."""
SEAL_SINCE = "2019-12-12"
"""Seal Append Blob. Before: 400 `InvalidQueryParameterValue` (unverified)."""
TAGS_SINCE = "2019-12-12"
"""Index tags of blobs. Before: the operations do not exist, and `x-ms-tags` and `x-ms-if-tags` mean nothing."""
LARGE_BLOCKS_SINCE = "2019-12-12"
"""Put Blob of up to 5,000 MiB, Put Block of up to 4,000 MiB. Before: 256 MiB and 100 MiB; 413 `RequestBodyTooLarge`."""
PERMANENT_DELETE_SINCE = "2020-02-10"
"""`AllowPermanentDelete` in the `DeleteRetentionPolicy` of blobs. Before: a response lacks it."""
CONTAINER_BATCH_SINCE = "2020-04-08"
"""Batches of one container. Before: 400 `InvalidQueryParameterValue`."""
PRIORITY_RAISE_SINCE = "2020-06-12"
"""The priority of a rehydration can be raised to `High`. Before: the first one stays."""
ENCODED_NAMES_SINCE = "2021-02-12"
"""Names of blobs that XML cannot carry are percent-encoded in lists. Before: they have U+FFFD for such characters."""
CONTAINER_FIND_SINCE = "2021-04-10"
"""Blobs of one container are found by their tags. Before: of the account only."""
COLD_SINCE = "2021-12-02"
"""The tier `Cold`. Before: 400 `InvalidHeaderValue`."""
LARGE_APPENDS_SINCE = "2022-11-02"
"""Append Block of up to 100 MiB. Before: 4 MiB; 413 `RequestBodyTooLarge`."""
TAGS_CONDITIONS_SINCE = "2026-02-06"
"""Conditions `x-ms-blob-if-…` of Get and Set Blob Tags (unverified). Before: they mean nothing."""
TIER_CONDITIONS_SINCE = "2026-04-06"
"""Conditions `x-ms-access-tier-if-…` of Delete Blob. Before: they mean nothing."""
SMART_SINCE = "2026-06-06"
"""The tier `Smart`. Before: 400 `InvalidHeaderValue`."""
BOTH_DIGESTS_SINCE = "2026-10-06"
"""Responses to all writes of content have MD5 and CRC-64. Before: only those to Put Blob; others have one of them."""


RESPONSE_HEADERS: Mapping[str, str] = {
    "Accept-Ranges": "2011-08-18",
    "x-ms-lease-state": "2012-02-12",
    "x-ms-lease-duration": "2012-02-12",
    "x-ms-copy-id": "2012-02-12",
    "x-ms-copy-source": "2012-02-12",
    "x-ms-copy-status": "2012-02-12",
    "x-ms-copy-progress": "2012-02-12",
    "x-ms-copy-completion-time": "2012-02-12",
    "x-ms-copy-status-description": "2012-02-12",
    "Content-Disposition": "2013-08-15",
    "x-ms-blob-committed-block-count": "2015-02-21",
    "x-ms-blob-append-offset": "2015-02-21",
    "x-ms-server-encrypted": "2015-12-11",
    "x-ms-request-server-encrypted": "2015-12-11",
    "x-ms-blob-content-md5": "2016-05-31",
    "x-ms-access-tier": "2017-04-17",
    "x-ms-access-tier-inferred": "2017-04-17",
    "x-ms-access-tier-change-time": "2017-04-17",
    "x-ms-archive-status": "2017-04-17",
    "x-ms-delete-type-permanent": "2017-07-29",
    "x-ms-creation-time": "2017-11-09",
    "x-ms-has-immutability-policy": "2017-11-09",
    "x-ms-has-legal-hold": "2017-11-09",
    "x-ms-sku-name": "2018-03-28",
    "x-ms-account-kind": "2018-03-28",
    "x-ms-content-crc64": "2019-02-02",
    "x-ms-default-encryption-scope": "2019-02-02",
    "x-ms-deny-encryption-scope-override": "2019-02-02",
    "x-ms-is-hns-enabled": "2019-07-07",
    "x-ms-tag-count": "2019-12-12",
    "x-ms-version-id": "2019-12-12",
    "x-ms-is-current-version": "2019-12-12",
    "x-ms-blob-sealed": "2019-12-12",
    "x-ms-rehydrate-priority": "2019-12-12",
    "x-ms-immutable-storage-with-versioning-enabled": "2020-06-12",
    "x-ms-smart-access-tier": "2026-06-06",
}
"""Response header -> the first version that has it. The last but one is *unverified*: recordings tell that it is later
than 2019-02-02."""
LATER_HEADERS: Mapping[tuple[str, str], str] = {
    ("GetBlobProperties", "Accept-Ranges"): "2013-08-15",
    ("GetContainerProperties", "x-ms-lease-status"): "2012-02-12",
    ("GetContainerProperties", "x-ms-blob-public-access"): "2016-05-31",
    ("GetBlob", "x-ms-access-tier"): "2026-10-06",
    ("GetBlob", "x-ms-access-tier-inferred"): "2026-10-06",
    ("GetBlob", "x-ms-access-tier-change-time"): "2026-10-06",
    ("GetBlob", "x-ms-smart-access-tier"): "2026-10-06",
}
"""Operation and response header -> the first version whose response to that operation has it."""
QUOTED_ETAG = "2011-08-18"
"""The first version whose ETag header is in quotation marks."""

BLOB_ELEMENTS: Mapping[str, str] = {
    "LeaseState": "2012-02-12",
    "LeaseDuration": "2012-02-12",
    "CopyId": "2012-02-12",
    "CopySource": "2012-02-12",
    "CopyStatus": "2012-02-12",
    "CopyProgress": "2012-02-12",
    "CopyCompletionTime": "2012-02-12",
    "CopyStatusDescription": "2012-02-12",
    "Content-Disposition": "2013-08-15",
    "ServerEncrypted": "2015-12-11",
    "AccessTier": "2017-04-17",
    "AccessTierInferred": "2017-04-17",
    "AccessTierChangeTime": "2017-04-17",
    "ArchiveStatus": "2017-04-17",
    "Deleted": "2017-07-29",
    "DeletedTime": "2017-07-29",
    "RemainingRetentionDays": "2017-07-29",
    "Creation-Time": "2017-11-09",
    "Content-CRC64": "2019-02-02",
    "VersionId": "2019-12-12",
    "IsCurrentVersion": "2019-12-12",
    "Tags": "2019-12-12",
    "TagCount": "2019-12-12",
    "Sealed": "2019-12-12",
    "RehydratePriority": "2019-12-12",
    "OrMetadata": "2019-12-12",
    "HasVersionsOnly": "2020-10-02",
    "SmartAccessTier": "2026-06-06",
}
"""Element of List Blobs -> the first version that has it."""
SNAPSHOT_ELEMENTS: Mapping[str, str] = {
    "AccessTier": "2018-11-09",
    "AccessTierInferred": "2018-11-09",
    "AccessTierChangeTime": "2018-11-09",
    "ArchiveStatus": "2018-11-09",
}
"""Element of a snapshot -> the first version that has it, where that is later than for a blob."""
CONTAINER_ELEMENTS: Mapping[str, str] = {
    "LeaseStatus": "2012-02-12",
    "LeaseState": "2012-02-12",
    "LeaseDuration": "2012-02-12",
    "PublicAccess": "2016-05-31",
    "HasImmutabilityPolicy": "2017-11-09",
    "HasLegalHold": "2017-11-09",
    "DefaultEncryptionScope": "2019-02-02",
    "DenyEncryptionScopeOverride": "2019-02-02",
    "Deleted": "2019-12-12",
    "Version": "2019-12-12",
    "DeletedTime": "2019-12-12",
    "RemainingRetentionDays": "2019-12-12",
    "ImmutableStorageWithVersioningEnabled": "2020-06-12",
}
"""Element of List Containers -> the first version that has it. The last one is *unverified*."""
ENDED_ELEMENTS: Mapping[str, str] = {
    "Url": "2013-08-15",
    "LeaseStatus of a deleted blob": "2018-11-09",
}
"""Element of lists -> the first version without it. The latter is empty, and its end is *unverified*: 2018-03-28 has
it."""
BLOB_INCLUDES: Mapping[str, str] = {
    "copy": "2012-02-12",
    "deleted": "2017-07-29",
    "tags": "2019-12-12",
    "versions": "2019-12-12",
    "immutabilitypolicy": "2020-06-12",
    "legalhold": "2020-06-12",
    "permissions": "2020-06-12",
    "deletedwithversions": "2020-10-02",
}
"""Word of `include` of List Blobs -> the first version that knows it. Before: 400 `InvalidQueryParameterValue`."""
CONTAINER_INCLUDES: Mapping[str, str] = {"deleted": "2019-12-12"}
"""Word of `include` of List Containers likewise."""


def known(names: Iterable[str], versions: Mapping[str, str], version: str) -> tuple[str, ...]:
    """Return the names that a version knows, in their order.

    Args:
        names: of headers, elements or words.
        versions: one of the tables above.
        version: of the request.
    """
    return tuple(name for name in names if version >= versions.get(name, ""))


def has_ended(element: str, version: str) -> bool:
    """Tell whether a version has an element of `ENDED_ELEMENTS` no more."""
    return version >= ENDED_ELEMENTS[element]


def head_lines(headers: Sequence[tuple[str, str]], operation: str, version: str) -> str | None:
    """Return the headers of a response as on the wire, as the version of its request knows them: lines ended by CRLF.

    None: a value has a character that no line has, or the version has another form of them.
    """
    if version < QUOTED_ETAG:
        return None
    unknown = _unknown_headers(operation, version)
    lines = [f"{name}: {text}" for name, text in headers if name not in unknown]
    text = "\r\n".join(lines)
    text = f"{text}\r\n" if lines else ""
    return text if is_plain_text(text, len(lines)) else None


def is_plain_text(lines: str, count: int) -> bool:
    """Return whether these are so many lines of a head, each ended by CRLF, and all ASCII."""
    return lines.isascii() and lines.count("\n") == count == lines.count("\r") and "\0" not in lines


def known_headers(headers: list[tuple[str, str]], operation: str, version: str) -> list[tuple[str, str]]:
    """Return the headers of a response as the version of its request knows them."""
    unknown = _unknown_headers(operation, version)
    if not unknown:
        return headers
    found = [pair for pair in headers if pair[0] not in unknown]
    if version >= QUOTED_ETAG:
        return found
    return [(name, text.strip('"') if name == "ETag" else text) for name, text in found]


@lru_cache(maxsize=1024)
def _unknown_headers(operation: str, version: str) -> frozenset[str]:
    later = {header: since for (of, header), since in LATER_HEADERS.items() if of == operation}
    return frozenset(name for name, since in {**RESPONSE_HEADERS, **later}.items() if version < since)
