"""The bodies of Set Blob Service Properties that are rejected."""

import pytest
from tests.conformance.answers import xml_text
from tests.conformance.service_properties import DAYS_BESIDE_OFF, DAYS_REASON, MALFORMED, document

from .blobs import Blobs

PROPERTIES = "restype=service&comp=properties"
WEBSITE = "<StaticWebsite><Enabled>true</Enabled>{}</StaticWebsite>"
OFF = "<StaticWebsite><Enabled>false</Enabled></StaticWebsite>"
RETENTION = "<DeleteRetentionPolicy><Enabled>{}</Enabled>{}</DeleteRetentionPolicy>"
OWN = {
    "website without a switch": "<StaticWebsite><IndexDocument>i</IndexDocument></StaticWebsite>",
    "slash inside": WEBSITE.format("<IndexDocument>en/home.html</IndexDocument>"),
    "slash before": WEBSITE.format("<IndexDocument>/home.html</IndexDocument>"),
    "empty soft delete": "<DeleteRetentionPolicy />",
    "soft delete without days": RETENTION.format("true", ""),
    "days beside off": RETENTION.format("false", "<Days>4</Days>"),
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_documents_with_other_elements(blobs: Blobs, text: str) -> None:
    assert blobs.send("PUT", "/", PROPERTIES, body=text).code == (400, "InvalidXmlDocument")


@pytest.mark.parametrize("text", DAYS_BESIDE_OFF.values(), ids=DAYS_BESIDE_OFF)
def test_days_belong_to_what_is_enabled(blobs: Blobs, text: str) -> None:
    answer = blobs.send("PUT", "/", PROPERTIES, body=text)
    assert answer.code == (400, "InvalidXmlDocument")
    assert f"<Reason>{DAYS_REASON}</Reason>" in xml_text(answer.body)


@pytest.mark.parametrize("part", OWN.values(), ids=OWN)
def test_parts_of_blobs_with_other_elements(blobs: Blobs, part: str) -> None:
    assert blobs.send("PUT", "/", PROPERTIES, body=document(part)).code == (400, "InvalidXmlDocument")


def test_documents_of_a_website(blobs: Blobs) -> None:
    name = WEBSITE.format(
        "<IndexDocument>home.html</IndexDocument><ErrorDocument404Path>errors/404.html</ErrorDocument404Path>"
    )
    path = WEBSITE.format("<DefaultIndexDocumentPath>en/home.html</DefaultIndexDocumentPath>")
    try:
        for part in (name, path):
            blobs.send("PUT", "/", PROPERTIES, body=document(part)).expect(202)
    finally:
        blobs.send("PUT", "/", PROPERTIES, body=document(OFF)).expect(202)
