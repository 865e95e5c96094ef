"""The service properties of blobs: what they have beyond those of other services."""

import pytest
from hypothesis import given

from lazulite.blob.containers.account import BLOB_PARTS
from lazulite.protocol.errors import ServiceError
from lazulite.service.properties import (
    BlobProperties,
    BlobPropertiesUpdate,
    DeleteRetention,
    Logging,
    PropertiesUpdate,
    ServiceProperties,
    StaticWebsite,
)
from lazulite.service.properties_xml import read_service_properties, write_service_properties
from tests.service.test_properties import OF_BLOBS

NEWEST = "2026-10-06"


def body(inner: str) -> bytes:
    return f"<StorageServiceProperties>{inner}</StorageServiceProperties>".encode()


def read(inner: str, version: str = NEWEST) -> PropertiesUpdate:
    return read_service_properties(body(inner), version, ("1.0", "2.0"), BLOB_PARTS)


def write(properties: ServiceProperties, version: str = NEWEST) -> str:
    return write_service_properties(properties, version, BLOB_PARTS).decode("utf-8-sig")


@given(OF_BLOBS)
def test_properties_survive_the_document(properties: ServiceProperties) -> None:
    update = read_service_properties(write(properties).encode(), NEWEST, own_parts=BLOB_PARTS)
    assert ServiceProperties().merge(update) == properties


@pytest.mark.parametrize(
    ("properties", "version", "expected"),
    [
        (
            BlobProperties(),
            NEWEST,
            "<DeleteRetentionPolicy><Enabled>false</Enabled><AllowPermanentDelete>false</AllowPermanentDelete>"
            "</DeleteRetentionPolicy><StaticWebsite><Enabled>false</Enabled></StaticWebsite>",
        ),
        (
            BlobProperties(DeleteRetention(True, 2), StaticWebsite(True, "i.html", "", "e/404.html"), "2018-03-28"),
            "2019-02-02",
            "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>2</Days></DeleteRetentionPolicy>"
            "<StaticWebsite><Enabled>true</Enabled><IndexDocument>i.html</IndexDocument>"
            "<ErrorDocument404Path>e/404.html</ErrorDocument404Path></StaticWebsite>"
            "<DefaultServiceVersion>2018-03-28</DefaultServiceVersion>",
        ),
        (
            BlobProperties(website=StaticWebsite(True, default_index_document_path="i.html")),
            "2018-03-28",
            "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy><StaticWebsite>"
            "<Enabled>true</Enabled><DefaultIndexDocumentPath>i.html</DefaultIndexDocumentPath></StaticWebsite>",
        ),
        (
            BlobProperties(default_version="2015-02-21"),
            "2017-07-29",
            "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>"
            "<DefaultServiceVersion>2015-02-21</DefaultServiceVersion>",
        ),
        (BlobProperties(DeleteRetention(True, 2)), "2015-02-21", ""),
    ],
)
def test_parts_of_blobs_stand_last(properties: BlobProperties, version: str, expected: str) -> None:
    written = write(ServiceProperties(blob=properties), version)
    assert written.endswith(f"<Cors />{expected}</StorageServiceProperties>")


def test_before_partial_properties_a_document_may_have_the_default_version() -> None:
    properties = ServiceProperties(blob=BlobProperties(default_version="2009-09-19"))
    written = write(properties, "2012-02-12")
    assert written.endswith(
        "</Metrics><DefaultServiceVersion>2009-09-19</DefaultServiceVersion></StorageServiceProperties>"
    )
    update = read_service_properties(written.encode(), "2012-02-12", own_parts=BLOB_PARTS)
    assert ServiceProperties(Logging(read=True)).merge(update) == properties


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("<DefaultServiceVersion/>", BlobPropertiesUpdate(default_version="")),
        (
            "<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>",
            BlobPropertiesUpdate(DeleteRetention()),
        ),
        (
            "<DeleteRetentionPolicy><Days>365</Days><Enabled>true</Enabled>"
            "<AllowPermanentDelete>true</AllowPermanentDelete></DeleteRetentionPolicy>",
            BlobPropertiesUpdate(DeleteRetention(True, 365, True)),
        ),
        (
            "<StaticWebsite><Enabled>false</Enabled><IndexDocument/></StaticWebsite>",
            BlobPropertiesUpdate(website=StaticWebsite()),
        ),
    ],
)
def test_a_request_sets_what_it_has(inner: str, expected: BlobPropertiesUpdate) -> None:
    assert read(inner) == PropertiesUpdate(blob=expected)


