"""The XML of service properties, and setting and reading it."""

import re
from xml.etree import ElementTree as ET

from .answers import Answer, xml_text
from .client import Client

QUERY = "restype=service&comp=properties"
DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'
RETENTION_OFF = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
LOGGING_OFF = (
    "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>"
    f"{RETENTION_OFF}</Logging>"
)
METRICS_OFF = f"<Version>1.0</Version><Enabled>false</Enabled>{RETENTION_OFF}"
HOUR_OFF = f"<HourMetrics>{METRICS_OFF}</HourMetrics>"
MINUTE_OFF = f"<MinuteMetrics>{METRICS_OFF}</MinuteMetrics>"


def document(*roots: str) -> str:
    """A StorageServiceProperties document."""
    return f"{DECLARATION}<StorageServiceProperties>{''.join(roots)}</StorageServiceProperties>"


DEFAULTS = document(LOGGING_OFF, HOUR_OFF, MINUTE_OFF, "<Cors />")


def rule(origins: str, methods: str = "GET", allowed: str = "", exposed: str = "", seconds: str = "60") -> str:
    """A CorsRule."""
    return (
        f"<CorsRule><AllowedMethods>{methods}</AllowedMethods><AllowedOrigins>{origins}</AllowedOrigins>"
        f"<AllowedHeaders>{allowed}</AllowedHeaders><ExposedHeaders>{exposed}</ExposedHeaders>"
        f"<MaxAgeInSeconds>{seconds}</MaxAgeInSeconds></CorsRule>"
    )


def cors(*rules: str) -> str:
    """A Cors element."""
    return f"<Cors>{''.join(rules)}</Cors>"


_RULE = rule("http://a.example")
_METRICS_ON = METRICS_OFF.replace("false", "true", 1)
_SHAPES = {
    "empty root": "",
    "empty version of logging": LOGGING_OFF.replace("1.0", ""),
    "no version of logging": LOGGING_OFF.replace("<Version>1.0</Version>", ""),
    "unknown version of logging": LOGGING_OFF.replace("1.0", "3.0"),
    "logging without a switch": LOGGING_OFF.replace("<Read>false</Read>", ""),
    "logging without retention": LOGGING_OFF.replace(RETENTION_OFF, ""),
    "empty logging": "<Logging />",
    "empty version of metrics": HOUR_OFF.replace("1.0", ""),
    "metrics 2.0": HOUR_OFF.replace("1.0", "2.0"),
    "minute metrics 2.0": MINUTE_OFF.replace("1.0", "2.0"),
    "metrics without a version": HOUR_OFF.replace("<Version>1.0</Version>", ""),
    "metrics without a switch": MINUTE_OFF.replace("<Enabled>false</Enabled>", "", 1),
    "metrics without APIs": f"<HourMetrics>{_METRICS_ON}</HourMetrics>",
    "metrics without retention": MINUTE_OFF.replace(RETENTION_OFF, ""),
    "empty retention": HOUR_OFF.replace(RETENTION_OFF, "<RetentionPolicy />"),
    "retention without days": LOGGING_OFF.replace(RETENTION_OFF, RETENTION_OFF.replace("false", "true")),
    "a rule outside of Cors": _RULE,
    "a rule in metrics": HOUR_OFF.replace(RETENTION_OFF, RETENTION_OFF + _RULE),
    "something else in Cors": cors(RETENTION_OFF),
    "an empty rule": cors("<CorsRule />"),
    "an unknown part": "<Surprise />",
    "a part twice": "<Cors /><Cors />",
} | {
    f"a rule without {name}": cors(re.sub(f"<{name}>.*?</{name}>", "", _RULE))
    for name in ("AllowedMethods", "AllowedOrigins", "AllowedHeaders", "ExposedHeaders", "MaxAgeInSeconds")
}
MALFORMED = {name: document(shape) for name, shape in _SHAPES.items()}
"""Documents with other elements than they should have, or with a version that there is not: 400
`InvalidXmlDocument`."""

_DAYS_OFF = RETENTION_OFF.replace("</Enabled>", "</Enabled><Days>4</Days>")
DAYS_BESIDE_OFF = {
    part: document(text.replace(RETENTION_OFF, _DAYS_OFF))
    for part, text in {"logging": LOGGING_OFF, "hour metrics": HOUR_OFF, "minute metrics": MINUTE_OFF}.items()
}
DAYS_REASON = "Element Days is only expected when RetentionPolicy is enabled."


def put(client: Client, text: str) -> Answer:
    """Set service properties."""
    return client.send("PUT", "/", QUERY, body=text, headers={"Content-Type": "application/xml"})


def get(client: Client) -> str:
    """Service properties as XML text without the byte order mark."""
    return xml_text(client.send("GET", "/", QUERY).expect(200).body)


def shape(text: str) -> object:
    """An XML document as nested tuples, so that spelling differences of empty elements do not count."""

    def node(element: ET.Element) -> object:
        return element.tag, (element.text or "").strip(), tuple(node(child) for child in element)

    return node(ET.fromstring(text))
