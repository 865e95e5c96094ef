"""What a list shows of one name: a blob, its snapshots and versions, or uncommitted blocks. Source: reference §35."""

from dataclasses import replace
from operator import itemgetter

from lazulite.blob.lists.blob_list_xml import ListedBlob
from lazulite.blob.lists.page import ListRequest
from lazulite.blob.model.blob import Blob, BlobType, read_blob
from lazulite.blob.model.lease import lease_facts
from lazulite.blob.model.ledger import Ledger, read_ledger
from lazulite.blob.model.rows import CURRENT, LEDGER, SNAPSHOT, VERSION, number
from lazulite.blob.requests.headers import tier_of
from lazulite.blob.requests.paging import LAST_TIME
from lazulite.blob.storage.walk import Walk
from lazulite.blob.times import read_time, write_time
from lazulite.protocol.clock import TICKS_PER_DAY, format_http_date
from lazulite.service.time_slice import TimeSlice

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


_Kept = tuple[int, ListedBlob]
"""A snapshot or version, with its time."""


class NamedBlobs:
    """Reads what is shown of a name.

    Args:
        request: the list.
        walk: over the rows of the container; it is at the first row of the name, and reads values.
        time_slice: of the page.
        now: the time, in ticks.
    """

    def __init__(self, request: ListRequest, walk: Walk, time_slice: TimeSlice, now: int) -> None:
        self._request = request
        self._include = request.include
        self._walk = walk
        self._time_slice = time_slice
        self._now = now

    async def read(self, name: str) -> list[tuple[str, ListedBlob]]:
        """Return what is shown, each with its time for a marker; no more than one entry beyond the page."""
        marker, include, walk = self._request.marker, self._include, self._walk
        first = read_time("marker", marker.time) if marker is not None and marker.name == name else 0
        ledger = read_ledger(await self._value() if walk.key == (name, LEDGER) else None)
        base = read_blob(await self._value()) if walk.key == (name, CURRENT) else None
        found: list[_Kept] = []
        if "snapshots" in include:
            found = await self._kept(name, SNAPSHOT, first)
        is_gone = base is None or bool(base.deleted)
        if "versions" in include:
            with_only = is_gone and "deletedwithversions" in include
            found += [
                (time, replace(listed, has_versions_only=with_only))
                for time, listed in await self._kept(name, VERSION, first)
            ]
            found.sort(key=itemgetter(0))
        elif is_gone and "deletedwithversions" in include:
            found += [each for each in await self._last_version(name) if each[0] >= first]
        entries = [(write_time(time), listed) for time, listed in found]
        shown = self._base(name, base, ledger)
        return entries if shown is None else [*entries, (LAST_TIME, shown)]

    def current(self, name: str, blob: Blob) -> ListedBlob | None:
        """Return a current blob, if it is shown."""
        include = self._include
        if blob.deleted and "deleted" not in include:
            return None
        listed = self._listed(name, blob, is_base=True)
        if "versions" in include and blob.version:
            listed.version, listed.is_current = write_time(blob.version), not blob.deleted
        return listed

    async def _value(self) -> bytes:
        """Return the value of the row at the position, and step over it."""
        value = self._walk.value
        await self._walk.step()
        return value

    async def _kept(self, name: str, kind: str, first: int) -> list[_Kept]:
        """Return the snapshots or versions of a name that are shown, from a time on."""
        walk = self._walk
        found: list[_Kept] = []
        await walk.jump((name, kind + number(first)))
        while (key := walk.key) is not None and key[0] == name and key[1].startswith(kind):
            blob = read_blob(walk.value)
            time = int(key[1][1:], 16)
            if not blob.deleted or "deleted" in self._include:
                listed = self._listed(name, blob)
                if kind == SNAPSHOT:
                    listed.snapshot = write_time(time)
                else:
                    listed.version = write_time(time)
                found.append((time, listed))
                if len(found) > self._request.most:
                    break
            await walk.step()
            await self._time_slice.checkpoint()
        return found

    async def _last_version(self, name: str) -> list[_Kept]:
        """Return the last version of a blob that is deleted; none if it has none."""
        walk = self._walk
        last: tuple[str, bytes] | None = None
        await walk.jump((name, VERSION))
        while (key := walk.key) is not None and key[0] == name and key[1].startswith(VERSION):
            last = key[1], walk.value
            await walk.step()
            await self._time_slice.checkpoint()
        if last is None:
            return []
        listed = self._listed(name, read_blob(last[1]))
        return [(int(last[0][1:], 16), replace(listed, has_versions_only=True))]

    def _base(self, name: str, blob: Blob | None, ledger: Ledger) -> ListedBlob | None:
        """Return the blob itself, or that it has uncommitted blocks only, if that is shown."""
        listed = None if blob is None else self.current(name, blob)
        if listed is None and ledger.upload and "uncommittedblobs" in self._include:
            return uncommitted_blob(name)
        return listed

    def _listed(self, name: str, blob: Blob, *, is_base: bool = False) -> ListedBlob:
        include = self._include
        if not self._request.shows_tags:
            blob = blob._replace(tags=())
        now = self._now
        listed = listed_blob(name, blob.at(now), now, is_base=is_base, with_copy="copy" in include)
        if "metadata" in include:
            listed.metadata = blob.metadata
        if "tags" in include and blob.tags:
            listed.tags = dict(blob.tags)
        return listed
