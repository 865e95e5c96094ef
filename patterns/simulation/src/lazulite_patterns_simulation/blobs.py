"""A container of blobs in memory, as a value. The service's rules, as far as protocols see them."""

from typing import NamedTuple

from lazulite_patterns.effects.blobs import (
    Append,
    AppendCreate,
    AppendEffect,
    BlobDelete,
    BlobEffect,
    BlobFacts,
    BlobGet,
    BlobHead,
    BlobPage,
    BlobPut,
    BlobsFound,
    LeaseAcquire,
    LeaseEffect,
    LeaseRenew,
)
from lazulite_patterns.effects.errors import Rejected

_ABSENT = (404, "BlobNotFound")
_EXISTS = (409, "BlobAlreadyExists")
_CHANGED = (412, "ConditionNotMet")
_POSITION = (412, "AppendPositionConditionNotMet")
_LEASED = (409, "LeaseAlreadyPresent")
_OTHER = (409, "LeaseIdMismatchWithLeaseOperation")
_BEYOND = (416, "InvalidRange")


class _Blob(NamedTuple):
    """A blob. The number of the write in its container makes its ETag, which is never used again."""

    name: str
    data: bytes
    metadata: tuple[tuple[str, str], ...]
    write: int
    lease: str = ""
    leased_until: float = 0.0
    leased_seconds: float = 0.0

    @property
    def etag(self) -> str:
        return f'"{self.write}"'

    @property
    def facts(self) -> BlobFacts:
        return BlobFacts(self.name, self.etag, len(self.data), None, dict(self.metadata))


class Container(NamedTuple):
    """Blobs in the order of their names, and how many writes there were."""

    writes: int = 0
    blobs: tuple[_Blob, ...] = ()

    def facts(self) -> list[BlobFacts]:
        """Return what is known of each blob. A world has no times: none is old."""
        return [each.facts for each in self.blobs]

    def perform(self, effect: BlobEffect, now_seconds: float) -> tuple["Container", object]:
        """Return the container after an effect, and the effect's result. At infinity the time of every lease is over.

        Raises:
            Rejected: as the service does.
        """
        if isinstance(effect, BlobPage):
            return self, BlobsFound(
                tuple(each.facts for each in self.blobs if each.name.startswith(effect.prefix)), None
            )
        blob = next((each for each in self.blobs if each.name == effect.name), None)
        if isinstance(effect, BlobPut):
            return self._put(effect, blob)
        if isinstance(effect, AppendEffect):
            return self._appended(effect, blob), None
        if isinstance(effect, BlobHead | BlobGet):
            return self, None if blob is None else _read(effect, blob)
        if isinstance(effect, LeaseEffect):
            return self._leased(effect, blob, now_seconds), None
        return self._deleted(effect, blob), None

    def _put(self, effect: BlobPut, blob: _Blob | None) -> tuple["Container", str]:
        if blob is not None and effect.etag is None:
            raise Rejected(*_EXISTS)
        if effect.etag is not None and (blob is None or blob.etag != effect.etag):
            raise Rejected(*_CHANGED)
        data = effect.data if isinstance(effect.data, bytes) else effect.data.read()
        put = _Blob(effect.name, data, tuple(effect.metadata.items()), self.writes + 1)
        others = (each for each in self.blobs if each is not blob)
        return Container(self.writes + 1, tuple(sorted((*others, put)))), put.etag

    def _appended(self, effect: AppendEffect, blob: _Blob | None) -> "Container":
        write = self.writes + 1
        if isinstance(effect, AppendCreate):
            if blob is not None:
                raise Rejected(*_EXISTS)
            made = _Blob(effect.name, b"", tuple(effect.metadata.items()), write)
            return Container(write, tuple(sorted((*self.blobs, made))))
        if blob is None:
            raise Rejected(*_ABSENT)
        if isinstance(effect, Append):
            if effect.position != len(blob.data):
                raise Rejected(*_POSITION)
            changed = blob._replace(data=blob.data + effect.data, write=write)
        else:
            changed = blob._replace(metadata=tuple(effect.metadata.items()), write=write)
        return Container(write, tuple(changed if each is blob else each for each in self.blobs))

    def _leased(self, effect: LeaseEffect, blob: _Blob | None, now: float) -> "Container":
        if blob is None:
            raise Rejected(*_ABSENT)
        if isinstance(effect, LeaseAcquire):
            if blob.lease not in {"", effect.lease_id} and now < blob.leased_until:
                raise Rejected(*_LEASED)
            leased = blob._replace(lease=effect.lease_id, leased_seconds=effect.seconds)
        elif blob.lease != effect.lease_id:
            raise Rejected(*_OTHER)
        else:
            leased = blob if isinstance(effect, LeaseRenew) else blob._replace(lease="", leased_seconds=0)
        changed = leased._replace(leased_until=now + leased.leased_seconds)
        return self._replace(blobs=tuple(changed if each is blob else each for each in self.blobs))

    def _deleted(self, effect: BlobDelete, blob: _Blob | None) -> "Container":
        if blob is None:
            raise Rejected(*_ABSENT)
        if effect.etag not in {None, blob.etag}:
            raise Rejected(*_CHANGED)
        return Container(self.writes + 1, tuple(each for each in self.blobs if each is not blob))


def _read(effect: BlobHead | BlobGet, blob: _Blob) -> BlobFacts | bytes:
    if isinstance(effect, BlobHead):
        return blob.facts
    if effect.etag not in {None, blob.etag}:
        raise Rejected(*_CHANGED)
    if effect.start >= len(blob.data):
        raise Rejected(*_BEYOND)
    return blob.data[effect.start : effect.start + effect.count]
