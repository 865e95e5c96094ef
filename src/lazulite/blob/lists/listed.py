"""One blob, snapshot or version as a list shows it. Source: reference §35."""

from lazulite.blob.leasing import lease_facts
from lazulite.blob.lists.blob_list_xml import ListedBlob
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.requests.response_headers import tier_of
from lazulite.protocol.clock import TICKS_PER_DAY, format_http_date

_CONTENT = (
    "Content-Type",
    "Content-Encoding",
    "Content-Language",
    "Content-MD5",
    "Cache-Control",
    "Content-Disposition",
)
"""The elements of `ContentHeaders`."""
_TIER = {
    "x-ms-access-tier": "AccessTier",
    "x-ms-smart-access-tier": "SmartAccessTier",
    "x-ms-access-tier-inferred": "AccessTierInferred",
    "x-ms-access-tier-change-time": "AccessTierChangeTime",
    "x-ms-archive-status": "ArchiveStatus",
    "x-ms-rehydrate-priority": "RehydratePriority",
}
_LEASE = {"status": "LeaseStatus", "state": "LeaseState", "duration": "LeaseDuration"}
_UNCOMMITTED = {
    "Content-Length": "0",
    "BlobType": BlobType.BLOCK.value,
    "AccessTier": "Hot",
    "AccessTierInferred": "true",
    "LeaseStatus": "unlocked",
    "LeaseState": "available",
    "ServerEncrypted": "false",
}


def uncommitted_blob(name: str) -> ListedBlob:
    """Return a blob that has uncommitted blocks only."""
    return ListedBlob(name, _UNCOMMITTED, is_committed=False)


def listed_blob(name: str, blob: Blob, now: int, *, is_base: bool, with_copy: bool) -> ListedBlob:
    """Return a blob, with neither metadata nor tags.

    Args:
        name: of the blob.
        blob: itself, a snapshot or a version.
        now: the time, in ticks.
        is_base: whether it is the blob itself.
        with_copy: whether the facts of its last copy are shown.
    """
    modified = format_http_date(blob.modified)
    found = {"Last-Modified": modified, "Etag": blob.etag, "Content-Length": str(blob.length)}
    found["Creation-Time"] = modified if blob.created == blob.modified else format_http_date(blob.created)
    found |= {element: text for element, text in zip(_CONTENT, blob.headers, strict=True) if text}
    found["BlobType"] = blob.type.value
    found |= {_TIER[header]: text for header, text in tier_of(blob)}
    found["ServerEncrypted"] = "true"
    if blob.type is BlobType.PAGE:
        found["x-ms-blob-sequence-number"] = str(blob.sequence)
    if blob.sealed:
        found["Sealed"] = "true"
    if blob.tags:
        found["TagCount"] = str(len(blob.tags))
    if with_copy:
        found.update(_copy_of(blob))
    if blob.deleted:
        found["DeletedTime"] = format_http_date(blob.deleted)
        found["RemainingRetentionDays"] = str(max(blob.expires - now, 0) // TICKS_PER_DAY)
    elif is_base:
        found |= {_LEASE[fact]: text for fact, text in lease_facts(blob.lease, now)}
    return ListedBlob(name, found, is_deleted=bool(blob.deleted))


def _copy_of(blob: Blob) -> dict[str, str]:
    copy = blob.copy
    if copy is None:
        return {}
    facts = {
        "CopyId": copy.id,
        "CopySource": copy.source,
        "CopyStatus": copy.status,
        "CopyProgress": copy.progress,
        "CopyCompletionTime": format_http_date(copy.completed) if copy.completed else "",
        "CopyStatusDescription": copy.description,
    }
    return {name: text for name, text in facts.items() if text}
