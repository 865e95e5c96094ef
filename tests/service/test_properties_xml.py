from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.version import NEWEST
from lazulite.service.properties import (
    CorsRule,
    Logging,
    Metrics,
    PropertiesUpdate,
    RetentionPolicy,
    ServiceProperties,
)
from lazulite.service.properties_xml import read_service_properties, write_service_properties

from .test_properties import PROPERTIES

HEAD = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>'
OFF = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
LOGGING = f"<Version>1.0</Version><Read>true</Read><Write>False</Write><Delete>True</Delete>{OFF}"
METRICS = f"<Version>1.0</Version><Enabled>false</Enabled>{OFF}"
RULE = {
    "AllowedMethods": "GET,PUT",
    "AllowedOrigins": "*",
    "AllowedHeaders": "x-ms-*",
    "ExposedHeaders": "",
    "MaxAgeInSeconds": "5",
}


def read(document: bytes) -> PropertiesUpdate:
    return read_service_properties(document, NEWEST)


def write(properties: ServiceProperties) -> bytes:
    return write_service_properties(properties, NEWEST)


def body(inner: str) -> bytes:
    return f"<StorageServiceProperties>{inner}</StorageServiceProperties>".encode()


def retention(enabled: str, days: str | None = None) -> str:
    tail = "" if days is None else f"<Days>{days}</Days>"
    return f"<RetentionPolicy><Enabled>{enabled}</Enabled>{tail}</RetentionPolicy>"


def cors(*changes: dict[str, str | None]) -> bytes:
    rules = ({**RULE, **change} for change in changes)
    inner = ("".join(f"<{name}>{text}</{name}>" for name, text in rule.items() if text is not None) for rule in rules)
    return body("<Cors>" + "".join(f"<CorsRule>{rule}</CorsRule>" for rule in inner) + "</Cors>")


def rejected(document: bytes) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        read(document)
    assert caught.value.status == 400
    return caught.value


def test_the_defaults_as_the_service_writes_them() -> None:
    off = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>"
    metrics = f"<Version>1.0</Version><Enabled>false</Enabled>{off}"
    assert write(ServiceProperties()) == HEAD + body(
        f"<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete>{off}</Logging>"
        f"<HourMetrics>{metrics}</HourMetrics><MinuteMetrics>{metrics}</MinuteMetrics><Cors />"
    )


def test_everything_on() -> None:
    week = RetentionPolicy(True, 7)
    rule = CorsRule(("GET", "PUT"), ("http://a", "http://b"), ("x-ms-*",), (), 60)
    properties = ServiceProperties(Logging(True, True, True, week), Metrics(True, True, week), Metrics(), (rule,))
    written = write(properties)
    assert b"<Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy>" in written
    assert b"<RetentionPolicy><Enabled>true</Enabled><Days>7</Days></RetentionPolicy>" in written
    assert (
        b"<Cors><CorsRule><AllowedMethods>GET,PUT</AllowedMethods><AllowedOrigins>http://a,http://b</AllowedOrigins>"
        b"<AllowedHeaders>x-ms-*</AllowedHeaders><ExposedHeaders /><MaxAgeInSeconds>60</MaxAgeInSeconds></CorsRule>"
        b"</Cors>"
    ) in written


@given(PROPERTIES)
def test_documents_survive(properties: ServiceProperties) -> None:
    update = read(write(properties))
    assert ServiceProperties().merge(update) == properties


def test_any_part_may_be_missing() -> None:
    assert read(body("<Cors/>")) == PropertiesUpdate(cors=())
    expected = PropertiesUpdate(logging=Logging(True, False, True))
    assert read(body(f"<Logging>{LOGGING}</Logging>")) == expected
    parts = body(f"<MinuteMetrics>{METRICS}</MinuteMetrics><HourMetrics>{METRICS}</HourMetrics>")
    assert read(parts) == PropertiesUpdate(hour_metrics=Metrics(), minute_metrics=Metrics())


def test_children_come_in_any_order() -> None:
    shuffled = f"<Delete>true</Delete>{OFF}<Read>true</Read><Version> 1.0 </Version><Write>false</Write>"
    assert read(body(f"<Logging>{shuffled}</Logging>")).logging == Logging(True, False, True)


