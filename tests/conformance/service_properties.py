"""The XML of service properties, and setting and reading it."""

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
