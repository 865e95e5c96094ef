"""The service properties that only the Blob service has. By default soft delete and the website are off."""

from dataclasses import asdict, dataclass
from typing import NotRequired, TypedDict, cast


@dataclass(frozen=True, slots=True)
class DeleteRetention:
    """How long deleted blobs are kept (soft delete)."""

    enabled: bool = False
    days: int | None = None
    """1 to 365; None when not enabled."""
    allow_permanent_delete: bool = False
    """Whether a deleted snapshot or version can be deleted for ever before its time."""


@dataclass(frozen=True, slots=True)
class StaticWebsite:
    """What the website shows where a path names no blob; "" for nothing."""

    enabled: bool = False
    index_document: str = ""
    """The name of the blob in each folder that a path ending in `/` shows."""
    default_index_document_path: str = ""
    """The one blob that the root shows, in place of `index_document`."""
    error_document_404_path: str = ""
    """The blob that is shown, with status 404, where there is none."""


@dataclass(frozen=True, slots=True)
class BlobProperties:
    """All of them."""

    delete_retention: DeleteRetention = DeleteRetention()
    website: StaticWebsite = StaticWebsite()
    default_version: str = ""
    """The version of requests that name none; "": the one of all services."""

    def merge(self, update: "BlobPropertiesUpdate") -> "BlobProperties":
        """Return the properties after an update."""
        return BlobProperties(
            self.delete_retention if update.delete_retention is None else update.delete_retention,
            self.website if update.website is None else update.website,
            self.default_version if update.default_version is None else update.default_version,
        )

    def to_json(self) -> "BlobPropertiesJson":
        """Return a form of JSON types only, for storing; it has what differs from the defaults."""
        document = BlobPropertiesJson()
        if self.delete_retention != DeleteRetention():
            document["delete_retention"] = cast("_RetentionJson", asdict(self.delete_retention))
        if self.website != StaticWebsite():
            document["website"] = cast("_WebsiteJson", asdict(self.website))
        if self.default_version:
            document["default_version"] = self.default_version
        return document

    @classmethod
    def from_json(cls, document: "BlobPropertiesJson") -> "BlobProperties":
        """Return what `to_json` gave.

        Raises:
            TypeError: a document that `to_json` did not make.
        """
        retention, website = document.get("delete_retention"), document.get("website")
        return cls(
            DeleteRetention() if retention is None else DeleteRetention(**retention),
            StaticWebsite() if website is None else StaticWebsite(**website),
            document.get("default_version", ""),
        )


DEFAULTS = BlobProperties()


@dataclass(frozen=True, slots=True)
class BlobPropertiesUpdate:
    """What one request sets; None is left as it was."""

    delete_retention: DeleteRetention | None = None
    website: StaticWebsite | None = None
    default_version: str | None = None
    """"" sets the one of all services."""


NO_CHANGE = BlobPropertiesUpdate()


class _RetentionJson(TypedDict):
    enabled: bool
    days: int | None
    allow_permanent_delete: bool


class _WebsiteJson(TypedDict):
    enabled: bool
    index_document: str
    default_index_document_path: str
    error_document_404_path: str


class BlobPropertiesJson(TypedDict):
    """`BlobProperties` in JSON types, field by field."""

    delete_retention: NotRequired[_RetentionJson]
    website: NotRequired[_WebsiteJson]
    default_version: NotRequired[str]
