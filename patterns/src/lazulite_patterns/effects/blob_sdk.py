"""Effects on blobs as calls of the SDK's clients, for both drivers. It does no I/O, and imports no SDK of blobs."""

from collections.abc import Iterable
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError

from lazulite_patterns.effects.blobs import (
    BlobDelete,
    BlobEffect,
    BlobFacts,
    BlobGet,
    BlobHead,
    BlobPut,
    BlobsFound,
    LeaseAcquire,
    LeaseEffect,
    LeaseRelease,
    LeaseRenew,
)
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.sdk import NO_RETRIES, Call, rejection

_NOT_FOUND = 404


def call(effect: BlobEffect) -> Call:
    """Return the call that an effect is: of the container's client for a page, else of the blob's."""
    if isinstance(effect, BlobPut):
        return _put(effect)
    if isinstance(effect, BlobGet):
        return Call("download_blob", (effect.start, effect.count), {**NO_RETRIES})
    if isinstance(effect, BlobHead):
        return Call("get_blob_properties", (), {**NO_RETRIES})
    if isinstance(effect, BlobDelete):
        return Call("delete_blob", (), {**NO_RETRIES, "delete_snapshots": "include", **_condition(effect.etag)})
    if isinstance(effect, LeaseEffect):
        return _lease(effect)
    options = {**NO_RETRIES, "name_starts_with": effect.prefix or None, "include": ["metadata"]}
    return Call("list_blobs", (), options)


def _lease(effect: LeaseEffect) -> Call:
    """Return the call of a lease: of the blob's client if it is taken, else of the lease's."""
    if isinstance(effect, LeaseAcquire):
        return Call("acquire_lease", (effect.seconds, effect.lease_id), {**NO_RETRIES})
    return Call("renew" if isinstance(effect, LeaseRenew) else "release", (), {**NO_RETRIES})


def lease_id(effect: BlobEffect) -> str | None:
    """Return the id of the lease whose client an effect needs; None for the client of the blob."""
    return effect.lease_id if isinstance(effect, LeaseRenew | LeaseRelease) else None


def _put(effect: BlobPut) -> Call:
    """Return the call of an upload. Blocks of a stream cannot be read again, so the client repeats them itself."""
    options: dict[str, Any] = {} if not isinstance(effect.data, bytes) else {**NO_RETRIES}
    headers = _content_settings(effect.content_type)
    return Call(
        "upload_blob", (effect.data,), {**options, "metadata": {**effect.metadata}, "content_settings": headers}
    )


def _content_settings(content_type: str) -> Any:
    from azure.storage.blob import ContentSettings  # noqa: PLC0415 - an extra: only programs with blobs have it

    return ContentSettings(content_type=content_type)


def _condition(etag: str | None) -> dict[str, Any]:
    return {} if etag is None else {"etag": etag, "match_condition": MatchConditions.IfNotModified}


def result(effect: BlobEffect, answer: Any) -> object:
    """Return an effect's result from the SDK's answer; for `BlobGet`, from the octets."""
    if isinstance(effect, BlobPut):
        return str(answer["etag"])
    if isinstance(effect, BlobHead):
        return _facts(answer)
    return bytes(answer) if isinstance(effect, BlobGet) else None


def found(blobs: Iterable[Any], token: str | None) -> BlobsFound:
    """Return a page of what the SDK's iterator yielded, and of its continuation token."""
    return BlobsFound(tuple(map(_facts, blobs)), token or None)


def _facts(blob: Any) -> BlobFacts:
    """Return what the SDK knows of a blob. Lists have ETags without quotes, conditions need them."""
    etag = str(blob.etag)
    quoted = etag if etag.startswith('"') else f'"{etag}"'
    metadata = {name: value or "" for name, value in (blob.metadata or {}).items()}
    return BlobFacts(str(blob.name), quoted, int(blob.size), blob.last_modified, metadata)


def is_absent(effect: BlobEffect, error: HttpResponseError) -> bool:
    """Tell whether a read failed as the blob is absent; a container that is absent is an error."""
    rejected = rejection(error)
    absent = isinstance(rejected, Rejected) and rejected.status == _NOT_FOUND and rejected.code != "ContainerNotFound"
    return absent and isinstance(effect, BlobGet | BlobHead)