def test_what_is_off_has_no_details() -> None:
    metrics = f"<Version>1.0</Version><Enabled>false</Enabled><IncludeAPIs>true</IncludeAPIs>{OFF}"
    assert read(body(f"<HourMetrics>{metrics}</HourMetrics>")).hour_metrics == Metrics()


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        (f"<Logging>{LOGGING.replace('1.0', '2.0')}</Logging>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING.replace('1.0', '')}</Logging>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING.replace('False', 'no')}</Logging>", "InvalidXmlNodeValue"),
        (f"<Logging>{LOGGING.replace('<Read>true</Read>', '')}</Logging>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING}<Extra/></Logging>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING.replace(OFF, '')}</Logging>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING}</Logging>" * 2, "InvalidXmlDocument"),
        ("<Logging/>", "InvalidXmlDocument"),
        (f"<HourMetrics>{METRICS.replace('false', 'true', 1)}</HourMetrics>", "InvalidXmlDocument"),
        (f"<HourMetrics>{METRICS.replace('1.0', '2.0')}</HourMetrics>", "InvalidXmlDocument"),
        ("<CorsRule/>", "InvalidXmlDocument"),
        ("", "InvalidXmlDocument"),
        (f"<Metrics>{METRICS}</Metrics>", "InvalidXmlDocument"),
        ("<DefaultServiceVersion>2020-01-01</DefaultServiceVersion>", "InvalidXmlDocument"),
        ("text", "InvalidXmlDocument"),
    ],
)
def test_rejections(inner: str, code: str) -> None:
    assert rejected(body(inner)).code == code


@pytest.mark.parametrize(
    ("days", "code"),
    [
        (None, "InvalidXmlDocument"),
        ("", "InvalidXmlNodeValue"),
        ("x", "InvalidXmlNodeValue"),
        ("-1", "InvalidXmlNodeValue"),
        ("٣", "InvalidXmlNodeValue"),
        ("9" * 5000, "InvalidXmlNodeValue"),
        ("0", "InvalidXmlDocument"),
        ("366", "InvalidXmlDocument"),
    ],
)
def test_retention_is_1_to_365_days(days: str | None, code: str) -> None:
    error = rejected(body(f"<Logging>{LOGGING.replace(OFF, retention('true', days))}</Logging>"))
    assert error.code == code
    if days and code == "InvalidXmlDocument":
        reason = "Retention days must be greater than 0 and less than or equal to 365 days."
        assert dict(error.details)["Reason"] == reason


def test_days_belong_to_what_is_enabled() -> None:
    for part in (
        f"<Logging>{LOGGING.replace(OFF, retention('false', '7'))}</Logging>",
        f"<HourMetrics>{METRICS.replace(OFF, retention('false', '7'))}</HourMetrics>",
    ):
        error = rejected(body(part))
        assert error.code == "InvalidXmlDocument"
        assert dict(error.details)["Reason"] == "Element Days is only expected when RetentionPolicy is enabled."


@pytest.mark.parametrize("days", [1, 365])
def test_the_bounds_of_retention_are_allowed(days: int) -> None:
    update = read(body(f"<Logging>{LOGGING.replace(OFF, retention('true', str(days)))}</Logging>"))
    assert update.logging is not None
    assert update.logging.retention == RetentionPolicy(True, days)


@pytest.mark.parametrize("document", [b"", b"<", b"<Other/>", b"<!DOCTYPE a><StorageServiceProperties/>"])
def test_other_documents_are_rejected(document: bytes) -> None:
    assert rejected(document).code == "InvalidXmlDocument"


def test_cors_rules_are_read() -> None:
    document = cors({"AllowedOrigins": "http://a , https://*.b", "ExposedHeaders": "*", "AllowedHeaders": "a,,b*"})
    rule = CorsRule(("GET", "PUT"), ("http://a", "https://*.b"), ("a", "b*"), ("*",), 5)
    assert read(document) == PropertiesUpdate(cors=(rule,))


def items(count: int, suffix: str = "") -> str:
    return ",".join(f"h{number}{suffix}" for number in range(count))


