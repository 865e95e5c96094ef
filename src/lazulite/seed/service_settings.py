"""The settings of a service in a seed, as parts of the document that the service takes, and back."""

from collections.abc import Callable, Mapping
from typing import Any
from xml.etree import ElementTree as ET

from lazulite.resources.settings import Parts
from lazulite.seed.value import Value

SERVICES = ("table", "queue", "blob")
_DAYS_MAX = 365
_SECONDS_MAX = 2**31 - 1
_VERSION = "1.0"
_CORS = {
    "methods": "AllowedMethods",
    "origins": "AllowedOrigins",
    "allowed_headers": "AllowedHeaders",
    "exposed_headers": "ExposedHeaders",
}
"""Key of a rule of CORS -> its element. Each holds a list."""
_WEBSITE = {"index": "IndexDocument", "default_index": "DefaultIndexDocumentPath", "error": "ErrorDocument404Path"}


def service_parts(service: str, value: Value) -> Parts:
    """Return the parts that a seed sets of a service.

    Raises:
        SeedError: the value is not in the schema.
    """
    own = () if service == "blob" else _OF_BLOBS
    known = [key for key in _READERS if key not in own]
    parts = [_READERS[key](each) for key, each in value.fields(known).items()]
    return {part.tag: part for part in parts}


def settings_of(parts: Parts) -> dict[str, Any]:
    """Return the parts of a service as a seed has them, without the ones that are off."""
    found = {key: _WRITERS[key](parts[tag]) for key, tag in _TAGS.items() if tag in parts}
    return {key: value for key, value in found.items() if value}


def _element(tag: str, children: Mapping[str, str]) -> ET.Element:
    element = ET.Element(tag)
    for name, text in children.items():
        ET.SubElement(element, name).text = text
    return element


def _retention(tag: str, value: Value | None) -> ET.Element:
    days = 0 if value is None else value.integer(0, _DAYS_MAX)
    return _element(tag, {"Enabled": "true", "Days": str(days)} if days else {"Enabled": "false"})


def _boolean(value: Value | None) -> str:
    return "true" if value is not None and value.flag() else "false"


def _logging(value: Value) -> ET.Element:
    given = value.fields(("read", "write", "delete", "retention_days"))
    flags = {name.title(): _boolean(given.get(name)) for name in ("delete", "read", "write")}
    element = _element("Logging", {"Version": _VERSION, **flags})
    element.append(_retention("RetentionPolicy", given.get("retention_days")))
    return element


def _metrics(tag: str) -> Callable[[Value], ET.Element]:
    def read(value: Value) -> ET.Element:
        given = value.fields(("enabled", "apis", "retention_days"))
        enabled = _boolean(given.get("enabled"))
        apis = {"IncludeAPIs": _boolean(given.get("apis"))} if enabled == "true" else {}
        element = _element(tag, {"Version": _VERSION, "Enabled": enabled, **apis})
        element.append(_retention("RetentionPolicy", given.get("retention_days")))
        return element

    return read


def _cors(value: Value) -> ET.Element:
    element = ET.Element("Cors")
    for each in value.items():
        given = each.fields((*_CORS, "max_age"))
        if "methods" not in given or "origins" not in given:
            each.fail("a rule needs methods and origins")
        lists = {key: given[key].items() if key in given else [] for key in _CORS}
        texts = {tag: ",".join(item.text() for item in lists[key]) for key, tag in _CORS.items()}
        age = given["max_age"].integer(0, _SECONDS_MAX) if "max_age" in given else 0
        element.append(_element("CorsRule", {**texts, "MaxAgeInSeconds": str(age)}))
    return element


def _website(value: Value) -> ET.Element:
    given = value.fields(("enabled", *_WEBSITE))
    texts = {tag: given[key].text() for key, tag in _WEBSITE.items() if key in given}
    enabled = given["enabled"].flag() if "enabled" in given else True
    return _element("StaticWebsite", {"Enabled": "true", **texts} if enabled else {"Enabled": "false"})


def _default_version(value: Value) -> ET.Element:
    element = ET.Element("DefaultServiceVersion")
    element.text = value.text()
    return element


_READERS: Mapping[str, Callable[[Value], ET.Element]] = {
    "logging": _logging,
    "hour_metrics": _metrics("HourMetrics"),
    "minute_metrics": _metrics("MinuteMetrics"),
    "cors": _cors,
    "delete_retention_days": lambda value: _retention("DeleteRetentionPolicy", value),
    "website": _website,
    "default_version": _default_version,
}
"""Key of a service -> what reads its value as a part."""
_OF_BLOBS = ("delete_retention_days", "website", "default_version")


def _is_on(element: ET.Element, name: str = "Enabled") -> bool:
    return (element.findtext(name) or "").lower() == "true"


def _days(element: ET.Element | None) -> int:
    return int(element.findtext("Days") or 0) if element is not None and _is_on(element) else 0


def _logging_of(element: ET.Element) -> dict[str, Any]:
    flags = {name: True for name in ("read", "write", "delete") if _is_on(element, name.title())}
    days = _days(element.find("RetentionPolicy"))
    return {**flags, **({"retention_days": days} if days else {})}


def _metrics_of(element: ET.Element) -> dict[str, Any]:
    if not _is_on(element):
        return {}
    days = _days(element.find("RetentionPolicy"))
    return {"enabled": True, "apis": _is_on(element, "IncludeAPIs"), **({"retention_days": days} if days else {})}


def _cors_of(element: ET.Element) -> list[dict[str, Any]]:
    rules = []
    for each in element.iterfind("CorsRule"):
        lists = {key: [text for text in (each.findtext(tag) or "").split(",") if text] for key, tag in _CORS.items()}
        rules.append({**lists, "max_age": int(each.findtext("MaxAgeInSeconds") or 0)})
    return rules


def _website_of(element: ET.Element) -> dict[str, Any]:
    texts = {key: element.findtext(tag) for key, tag in _WEBSITE.items()}
    return {"enabled": True, **{key: text for key, text in texts.items() if text}} if _is_on(element) else {}


_TAGS = {
    "logging": "Logging",
    "hour_metrics": "HourMetrics",
    "minute_metrics": "MinuteMetrics",
    "cors": "Cors",
    "delete_retention_days": "DeleteRetentionPolicy",
    "website": "StaticWebsite",
    "default_version": "DefaultServiceVersion",
}
_WRITERS: Mapping[str, Callable[[ET.Element], Any]] = {
    "logging": _logging_of,
    "hour_metrics": _metrics_of,
    "minute_metrics": _metrics_of,
    "cors": _cors_of,
    "delete_retention_days": _days,
    "website": _website_of,
    "default_version": lambda element: element.text or "",
}
"""Key of a service -> what writes its part; the result is false for a part that is off."""
