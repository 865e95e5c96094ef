"""The properties of a service: logging, metrics, CORS rules and those of blobs; one row for each account and service.

A new account has the defaults of these classes: everything off, no CORS rule.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NotRequired, TypeAlias, TypedDict, cast

from lazulite.engine.commit import Decision, change_row
from lazulite.engine.contract import Engine, Key
from lazulite.engine.remote.messages import CacheInvalidation
from lazulite.records.catalog import RowCache, TimeToLive
from lazulite.records.spaces import SERVICE_PROPERTIES, Space


@dataclass(frozen=True, slots=True)
class DeleteRetention:
    """How long deleted blobs are kept (soft delete)."""

    enabled: bool = False
    days: int | None = None
    """1 to 365; None when not enabled."""
    allow_permanent_delete: bool = False
    """Whether a deleted snapshot or version can be deleted forever before its time."""


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
            document["delete_retention"] = cast("_DeleteRetentionJson", asdict(self.delete_retention))
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


class _DeleteRetentionJson(TypedDict):
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

    delete_retention: NotRequired[_DeleteRetentionJson]
    website: NotRequired[_WebsiteJson]
    default_version: NotRequired[str]


ANALYTICS_VERSION = "1.0"
"""The only version that logging and metrics of the Table service have."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long analytics data is kept."""

    enabled: bool = False
    days: int | None = None
    """1 to 365; None when not enabled."""


@dataclass(frozen=True, slots=True)
class Logging:
    """Which requests are logged."""

    read: bool = False
    write: bool = False
    delete: bool = False
    retention: RetentionPolicy = RetentionPolicy()
    version: str = ANALYTICS_VERSION
    """The version of the format of the logs."""

    @property
    def is_on(self) -> bool:
        """Whether any requests are logged."""
        return self.read or self.write or self.delete


@dataclass(frozen=True, slots=True)
class Metrics:
    """Whether requests are counted, by the hour or by the minute."""

    enabled: bool = False
    include_apis: bool | None = None
    """Whether each API is counted by itself; None when not enabled."""
    retention: RetentionPolicy = RetentionPolicy()


@dataclass(frozen=True, slots=True)
class CorsRule:
    """One CORS rule. `*` alone matches everything; `x-ms-*` among headers every name that begins so."""

    allowed_methods: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    allowed_headers: tuple[str, ...] = ()
    exposed_headers: tuple[str, ...] = ()
    max_age: int = 0
    """How long a browser may keep the answer to a preflight, in seconds."""


@dataclass(frozen=True, slots=True)
class ServiceProperties:
    """All of a service's properties."""

    logging: Logging = Logging()
    hour_metrics: Metrics = Metrics()
    minute_metrics: Metrics = Metrics()
    cors: tuple[CorsRule, ...] = ()
    blob: BlobProperties = DEFAULTS
    """Those that only the Blob service has; the defaults for other services."""

    @property
    def asks_for_analytics(self) -> bool:
        """Whether requests are logged, or counted."""
        return self.logging.is_on or self.hour_metrics.enabled or self.minute_metrics.enabled

    def merge(self, update: "PropertiesUpdate") -> "ServiceProperties":
        """Return the properties after an update."""
        return ServiceProperties(
            self.logging if update.logging is None else update.logging,
            self.hour_metrics if update.hour_metrics is None else update.hour_metrics,
            self.minute_metrics if update.minute_metrics is None else update.minute_metrics,
            self.cors if update.cors is None else update.cors,
            self.blob.merge(update.blob),
        )

    def to_json(self) -> "ServicePropertiesJson":
        """Return a form of JSON types only, for storing."""
        document = asdict(self)
        document["cors"] = [{name: _plain(value) for name, value in rule.items()} for rule in document["cors"]]
        del document["blob"]
        if blob := self.blob.to_json():
            document["blob"] = blob
        return cast("ServicePropertiesJson", document)

    @classmethod
    def from_json(cls, document: "ServicePropertiesJson") -> "ServiceProperties":
        """Return what `to_json` gave.

        Raises:
            KeyError, TypeError: a document that `to_json` did not make.
        """
        return cls(
            _logging(document["logging"]),
            _metrics(document["hour_metrics"]),
            _metrics(document["minute_metrics"]),
            tuple(_rule(rule) for rule in document["cors"]),
            BlobProperties.from_json(document.get("blob", {})),
        )


@dataclass(frozen=True, slots=True)
class PropertiesUpdate:
    """What one request sets; None is left as it was."""

    logging: Logging | None = None
    hour_metrics: Metrics | None = None
    minute_metrics: Metrics | None = None
    cors: tuple[CorsRule, ...] | None = None
    blob: BlobPropertiesUpdate = NO_CHANGE