@pytest.mark.parametrize(
    "changes",
    [
        [{}] * 5,
        [{"AllowedMethods": "DELETE,GET,HEAD,MERGE,PATCH,POST,OPTIONS,PUT"}],
        [{"AllowedOrigins": items(64)}],
        [{"AllowedHeaders": items(64) + ",p*,q*"}],
        [{"ExposedHeaders": "x" * 256}],
        [{"AllowedHeaders": ",".join(["x" * 255] * 7)}],
    ],
)
def test_cors_limits_can_be_reached(changes: list[dict[str, str | None]]) -> None:
    read(cors(*changes))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([{}] * 6, "InvalidXmlDocument"),
        ([{"AllowedHeaders": ",".join(["x" * 255] * 8)}], "InvalidXmlDocument"),
        ([{"AllowedMethods": ""}], "InvalidXmlNodeValue"),
        ([{"AllowedMethods": "TRACE"}], "InvalidXmlNodeValue"),
        ([{"AllowedOrigins": ""}], "InvalidXmlNodeValue"),
        ([{"AllowedOrigins": items(65)}], "InvalidXmlNodeValue"),
        ([{"AllowedOrigins": "x" * 257}], "InvalidXmlNodeValue"),
        ([{"AllowedOrigins": "http://a&#10;b"}], "InvalidXmlNodeValue"),
        ([{"AllowedHeaders": items(65)}], "InvalidXmlNodeValue"),
        ([{"AllowedHeaders": items(3, "*")}], "InvalidXmlNodeValue"),
        ([{"ExposedHeaders": "x" * 257}], "InvalidXmlNodeValue"),
        # What is exposed becomes a response header: nothing may end it.
        ([{"ExposedHeaders": "x&#13;&#10;Set-Cookie: a=b"}], "InvalidXmlNodeValue"),
        ([{"MaxAgeInSeconds": ""}], "InvalidXmlNodeValue"),
        ([{"MaxAgeInSeconds": "-1"}], "InvalidXmlNodeValue"),
        ([{"MaxAgeInSeconds": "2147483648"}], "InvalidXmlNodeValue"),
        ([{"MaxAgeInSeconds": None}], "InvalidXmlDocument"),
        ([{"ExposedHeaders": None}], "InvalidXmlDocument"),
        ([{"AllowedHeaders": None}], "InvalidXmlDocument"),
        ([{"Other": "x"}], "InvalidXmlDocument"),
    ],
)
def test_cors_rejections(changes: list[dict[str, str | None]], code: str) -> None:
    assert rejected(cors(*changes)).code == code


def test_only_rules_stand_under_cors() -> None:
    assert rejected(body("<Cors><Rule/></Cors>")).code == "InvalidXmlDocument"


@given(st.binary(max_size=100))
def test_bytes_are_read_or_rejected(document: bytes) -> None:
    with suppress(ServiceError):
        read(document)


# Before 2013-08-15.

OLD = "2012-02-12"
OLD_BODY = body(f"<Logging>{LOGGING}</Logging><Metrics>{METRICS}</Metrics>")


def test_old_versions_have_metrics_by_the_hour_only() -> None:
    properties = ServiceProperties(
        Logging(True, False, True), Metrics(), Metrics(True, True), (CorsRule(("GET",), ("*",)),)
    )
    written = write_service_properties(properties, OLD)
    assert written == HEAD + OLD_BODY.replace(b"False", b"false").replace(b"True", b"true")
    update = read_service_properties(written, OLD)
    assert update == PropertiesUpdate(properties.logging, properties.hour_metrics)
    assert properties.merge(update) == properties


@given(PROPERTIES)
def test_old_documents_survive(properties: ServiceProperties) -> None:
    update = read_service_properties(write_service_properties(properties, OLD), OLD)
    assert update == PropertiesUpdate(properties.logging, properties.hour_metrics)


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ("", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING}</Logging>", "InvalidXmlDocument"),
        (f"<Metrics>{METRICS}</Metrics>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING}</Logging><HourMetrics>{METRICS}</HourMetrics>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING}</Logging><Metrics>{METRICS}</Metrics><Cors/>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING}</Logging><Metrics>{METRICS}</Metrics><MinuteMetrics/>", "InvalidXmlDocument"),
        (f"<Logging>{LOGGING}</Logging><Metrics/>", "InvalidXmlDocument"),
    ],
)
def test_old_versions_need_every_part(inner: str, code: str) -> None:
    with pytest.raises(ServiceError, match=code):
        read_service_properties(body(inner), OLD)


def test_the_first_version_of_partial_properties() -> None:
    assert read_service_properties(body("<Cors/>"), "2013-08-15") == PropertiesUpdate(cors=())
    with pytest.raises(ServiceError, match="InvalidXmlDocument"):
        read_service_properties(OLD_BODY, "2013-08-15")
