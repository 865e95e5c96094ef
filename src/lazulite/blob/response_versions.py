"""The versions of response headers and of elements of lists, in the Blob service.

Source: REST reference, the pages of the operations; reference §32.2.

Operations and writers of lists make everything that the newest version has. What the version of a request does not know
is taken away in one place each: `known_headers` for every route, and the writers of `payload` for lists. What no table
names is in all versions.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

HEADERS: Mapping[str, str] = {
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
    return frozenset(name for name, since in {**HEADERS, **later}.items() if version < since)