class _RetentionJson(TypedDict):
    enabled: bool
    days: int | None


class _LoggingJson(TypedDict):
    read: bool
    write: bool
    delete: bool
    retention: _RetentionJson
    version: NotRequired[str]


class _MetricsJson(TypedDict):
    enabled: bool
    include_apis: bool | None
    retention: _RetentionJson


class _CorsRuleJson(TypedDict):
    allowed_methods: list[str]
    allowed_origins: list[str]
    allowed_headers: list[str]
    exposed_headers: list[str]
    max_age: int


class ServicePropertiesJson(TypedDict):
    """`ServiceProperties` in JSON types, field by field."""

    logging: _LoggingJson
    hour_metrics: _MetricsJson
    minute_metrics: _MetricsJson
    cors: list[_CorsRuleJson]
    blob: NotRequired[BlobPropertiesJson]
    """What differs from the defaults; only the Blob service stores it."""


def _plain(value: tuple[str, ...] | int) -> list[str] | int:
    return list(value) if isinstance(value, tuple) else value


def _retention(document: _RetentionJson) -> RetentionPolicy:
    return RetentionPolicy(document["enabled"], document["days"])


def _logging(document: _LoggingJson) -> Logging:
    retention = _retention(document["retention"])
    version = document.get("version", ANALYTICS_VERSION)  # Lazulite 0.1 does not store it.
    return Logging(document["read"], document["write"], document["delete"], retention, version)


def _metrics(document: _MetricsJson) -> Metrics:
    return Metrics(document["enabled"], document["include_apis"], _retention(document["retention"]))


def _rule(document: _CorsRuleJson) -> CorsRule:
    return CorsRule(
        tuple(document["allowed_methods"]),
        tuple(document["allowed_origins"]),
        tuple(document["allowed_headers"]),
        tuple(document["exposed_headers"]),
        document["max_age"],
    )


def _verify(_: Key, value: bytes) -> None:
    ServiceProperties.from_json(json.loads(value))


PROPERTIES_SPACE = Space(
    number=SERVICE_PROPERTIES,
    owner="",
    title="the service properties",
    watched=True,
    copied=True,
    in_checksum=True,
    verify=_verify,
)


PropertiesObserver: TypeAlias = Callable[[str, str, ServiceProperties], None]
"""Takes the name of a service, an account, and its properties."""


class PropertiesStore:
    """The service properties of all accounts for one service (`table`, …).

    Args:
        engine: holds the rows.
        service: the service's name.
        ttl: how long a row is cached if other processes change rows without invalidation; None: until it changes.
        observer: called with what was read, each time that it is read.
    """

    def __init__(
        self,
        engine: Engine,
        service: str,
        ttl: TimeToLive | None = None,
        observer: PropertiesObserver | None = None,
    ) -> None:
        self._engine = engine
        self._service = service
        self._observer = observer
        self._cache: RowCache[Key, ServiceProperties] = RowCache(ttl=ttl)

    @property
    def invalidation(self) -> CacheInvalidation:
        """The cache to invalidate when other processes change rows of `SERVICE_PROPERTIES`."""
        return self._cache

    def cached(self, account: str) -> ServiceProperties | None:
        """Return an account's properties if they are cached."""
        return self._cache.get((account, self._service))

    async def get(self, account: str) -> ServiceProperties:
        """Return an account's properties; the defaults if none were ever set."""
        properties = self._cache.get((account, self._service))
        if properties is None:
            properties = await self._cache.renewed((account, self._service), lambda: self._read(account))
        return ServiceProperties() if properties is None else properties

    async def _read(self, account: str) -> ServiceProperties:
        before = self._cache.before_read()
        properties = _decode(await self._engine.get(SERVICE_PROPERTIES, account, self._service))
        self._cache.fill((account, self._service), properties, before)
        if self._observer is not None:
            self._observer(self._service, account, properties)
        return properties

    async def update(self, account: str, update: PropertiesUpdate) -> None:
        """Merge the roots that `update` has into an account's properties."""

        def merge(current: bytes | None) -> Decision[None]:
            merged = _decode(current).merge(update)
            return Decision({self._service: json.dumps(merged.to_json()).encode()}, None)

        with self._cache.changing((account, self._service)):
            await self._engine.commit(SERVICE_PROPERTIES, account, change_row(self._service, merge))


def _decode(value: bytes | None) -> ServiceProperties:
    return ServiceProperties() if value is None else ServiceProperties.from_json(json.loads(value))
