"""Pages of blobs: order of elements, encoded names, versions of the protocol."""

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.blob.lists.blob_list_xml import PROPERTIES, BlobPage, ListedBlob, ListedPrefix, RowWriter, write_page
from lazulite.blob.versions import BLOB_ELEMENTS, SNAPSHOT_ELEMENTS
from lazulite.engine.key_encoding import encode_text
from tests.blob.test_versions import day_before

NEWEST = "2026-10-06"
BASE = "http://127.0.0.1:10000/acc/"
BLOCK = {
    "Etag": "0x8D6D4168BD4CB41",
    "Last-Modified": "Mon, 17 Jun 2019 23:55:48 GMT",
    "Content-Length": "5",
    "Content-Type": "text/plain",
    "BlobType": "BlockBlob",
    "LeaseState": "available",
}


def page(rows: Iterable[ListedBlob | ListedPrefix], version: str = NEWEST, marker: str = "") -> str:
    about = BlobPage(base=BASE, container="c", sent=[("Prefix", "a&b")], version=version)
    writer = RowWriter(about)
    return write_page(about, [writer.row(row).encode() for row in rows], marker).decode("utf-8-sig")


def blob(row: ListedBlob, version: str = NEWEST) -> str:
    return page([row], version).partition("<Blobs>")[2].partition("</Blobs>")[0]


def test_a_page_to_the_byte() -> None:
    assert page([ListedBlob("b", BLOCK), ListedPrefix("d/")], marker="m") == (
        '<?xml version="1.0" encoding="utf-8"?>'
        '<EnumerationResults ServiceEndpoint="http://127.0.0.1:10000/acc/" ContainerName="c"><Prefix>a&amp;b</Prefix>'
        "<Blobs><Blob><Name>b</Name><Properties><Last-Modified>Mon, 17 Jun 2019 23:55:48 GMT</Last-Modified>"
        "<Etag>0x8D6D4168BD4CB41</Etag><Content-Length>5</Content-Length><Content-Type>text/plain</Content-Type>"
        "<Content-Encoding /><Content-Language /><Content-CRC64 /><Content-MD5 /><Cache-Control />"
        "<Content-Disposition /><BlobType>BlockBlob</BlobType><LeaseState>available</LeaseState></Properties>"
        "<OrMetadata /></Blob><BlobPrefix><Name>d/</Name></BlobPrefix></Blobs><NextMarker>m</NextMarker>"
        "</EnumerationResults>"
    )


def test_an_empty_page() -> None:
    assert page([]).endswith("<Blobs /><NextMarker /></EnumerationResults>")


def test_what_stands_around_the_properties() -> None:
    row = ListedBlob(
        "b",
        BLOCK,
        snapshot="2019-06-17T23:55:48.8621956Z",
        version="2022-09-21T08:42:38.3319534Z",
        is_current=True,
        is_deleted=True,
        has_versions_only=True,
        metadata=[("Key", "<v>"), ("1x", "y")],
        tags={"t": "v"},
    )
    before, _, rest = blob(row).partition("<Properties>")
    assert before == (
        "<Blob><Name>b</Name><Snapshot>2019-06-17T23:55:48.8621956Z</Snapshot>"
        "<VersionId>2022-09-21T08:42:38.3319534Z</VersionId><IsCurrentVersion>true</IsCurrentVersion>"
        "<Deleted>true</Deleted><HasVersionsOnly>true</HasVersionsOnly>"
    )
    assert rest.partition("</Properties>")[2] == (
        "<Metadata><Key>&lt;v&gt;</Key><x-ms-invalid-name>1x</x-ms-invalid-name></Metadata>"
        "<Tags><TagSet><Tag><Key>t</Key><Value>v</Value></Tag></TagSet></Tags><OrMetadata /></Blob>"
    )


def test_properties_are_in_their_order_whatever_order_they_are_given_in() -> None:
    every = {name: str(number) for number, name in enumerate(PROPERTIES)}
    for given_order in (every, dict(reversed(every.items()))):
        properties = _element(blob(ListedBlob("b", given_order))).find("Properties")
        assert properties is not None
        assert [(child.tag, child.text) for child in properties] == list(every.items())


def test_unknown_properties_are_a_defect() -> None:
    with pytest.raises(ValueError, match="no properties"):
        blob(ListedBlob("b", {**BLOCK, "Nonsense": "1"}))