DAYS = "Retention days must be greater than 0 and less than or equal to 365 days."
INDEX = "Element IndexDocument is only expected when StaticWebsite/Enabled is enabled."
NO_DAYS = "Element Days is only expected when RetentionPolicy is enabled."
SLASH = "IndexDocument is a name without a slash."


@pytest.mark.parametrize(
    ("inner", "code", "reason"),
    [
        (
            "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>0</Days></DeleteRetentionPolicy>",
            "InvalidXmlDocument",
            DAYS,
        ),
        (
            "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>366</Days></DeleteRetentionPolicy>",
            "InvalidXmlDocument",
            DAYS,
        ),
        ("<DeleteRetentionPolicy><Enabled>true</Enabled></DeleteRetentionPolicy>", "InvalidXmlDocument", None),
        ("<DeleteRetentionPolicy/>", "InvalidXmlDocument", None),
        (
            "<DeleteRetentionPolicy><Enabled>false</Enabled><Days>7</Days></DeleteRetentionPolicy>",
            "InvalidXmlDocument",
            NO_DAYS,
        ),
        (
            "<StaticWebsite><Enabled>true</Enabled><IndexDocument>a/b</IndexDocument></StaticWebsite>",
            "InvalidXmlDocument",
            SLASH,
        ),
        (
            "<StaticWebsite><Enabled>true</Enabled><IndexDocument>/b</IndexDocument></StaticWebsite>",
            "InvalidXmlDocument",
            SLASH,
        ),
        (
            "<StaticWebsite><Enabled>false</Enabled><IndexDocument>i</IndexDocument></StaticWebsite>",
            "InvalidXmlDocument",
            INDEX,
        ),
        (
            "<StaticWebsite><Enabled>true</Enabled><IndexDocument>i</IndexDocument>"
            "<DefaultIndexDocumentPath>i</DefaultIndexDocumentPath></StaticWebsite>",
            "InvalidXmlDocument",
            None,
        ),
        (
            f"<StaticWebsite><Enabled>true</Enabled><IndexDocument>{'i' * 1025}</IndexDocument></StaticWebsite>",
            "InvalidXmlNodeValue",
            None,
        ),
        ("<StaticWebsite><Enabled>yes</Enabled></StaticWebsite>", "InvalidXmlNodeValue", None),
        ("<DefaultServiceVersion>2021-02-30</DefaultServiceVersion>", "InvalidXmlNodeValue", None),
        ("<DefaultServiceVersion>20210201</DefaultServiceVersion>", "InvalidXmlNodeValue", None),
        ("<Website/>", "InvalidXmlDocument", None),
    ],
)
def test_wrong_parts_are_rejected(inner: str, code: str, reason: str | None) -> None:
    with pytest.raises(ServiceError) as rejected:
        read(inner)
    assert rejected.value.code == code
    if reason is not None:
        details = dict(rejected.value.details)
        assert details["Reason"] == reason
        assert details["LineNumber"] == "1"


def test_parts_belong_to_blobs_and_to_their_versions() -> None:
    website = "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>"
    with pytest.raises(ServiceError, match="InvalidXmlDocument"):
        read_service_properties(body(website), NEWEST)
    with pytest.raises(ServiceError, match="InvalidXmlDocument"):
        read(website, "2017-11-09")
    with pytest.raises(ServiceError, match="InvalidXmlDocument"):
        read("<DeleteRetentionPolicy><Enabled>false</Enabled></DeleteRetentionPolicy>", "2017-04-17")
