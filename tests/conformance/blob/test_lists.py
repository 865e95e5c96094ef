"""Lists of blobs, and blobs found by their tags. Source: reference §35, §43."""

from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import xml_text

from .blobs import Container, names_of

FULL = "include=snapshots,uncommittedblobs,metadata,tags"


def test_names_and_prefixes_in_their_order(container: Container) -> None:
    for name in ("b", "a/2", "a/1", "c/1", "B"):
        container.put(name).expect(201)
    assert names_of(container.list()) == ["B", "a/1", "a/2", "b", "c/1"]
    assert names_of(container.list("delimiter=/")) == ["B", "a/", "b", "c/"]
    assert names_of(container.list("prefix=a/&delimiter=/")) == ["a/1", "a/2"]


def test_pages_follow_each_other(container: Container) -> None:
    for name in "abcde":
        container.put(name)
    found, marker = [], ""
    while True:
        page = container.list(f"maxresults=2&marker={quote(marker)}")
        found += names_of(page)
        marker = page.findtext("NextMarker", "")
        if not marker:
            break
    assert found == list("abcde")


@pytest.mark.parametrize("version", ["2009-09-19", "2015-02-21", "2023-11-03", "2026-02-06", "2026-10-06"])
def test_a_list_begins_and_ends_at_names(container: Container, version: str) -> None:
    """Programs of 2026 list from a name on with versions of 2023, such as delta-rs and obstore."""
    for name in ("a/1", "a/2", "a/3", "b"):
        container.put(name).expect(201)

    def listed(query: str) -> list[str]:
        answer = container.send("GET", query=f"restype=container&comp=list&{query}", version=version).expect(200)
        return names_of(ET.fromstring(xml_text(answer.body)))

    assert listed("startFrom=a/2") == ["a/2", "a/3", "b"]
    assert listed("prefix=a/&startFrom=a/2") == ["a/2", "a/3"]
    assert listed("prefix=a/&startFrom=a/20") == ["a/3"]
    assert listed("startFrom=a/2&delimiter=/") == ["a/", "b"]
    assert listed("startFrom=a/2&endBefore=b") == ["a/2", "a/3"]
    assert listed("startFrom=") == ["a/1", "a/2", "a/3", "b"]
    assert listed("startFrom=c") == []


def test_what_a_list_includes(container: Container) -> None:
    container.put("a", x_ms_meta_Colour="red", x_ms_tags="t=1")
    container.send("PUT", "a", "comp=snapshot").expect(201)
    container.put_block("b", "x")
    assert names_of(container.list()) == ["a"]
    page = container.list(FULL)
    assert names_of(page) == ["a", "a", "b"]
    snapshot, base, uncommitted = page.iter("Blob")
    assert snapshot.findtext("Snapshot")
    assert snapshot.find("Properties/LeaseState") is None
    assert base.findtext("Metadata/Colour") == "red"
    assert base.findtext("Properties/TagCount") == "1"
    assert base.findtext("Tags/TagSet/Tag/Key") == "t"
    assert not base.findtext("Properties/Etag", "").startswith('"')
    assert uncommitted.findtext("Properties/Content-Length") == "0"


def test_parameters_that_cannot_be(container: Container) -> None:
    for query, code in (
        ("maxresults=0", "OutOfRangeQueryParameterValue"),
        ("marker=x", "InvalidQueryParameterValue"),
        ("include=x", "InvalidQueryParameterValue"),
    ):
        assert container.send("GET", query=f"restype=container&comp=list&{query}").code == (400, code)


def test_blobs_are_found_by_their_tags(container: Container) -> None:
    container.put("a", x_ms_tags="t=1&u=2").expect(201)
    container.put("b", x_ms_tags="t=2").expect(201)
    where = quote("t>='1' AND u='2'")
    answer = container.send("GET", query=f"restype=container&comp=blobs&where={where}").expect(200)
    assert [blob.findtext("Name") for blob in ET.fromstring(xml_text(answer.body)).iter("Blob")] == ["a"]
    container.send("GET", "a", headers={"x-ms-if-tags": "t='1'"}).expect(200)
    assert container.send("GET", "a", headers={"x-ms-if-tags": "t='2'"}).code == (412, "ConditionNotMet")
    container.send("PUT", "a", "comp=tags", body="<Tags><TagSet></TagSet></Tags>").expect(204)
    answer = container.send("GET", query=f"restype=container&comp=blobs&where={where}").expect(200)
    assert b"<Blobs />" in answer.body
