"""Tags of blobs: set, read, and found. Source: reference §43."""

from collections.abc import Iterator
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import Answer, xml_text

from .blobs import Blobs, Container, new_name
from .resources import Resource

TAGS = "comp=tags"


def document(**tags: str) -> bytes:
    pairs = "".join(f"<Tag><Key>{name}</Key><Value>{value}</Value></Tag>" for name, value in tags.items())
    return f"<Tags><TagSet>{pairs}</TagSet></Tags>".encode()


def tags_of(blob: Resource, query: str = TAGS) -> dict[str, str]:
    root = ET.fromstring(xml_text(blob.send("GET", query).expect(200).body))
    return {tag.findtext("Key", ""): tag.findtext("Value", "") for tag in root.iter("Tag")}


def test_tags_are_read_as_they_were_set(blob: Resource) -> None:
    before = blob.facts()
    assert before.header("x-ms-tag-count") is None
    blob.send("PUT", TAGS, body=document(a="1", b="two words")).expect(204)
    assert tags_of(blob) == {"a": "1", "b": "two words"}
    after = blob.facts()
    assert after.header("x-ms-tag-count") == "2"
    assert (after.etag, after.header("Last-Modified")) == (before.etag, before.header("Last-Modified"))
    blob.send("PUT", TAGS, body=document()).expect(204)
    assert tags_of(blob) == {}


def test_tags_come_with_the_blob(blob: Resource) -> None:
    blob.put(b"x", {"x-ms-tags": "a=1&b=two+words"}).expect(201)
    assert tags_of(blob) == {"a": "1", "b": "two words"}
    blob.put(b"x").expect(201)
    assert tags_of(blob) == {}
    blob.container.put_block(blob.name, "a").expect(201)
    blob.container.put_list(blob.name, ("Latest", "a"), headers={"x-ms-tags": "c=3"}).expect(201)
    assert tags_of(blob) == {"c": "3"}


def test_a_snapshot_keeps_its_tags(blob: Resource) -> None:
    blob.put(b"x", {"x-ms-tags": "a=1"}).expect(201)
    past = blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    blob.put(b"x").expect(201)
    assert tags_of(blob, f"{TAGS}&snapshot={past}") == {"a": "1"}


def test_tags_of_what_is_not_there(missing: Resource) -> None:
    assert missing.send("GET", TAGS).code == (404, "BlobNotFound")
    assert missing.send("PUT", TAGS, body=document(a="1")).code == (404, "BlobNotFound")
    assert missing.send("PUT", TAGS, body=b"<Tags/>").code == (400, "InvalidXmlDocument")


@pytest.fixture
def tag() -> str:
    """The name of a tag that no other test uses: searches of the account are for all containers."""
    return new_name().replace("-", "_")


@pytest.fixture
def animals(blobs: Blobs) -> Iterator[tuple[Container, Container]]:
    """Two containers in the order of their names."""
    name = new_name()
    found = Container(blobs, f"{name}-1"), Container(blobs, f"{name}-2")
    for container in found:
        container.send("PUT", query="restype=container").expect(201)
    yield found
    for container in found:
        container.send("DELETE", query="restype=container")


def find(container: Container, where: str, query: str = "", *, in_account: bool = False) -> Answer:
    """Search a container, or the whole account."""
    sent = f"comp=blobs&where={quote(where)}{query}"
    if in_account:
        return container.blobs.send("GET", "/", sent)
    return container.send("GET", query=f"restype=container&{sent}")


def found(answer: Answer) -> list[tuple[str, str]]:
    """The containers and names of a page of blobs that were found."""
    root = ET.fromstring(xml_text(answer.expect(200).body))
    return [(blob.findtext("ContainerName", ""), blob.findtext("Name", "")) for blob in root.iter("Blob")]


def test_a_page_to_its_elements(versioned: Container, tag: str) -> None:
    name = new_name()
    written = versioned.put(name, x_ms_tags=f"{tag}=1&y=2&z=3").expect(201)
    where = f"{tag}='1' and y='2'"
    page = find(versioned, where, "&maxresults=2", in_account=True).expect(200).body.replace(b"&apos;", b"'")
    assert (
        f"<Where>{where}</Where><MaxResults>2</MaxResults><Blobs><Blob><Name>{name}</Name>"
        f"<ContainerName>{versioned.name}</ContainerName><Tags><TagSet><Tag><Key>{tag}</Key><Value>1</Value></Tag>"
        "<Tag><Key>y</Key><Value>2</Value></Tag></TagSet></Tags></Blob></Blobs><NextMarker /></EnumerationResults>"
    ).encode() in page
    version = written.required("x-ms-version-id").encode()
    page = find(versioned, where, "&include=versions").expect(200).body
    assert b"</Tags><VersionId>%b</VersionId><IsCurrentVersion>true</IsCurrentVersion></Blob>" % version in page
    assert b"Version" not in find(versioned, where).body


def test_an_earlier_value_finds_nothing(container: Container, tag: str) -> None:
    for value in "12":
        container.put("a", x_ms_tags=f"{tag}={value}").expect(201)
    assert found(find(container, f"{tag}='1'")) == []
    assert found(find(container, f"{tag}>'0'")) == [(container.name, "a")]


def test_containers_are_searched_in_their_order(animals: tuple[Container, Container], tag: str) -> None:
    first, second = animals
    for container, name in ((second, "cat"), (first, "cat"), (second, "dog")):
        container.put(name, x_ms_tags=f"{tag}=1").expect(201)
    pages, marker = list[tuple[str, str]](), ""
    while len(pages) < 10:
        page = find(first, f"{tag}='1'", f"&maxresults=1&marker={quote(marker)}", in_account=True)
        pages += found(page)
        marker = ET.fromstring(xml_text(page.body)).findtext("NextMarker", "")
        if not marker:
            break
    assert pages == [(first.name, "cat"), (second.name, "cat"), (second.name, "dog")]
    named = f"@container='{second.name}' AND {tag}='1'"
    assert found(find(first, named, in_account=True)) == pages[1:]
    assert found(find(first, f"@container='none' AND {tag}='1'", in_account=True)) == []
    second.send("DELETE", query="restype=container").expect(202)
    assert found(find(first, f"{tag}='1'", in_account=True)) == pages[:1]


@pytest.mark.parametrize(
    ("where", "query", "code"),
    [
        ("", "", "MissingRequiredQueryParameter"),
        ("x=", "", "InvalidQueryParameterValue"),
        ("x='1'", "&maxresults=0", "OutOfRangeQueryParameterValue"),
        ("x='1'", "&marker=x", "InvalidQueryParameterValue"),
        ("@container='a' AND x='1'", "", "InvalidQueryParameterValue"),
    ],
)
def test_searches_that_cannot_be(shared: Container, where: str, query: str, code: str) -> None:
    assert find(shared, where, query).code == (400, code)
