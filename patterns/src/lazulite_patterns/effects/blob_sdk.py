"""Effects on blobs as calls of the SDK's clients, for both drivers. It does no I/O, and imports no SDK of blobs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import AzureError, HttpResponseError, ServiceRequestTimeoutError, ServiceResponseTimeoutError

from lazulite_patterns.effects.blobs import (
    Append,
    AppendCreate,
    BlobDelete,
    BlobEffect,
    BlobFacts,
    BlobGet,
    BlobHead,
    BlobPage,
    BlobPut,
    BlobSetMetadata,
    BlobsFound,
    LeaseAcquire,
    LeaseRelease,
    LeaseRenew,
)
from lazulite_patterns.effects.errors import Rejected
from lazulite_patterns.effects.sdk import NO_RETRIES, Call, rejection

_NOT_FOUND = 404


def call(effect: BlobEffect) -> Call:
    """Return the call that an effect is.

    It is of the container's client for a page, of the lease's one to renew or release that, else of the blob's.
    """
    return _CALLS[type(effect)](effect)


def lease_id(effect: BlobEffect) -> str | None:
    """Return the id of the lease whose client an effect needs; None for the client of the blob."""
    return effect.lease_id if isinstance(effect, LeaseRenew | LeaseRelease) else None


def _once(method: str, *arguments: object, **options: Any) -> Call:
    return Call(method, arguments, {**NO_RETRIES, **options})


def _put(effect: BlobPut) -> Call:
    """Return the call of an upload. Blocks of a stream cannot be read again, so the client repeats them itself."""
    options: dict[str, Any] = {**NO_RETRIES} if isinstance(effect.data, bytes) else {"retry_hook": _not_after_deadline}
    headers = {"metadata": {**effect.metadata}, "content_settings": _content_settings(effect.content_type)}
    if effect.etag is not None:
        options |= {"overwrite": True, **_condition(effect.etag)}
    return Call("upload_blob", (effect.data,), {**options, **headers})


def _not_after_deadline(*, error: AzureError | None = None, **_: object) -> None:
    """Raise the error of a block that waited for the time that was left: the client sends all others again."""
    if error is not None and _timed_out(error):
        raise error


def _timed_out(error: AzureError) -> bool:
    """Tell whether a request ended by its time. If the server does not read the body, only the cause tells."""
    cause: BaseException | None = error.inner_exception
    while cause is not None and not isinstance(cause, TimeoutError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None or isinstance(error, ServiceRequestTimeoutError | ServiceResponseTimeoutError)


def _create(effect: AppendCreate) -> Call:
    headers, absent = _content_settings(effect.content_type), MatchConditions.IfMissing
    return _once("create_append_blob", headers, metadata={**effect.metadata}, match_condition=absent)


def _page(effect: BlobPage) -> Call:
    return _once("list_blobs", name_starts_with=effect.prefix or None, include=["metadata"])


def _content_settings(content_type: str) -> Any:
    from azure.storage.blob import ContentSettings  # noqa: PLC0415 - an extra: only programs with blobs have it

    return ContentSettings(content_type=content_type)


def _condition(etag: str | None) -> dict[str, Any]:
    return {} if etag is None else {"etag": etag, "match_condition": MatchConditions.IfNotModified}


_CALLS: Mapping[type[BlobEffect], Callable[[Any], Call]] = {
    BlobPut: _put,
    AppendCreate: _create,
    Append: lambda effect: _once("append_block", effect.data, appendpos_condition=effect.position),
    BlobSetMetadata: lambda effect: _once("set_blob_metadata", {**effect.metadata}),
    BlobGet: lambda effect: _once("download_blob", effect.start, effect.count, **_condition(effect.etag)),
    BlobHead: lambda _: _once("get_blob_properties"),
    BlobDelete: lambda effect: _once("delete_blob", delete_snapshots="include", **_condition(effect.etag)),
    BlobPage: _page,
    LeaseAcquire: lambda effect: _once("acquire_lease", effect.seconds, effect.lease_id),
    LeaseRenew: lambda _: _once("renew"),
    LeaseRelease: lambda _: _once("release"),
}


def result(effect: BlobEffect, answer: Any) -> object:
    """Return an effect's result from the SDK's answer to a call; for `BlobGet`, from the octets."""
    if isinstance(effect, BlobPut):
        return str(answer["etag"])
    if isinstance(effect, BlobHead):
        return _facts(answer)
    return bytes(answer) if isinstance(effect, BlobGet) else None


def found(blobs: Iterable[Any], token: str | None) -> BlobsFound:
    """Return a page of what the SDK's iterator yielded, and of its continuation token."""
    return BlobsFound(tuple(_facts(each) for each in blobs), token or None)


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
