"""A blob on its way to its name: what Put Blob and Put Block List have in common. Source: reference §36, §40."""

from dataclasses import replace

from lazulite.blob.auth.requirements import WRITE_TAGS, may_overwrite
from lazulite.blob.blobs.tiers import read_tier_of_write
from lazulite.blob.content.sources import COPY_TAGS, TAG_OPTION
from lazulite.blob.model.blob import Blob, BlobType, ContentHeaders
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.retention import Retention, replace_blob
from lazulite.blob.model.tags import read_tags_header
from lazulite.blob.requests.call import Call
from lazulite.blob.storage.catalog import Container
from lazulite.blob.storage.tag_index import NOT_INDEXED, index_tags
from lazulite.blob.versions import TAGS_SINCE
from lazulite.protocol.errors import ServiceError, invalid_header
from lazulite.protocol.metadata import read_metadata

_REPLACE = "REPLACE"


class Creation:
    """What a request says of the blob that it creates.

    Args:
        call: the request.
        type_: of the blob.
        headers: to be stored with it.
        retention: what is kept of its predecessor.

    Raises:
        ServiceError: 400.
    """

    def __init__(self, call: Call, type_: BlobType, headers: ContentHeaders, retention: Retention) -> None:
        sent = call.request.headers
        self._type = type_
        self._headers = headers
        self._retention = retention
        self._metadata = read_metadata(sent)
        self._overwrites = may_overwrite(call.grant, call.resource.name)
        self._tags = _read_tags(call)
        self._indexed = NOT_INDEXED
        self._call = call
        self._tier = read_tier_of_write(sent, type_, call.version)

    def allow(self, draft: Draft) -> Blob:
        """Return the blob without its bytes, if its predecessor allows it.

        Raises:
            ServiceError: the credentials, the lease or a condition do not allow it.
        """
        found = draft.found if draft.found is not None and not draft.found.deleted else None
        if found is not None and not self._overwrites:
            raise ServiceError("UnauthorizedBlobOverwrite")
        lease = self._call.preconditions.allow_write(found, draft.present)
        self._indexed.check(draft.now)
        blob = Blob(type=self._type, modified=draft.modified, created=draft.modified)
        blob = replace(blob, headers=self._headers, metadata=self._metadata, lease=lease)
        blob = replace(blob, tags=tuple(self._tags.items()))
        return replace(blob, tier=self._tier, tier_changed=draft.now if self._tier else 0)

    def take_tags(self, source: Blob) -> None:
        """Take the tags of the source of a copy, if the request says so by `x-ms-copy-source-tag-option: COPY`.

        Raises:
            ServiceError: `InvalidHeaderValue`; the credentials do not permit it; or the request has tags of its own.
        """
        text = self._call.request.headers.get(TAG_OPTION, _REPLACE)
        if text not in (_REPLACE, COPY_TAGS):
            raise invalid_header(TAG_OPTION, text)
        if text == _REPLACE:
            return
        if "x-ms-tags" in self._call.request.headers:
            raise ServiceError("BothUserTagsAndSourceTagsCopyPresentException")
        self._call.authorize(WRITE_TAGS)
        self._tags = dict(source.tags)

    @property
    def has_tags(self) -> bool:
        """Whether the blob gets tags, which `prepare` indexes."""
        return bool(self._tags)

    async def prepare(self, container: Container) -> None:
        """Write what must stand before the blob is written: the index of its tags. Raises `EngineError`."""
        call = self._call
        if self._tags:
            partition = container.space, call.resource.blob
            self._indexed = await index_tags(call.context.engine, partition, self._tags, call.context.clock())

    def put(self, draft: Draft, blob: Blob) -> Blob:
        """Write the blob; return it as it is written."""
        return replace_blob(draft, blob, self._retention)


def _read_tags(call: Call) -> dict[str, str]:
    """Return the `x-ms-tags` of a request, which needs a permission. Raises `ServiceError`."""
    text = call.request.headers.get("x-ms-tags") if call.version >= TAGS_SINCE else None
    if text is None:
        return {}
    call.authorize(WRITE_TAGS)
    return read_tags_header(text)
