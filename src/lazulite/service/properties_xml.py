"""The `StorageServiceProperties` document, in and out.

Source: Set and Get Table Service Properties of the REST reference. A document that has not the elements that it should
have is `InvalidXmlDocument`, as is a wrong version or number of days (reference §12.1). An element of the wrong form is
`InvalidXmlNodeValue` (unverified). Before `PARTIAL_PROPERTIES_SINCE` the document has two parts, `Logging` and
`Metrics`, and always both; `Metrics` is what `HourMetrics` is now.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lazulite.protocol.version import PARTIAL_PROPERTIES_SINCE
from lazulite.protocol.xml import document as xml
from lazulite.service.properties import (
    ANALYTICS_VERSION,
    NO_CHANGE,
    BlobProperties,
    BlobPropertiesUpdate,
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    RetentionPolicy,
    ServiceProperties,
)

MAX_RULES = 5
MAX_CORS_CHARACTERS = 2 * 1024
"""The greatest length of all rules together, tags not counted."""
MAX_ORIGINS = 64
MAX_LITERAL_HEADERS = 64
MAX_PREFIXED_HEADERS = 2
MAX_ITEM_LENGTH = 256
MAX_AGE_SECONDS = 2**31 - 1
MAX_RETENTION_DAYS = 365
METHODS = ("DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT")

_ROOT = "StorageServiceProperties"
_NOWHERE = xml.Position(0, 0)
_PARTS = ("Logging", "HourMetrics", "MinuteMetrics", "Cors")
_OLD_PARTS = ("Logging", "Metrics")
_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}
_NUMBER = re.compile(r"[0-9]{1,10}")
# What a rule says goes into response headers, so nothing that could end one may be in it.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ORIGIN = re.compile(r"[!-~]+")


class ServiceElements(NamedTuple):
    """The parts that the document of one service has behind the others."""

    names: Callable[[str], Sequence[str]]
    """Returns the names of the parts that a version knows."""
    read: Callable[[Mapping[str, xml.Node]], BlobPropertiesUpdate]
    """Reads the parts that a request has."""
    write: Callable[[BlobProperties, str], str]
    """Returns the markup of the parts that a version knows."""


NO_OWN_PARTS = ServiceElements(lambda _: (), lambda _: NO_CHANGE, lambda *_: "")


def read_service_properties(
    body: bytes,
    version: str,
    logging_versions: Sequence[str] = (ANALYTICS_VERSION,),
    own_parts: ServiceElements = NO_OWN_PARTS,
) -> PropertiesUpdate:
    """Read what a request sets. A part that is there must be whole.

    Args:
        body: the document.
        version: of the request; it says which parts there are, and whether any of them may be missing.
        logging_versions: the versions of `Logging` that the service has.
        own_parts: of the service.

    Raises:
        ServiceError: `InvalidXmlDocument`, `InvalidXmlNodeValue`, `RequestBodyTooLarge`.
    """
    root = xml.parse(body)
    if root.name != _ROOT:
        raise xml.invalid_document(f"The root must be {_ROOT}.", root.position)
    if not root.children:
        raise xml.invalid_document(f"{_ROOT} has nothing to set.", root.position)
    if version < PARTIAL_PROPERTIES_SINCE:
        parts = xml.fields(root, _OLD_PARTS, own_parts.names(version))
        return PropertiesUpdate(
            _read_logging(parts["Logging"], logging_versions),
            _read_metrics(parts["Metrics"]),
            blob=own_parts.read(parts),
        )
    parts = xml.fields(root, (), (*_PARTS, *own_parts.names(version)))
    return PropertiesUpdate(
        _read_logging(parts["Logging"], logging_versions) if "Logging" in parts else None,
        _read_metrics(parts["HourMetrics"]) if "HourMetrics" in parts else None,
        _read_metrics(parts["MinuteMetrics"]) if "MinuteMetrics" in parts else None,
        _read_cors(parts["Cors"]) if "Cors" in parts else None,
        own_parts.read(parts),
    )


def _read_logging(node: xml.Node, versions: Sequence[str]) -> Logging:
    parts = xml.fields(node, ("Version", "Read", "Write", "Delete", "RetentionPolicy"))
    version = _read_version(parts["Version"], versions)
    read, write, delete = (read_boolean(parts[name]) for name in ("Read", "Write", "Delete"))
    return Logging(read, write, delete, _read_retention(parts["RetentionPolicy"]), version)


def _read_metrics(node: xml.Node) -> Metrics:
    parts = xml.fields(node, ("Version", "Enabled", "RetentionPolicy"), ("IncludeAPIs",))
    _read_version(parts["Version"])
    enabled = read_boolean(parts["Enabled"])
    if enabled:
        xml.fields(node, ("IncludeAPIs",), tuple(parts))
    include_apis = read_boolean(parts["IncludeAPIs"]) if "IncludeAPIs" in parts else None
    return Metrics(enabled, include_apis if enabled else None, _read_retention(parts["RetentionPolicy"]))


def _read_retention(node: xml.Node) -> RetentionPolicy:
    parts = xml.fields(node, ("Enabled",), ("Days",))
    return RetentionPolicy(*read_period(node.name, parts))


def read_period(policy: str, parts: Mapping[str, xml.Node]) -> tuple[bool, int | None]:
    """Return whether a retention policy is enabled, and its `Days`, which it has exactly if it is.

    Args:
        policy: the name of its element.
        parts: its children. `Enabled` is there.

    Raises:
        ServiceError: `InvalidXmlDocument`; `InvalidXmlNodeValue`.
    """
    enabled, node = read_boolean(parts["Enabled"]), parts.get("Days")
    if node is None:
        if enabled:
            raise xml.invalid_document(f"{policy} needs Days.", parts["Enabled"].position)
        return False, None
    if not enabled:
        # Recorded of RetentionPolicy; *unverified* of DeleteRetentionPolicy.
        raise xml.invalid_document("Element Days is only expected when RetentionPolicy is enabled.", node.position)
    days = _read_number(node)
    if not 1 <= days <= MAX_RETENTION_DAYS:
        # Recorded.
        reason = "Retention days must be greater than 0 and less than or equal to 365 days."
        raise xml.invalid_document(reason, node.position)
    return True, days


def _read_cors(node: xml.Node) -> tuple[CorsRule, ...]:
    rules = xml.only_children(node)
    if len(rules) > MAX_RULES:
        raise xml.invalid_document("", _NOWHERE)  # Recorded.
    for rule in rules:
        if rule.name != "CorsRule":
            raise xml.invalid_document("Only CorsRule is expected here.", rule.position)
    if sum(len(item.text.strip()) for rule in rules for item in rule.children) > MAX_CORS_CHARACTERS:
        raise xml.invalid_document("The CORS rules are larger than 2 KiB.", node.position)
    return tuple(_read_rule(rule) for rule in rules)


def _read_rule(node: xml.Node) -> CorsRule:
    names = ("AllowedMethods", "AllowedOrigins", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds")
    parts = xml.fields(node, names)
    methods = _read_list(parts["AllowedMethods"])
    if not methods or not set(methods) <= set(METHODS):
        raise xml.invalid_value(parts["AllowedMethods"], f"Methods are some of {', '.join(METHODS)}.")
    origins = _read_list(parts["AllowedOrigins"])
    if not 1 <= len(origins) <= MAX_ORIGINS or not all(map(_ORIGIN.fullmatch, origins)):
        raise xml.invalid_value(parts["AllowedOrigins"], f"1 to {MAX_ORIGINS} origins are expected.")
    age = _read_number(parts["MaxAgeInSeconds"])
    if age > MAX_AGE_SECONDS:
        raise xml.invalid_value(parts["MaxAgeInSeconds"], "The number is too large.")
    headers, exposed = _read_headers(parts["AllowedHeaders"]), _read_headers(parts["ExposedHeaders"])
    return CorsRule(methods, origins, headers, exposed, age)


def _read_headers(node: xml.Node) -> tuple[str, ...]:
    headers = _read_list(node)
    if not all(map(_HEADER.fullmatch, headers)):
        raise xml.invalid_value(node, "That is not a list of header names.")
    prefixed = sum(header.endswith("*") for header in headers)
    if prefixed > MAX_PREFIXED_HEADERS or len(headers) - prefixed > MAX_LITERAL_HEADERS:
        limits = f"At most {MAX_LITERAL_HEADERS} literal and {MAX_PREFIXED_HEADERS} prefixed headers are allowed."
        raise xml.invalid_value(node, limits)
    return headers


def _read_list(node: xml.Node) -> tuple[str, ...]:
    items = tuple(item.strip() for item in xml.text_of(node).split(",") if item.strip())
    if any(len(item) > MAX_ITEM_LENGTH for item in items):
        raise xml.invalid_value(node, f"An item is longer than {MAX_ITEM_LENGTH} characters.")
    return items


def _read_version(node: xml.Node, versions: Sequence[str] = (ANALYTICS_VERSION,)) -> str:
    version = xml.text_of(node)
    if version not in versions:
        raise xml.invalid_document(f"The version must be {' or '.join(versions)}.", node.position)
    return version


def read_boolean(node: xml.Node) -> bool:
    """Return `true` or `false`. Raises `InvalidXmlNodeValue`."""
    value = _BOOLEANS.get(xml.text_of(node))
    if value is None:
        raise xml.invalid_value(node, f"{node.name} must be true or false.")
    return value


def _read_number(node: xml.Node) -> int:
    text = xml.text_of(node)
    if not _NUMBER.fullmatch(text):
        raise xml.invalid_value(node, f"{node.name} must be a whole number.")
    return int(text)


def write_service_properties(
    properties: ServiceProperties, version: str, own_parts: ServiceElements = NO_OWN_PARTS
) -> bytes:
    """Return the document of a version with its parts in the order in which the live service writes them."""
    logging, own = _logging(properties.logging), own_parts.write(properties.blob, version)
    if version < PARTIAL_PROPERTIES_SINCE:
        return xml.document(xml.element(_ROOT, logging, _metrics("Metrics", properties.hour_metrics), own))
    return xml.document(
        xml.element(
            _ROOT,
            logging,
            _metrics("HourMetrics", properties.hour_metrics),
            _metrics("MinuteMetrics", properties.minute_metrics),
            xml.element("Cors", *map(_rule, properties.cors)),
            own,
        )
    )


def _logging(logging: Logging) -> str:
    flags = (("Read", logging.read), ("Write", logging.write), ("Delete", logging.delete))
    leaves = (boolean_leaf(name, value) for name, value in flags)
    return xml.element("Logging", xml.leaf("Version", logging.version), *leaves, _retention(logging.retention))


def _metrics(name: str, metrics: Metrics) -> str:
    return xml.element(
        name,
        xml.leaf("Version", ANALYTICS_VERSION),
        boolean_leaf("Enabled", metrics.enabled),
        "" if metrics.include_apis is None else boolean_leaf("IncludeAPIs", metrics.include_apis),
        _retention(metrics.retention),
    )


def _retention(retention: RetentionPolicy) -> str:
    days = "" if retention.days is None else xml.leaf("Days", str(retention.days))
    return xml.element("RetentionPolicy", boolean_leaf("Enabled", retention.enabled), days)


def _rule(rule: CorsRule) -> str:
    return xml.element(
        "CorsRule",
        xml.leaf("AllowedMethods", ",".join(rule.allowed_methods)),
        xml.leaf("AllowedOrigins", ",".join(rule.allowed_origins)),
        xml.leaf("AllowedHeaders", _headers(rule.allowed_headers)),
        xml.leaf("ExposedHeaders", _headers(rule.exposed_headers)),
        xml.leaf("MaxAgeInSeconds", str(rule.max_age)),
    )


def _headers(names: Sequence[str]) -> str:
    """Return a list of header names, the literal ones first, otherwise in the order sent (recorded)."""
    return ",".join(sorted(names, key=lambda name: name.endswith("*")))


def boolean_leaf(name: str, value: bool) -> str:
    """Return the markup of an element that is `true` or `false`."""
    return xml.leaf(name, "true" if value else "false")
