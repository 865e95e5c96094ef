"""The properties of a service: logging, metrics, CORS rules and those of blobs, as one immutable value.

A new account has the defaults of these classes: everything off, no CORS rule.
"""

from dataclasses import asdict, dataclass
from typing import NotRequired, TypedDict, cast

from lazulite.service.blob_properties import (
    DEFAULTS,
    NO_CHANGE,
    BlobProperties,
    BlobPropertiesJson,
    BlobPropertiesUpdate,
)

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
    """Of the format of the logs."""


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