def test_an_uncommitted_blob_has_its_properties_alone() -> None:
    few = {"Content-Length": "0", "BlobType": "BlockBlob", "ServerEncrypted": "false"}
    assert blob(ListedBlob("b", few, is_committed=False)) == (
        "<Blob><Name>b</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"
        "<ServerEncrypted>false</ServerEncrypted></Properties></Blob>"
    )


def test_only_block_blobs_have_an_element_of_replication() -> None:
    assert "OrMetadata" not in blob(ListedBlob("b", {**BLOCK, "BlobType": "PageBlob"}))
    assert "OrMetadata" not in blob(ListedBlob("b", BLOCK), "2019-07-07")
    assert "Content-CRC64" not in blob(ListedBlob("b", BLOCK), "2018-11-09")


def test_names_that_xml_cannot_carry_are_encoded() -> None:
    assert blob(ListedBlob("a/\ufffeé\1", BLOCK)).startswith('<Blob><Name Encoded="true">a%2F%EF%BF%BE%C3%A9%01</Name>')
    assert blob(ListedBlob("a\ufffe", BLOCK), "2020-12-06").startswith("<Blob><Name>a\ufffd</Name>")
    assert '<BlobPrefix><Name Encoded="true">%01%2F</Name></BlobPrefix>' in page([ListedPrefix("\1/")])


def test_old_lists_have_urls() -> None:
    old = page([ListedBlob("é b", BLOCK)], "2012-02-12")
    assert '<EnumerationResults ContainerName="http://127.0.0.1:10000/acc/c">' in old
    assert "<Name>é b</Name><Url>http://127.0.0.1:10000/acc/c/%C3%A9%20b</Url>" in old


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_any_text_makes_a_document(name: str, text: str, metadata: dict[str, str]) -> None:
    row = ListedBlob(name, {**BLOCK, "CopySource": text, "Cache-Control": text}, metadata=list(metadata.items()))
    found = _element(blob(row))
    assert found.findtext("Name") == name or not name.isprintable()
    assert found.findtext("Properties/CopySource") == text or not text.isprintable()
    assert len(found.findall("Metadata/*")) == len(metadata)


FULL = dict.fromkeys(PROPERTIES, "x") | {"BlobType": "BlockBlob"}


def full(snapshot: str = "") -> ListedBlob:
    row = ListedBlob("b", FULL, snapshot, version="v", is_current=True, is_deleted=True, has_versions_only=True)
    row.tags = {"a": "1"}
    return row


@pytest.mark.parametrize(("element", "since"), BLOB_ELEMENTS.items())
def test_elements_that_a_version_knows(element: str, since: str) -> None:
    assert re.search(f"<{element}( /)?>", blob(full(), since))
    if element != "Tags":  # Nothing makes them for a version that does not know the word of `include`.
        assert not re.search(f"<{element}( /)?>", blob(full(), day_before(since)))


@pytest.mark.parametrize(("element", "since"), SNAPSHOT_ELEMENTS.items())
def test_elements_that_a_snapshot_has_later(element: str, since: str) -> None:
    assert f"<{element}>" in blob(full("2019-06-17T23:55:48.8621956Z"), since)
    assert f"<{element}>" not in blob(full("2019-06-17T23:55:48.8621956Z"), day_before(since))
    assert f"<{element}>" in blob(full(), day_before(since))


def test_an_old_deleted_blob_has_an_empty_lease() -> None:
    deleted = ListedBlob("b", {name: text for name, text in BLOCK.items() if name != "LeaseState"}, is_deleted=True)
    assert "<LeaseStatus /></Properties>" in blob(deleted, "2018-03-28")
    assert "LeaseStatus" not in blob(deleted, "2018-11-09")


def _element(markup: str) -> Element:
    return fromstring(markup)


@example("&", ["a"], NEWEST)
@given(st.just("") | TEXTS, st.lists(TEXTS, max_size=4), st.sampled_from([NEWEST, "2020-12-06", "2012-02-12"]))
def test_prefixes_together_are_those_of_each(beginning: str, ends: list[str], version: str) -> None:
    writer = RowWriter(BlobPage(base=BASE, container="c", sent=[], version=version))
    rows = [writer.row(ListedPrefix(beginning + end)) for end in ends]
    assert writer.prefixes(beginning, list(map(encode_text, ends))) == "".join(rows)
