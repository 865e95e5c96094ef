"""Lists of blobs, and blobs found by their tags. Source: reference §35, §43."""

from collections.abc import Iterator
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import Answer, xml_text
from tests.conformance.sas import account_sas
from tests.conformance.signing import anonymous

from .blobs import Blobs, Container, names_of

SOFT_DELETE = (
    "<StorageServiceProperties><DeleteRetentionPolicy><Enabled>{}</Enabled>{}</DeleteRetentionPolicy>"
    "</StorageServiceProperties>"
)


def page_of(answer: Answer) -> ET.Element:
    """Return the document of a list."""
    return ET.fromstring(xml_text(answer.expect(200).body))


@pytest.fixture
def keeping(blobs: Blobs, container: Container) -> Iterator[Container]:
    """A container of an account that keeps deleted blobs for a day."""
    query = "restype=service&comp=properties"
    blobs.send("PUT", "/", query, body=SOFT_DELETE.format("true", "<Days>1</Days>")).expect(202)
    yield container
    blobs.send("PUT", "/", query, body=SOFT_DELETE.format("false", "")).expect(202)


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


def test_pages_of_prefixes_follow_each_other(container: Container) -> None:
    for name in ("a/1", "a/2", "b", "c/1"):
        container.put(name).expect(201)
    page = container.list("delimiter=/&maxresults=2")
    assert names_of(page) == ["a/", "b"]
    assert (page.findtext("MaxResults"), page.findtext("Delimiter")) == ("2", "/")
    page = container.list(f"delimiter=/&maxresults=2&marker={quote(page.findtext('NextMarker', ''))}")
    assert (names_of(page), page.findtext("NextMarker", "")) == (["c/"], "")


def test_included_words_may_come_several_times(container: Container) -> None:
    container.put("a").expect(201)
    container.put_block("b", "x").expect(201)
    container.send("PUT", "a", "comp=snapshot").expect(201)
    token = account_sas(container.blobs.client.endpoint, {"ss": "b", "srt": "c", "sp": "l"})
    query = f"restype=container&comp=list&include=snapshots&include=uncommittedblobs&{token}"
    assert names_of(page_of(container.send("GET", query=query, signer=anonymous))) == ["a", "a", "b"]


def test_what_a_list_of_containers_shows(blobs: Blobs, container: Container) -> None:
    other = Container(blobs, f"{container.name}-x")
    headers = {"x-ms-meta-colour": "red", "x-ms-blob-public-access": "blob"}
    other.send("PUT", query="restype=container", headers=headers).expect(201)
    query = f"comp=list&prefix={container.name}"
    plain, shown = page_of(blobs.send("GET", "/", query)).iter("Container")
    assert [shown.findtext("Name"), shown.findtext("Properties/PublicAccess")] == [other.name, "blob"]
    assert shown.findtext("Properties/Etag", "").startswith('"0x')
    assert (plain.find("Properties/PublicAccess"), shown.find("Metadata")) == (None, None)
    _, shown = page_of(blobs.send("GET", "/", f"{query}&include=metadata")).iter("Container")
    assert shown.findtext("Metadata/colour") == "red"
    other.send("DELETE", query="restype=container").expect(202)


@pytest.fixture
def system(blobs: Blobs) -> Iterator[list[str]]:
    """The names of containers that the service itself uses, as far as there are such."""
    made = [
        name for name in ("$logs", "$root", "$web") if blobs.send("PUT", f"/{name}", "restype=container").status == 201
    ]
    yield [
        name for name in ("$logs", "$root", "$web") if blobs.send("GET", f"/{name}", "restype=container").status == 200
    ]
    for name in made:
        blobs.send("DELETE", f"/{name}", "restype=container")


def test_containers_of_the_system_are_listed_on_request(blobs: Blobs, system: list[str]) -> None:
    query = "comp=list&prefix=%24"
    assert [each.findtext("Name") for each in page_of(blobs.send("GET", "/", query)).iter("Container")] == ["$web"]
    page = page_of(blobs.send("GET", "/", f"{query}&include=system"))
    assert [each.findtext("Name") for each in page.iter("Container")] == system


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


def test_markers_that_no_page_has(blobs: Blobs, container: Container) -> None:
    account = blobs.client.endpoint.account
    wrong = ("not-a-marker", container.name, "/other/name", f"/{account}/", f"/{account}/a/b", f"/{account}/UPPER")
    for marker in (*wrong, "2!8!AAAAAAAA", f"/{account}"):
        assert blobs.send("GET", "/", f"comp=list&marker={quote(marker)}").code == (400, "OutOfRangeInput"), marker
        answer = container.send("GET", query=f"restype=container&comp=list&marker={quote(marker)}")
        assert answer.code == (400, "InvalidQueryParameterValue"), marker
        answer = blobs.send("GET", "/", f"comp=blobs&where=a%3D'1'&marker={quote(marker)}")
        assert answer.code == (400, "InvalidQueryParameterValue"), marker
    for marker in (container.name, "was-there", "$root", "$web"):
        blobs.send("GET", "/", f"comp=list&marker={quote(f'/{account}/{marker}')}").expect(200)


def test_pages_of_containers_follow_each_other(blobs: Blobs, container: Container) -> None:
    other = f"{container.name}-x"
    blobs.send("PUT", f"/{other}", "restype=container").expect(201)
    query = f"comp=list&maxresults=1&prefix={container.name}"
    page = page_of(blobs.send("GET", "/", query))
    assert [each.findtext("Name") for each in page.iter("Container")] == [container.name]
    page = page_of(blobs.send("GET", "/", f"{query}&marker={quote(page.findtext('NextMarker', ''))}"))
    assert [each.findtext("Name") for each in page.iter("Container")] == [other]
    assert not page.findtext("NextMarker")
    blobs.send("DELETE", f"/{other}", "restype=container").expect(202)


def test_the_number_that_counts_is_echoed(blobs: Blobs, container: Container) -> None:
    for sent, echoed in (("5000", "5000"), ("5001", "5000"), ("999999", "5000"), ("7", "7")):
        pages = [
            container.list(f"maxresults={sent}"),
            page_of(blobs.send("GET", "/", f"comp=list&maxresults={sent}")),
            page_of(blobs.send("GET", "/", f"comp=blobs&where=a%3D'1'&maxresults={sent}")),
        ]
        assert [page.findtext("MaxResults") for page in pages] == [echoed] * 3
    assert container.list().find("MaxResults") is None


@pytest.mark.parametrize("version", ["2015-02-21", "2018-03-28", "2018-11-09", "2021-12-02"])
def test_an_empty_prefix(blobs: Blobs, container: Container, version: str) -> None:
    is_echoed = version >= "2018-11-09"
    for path, query in ((f"/{container.name}", "restype=container&comp=list"), ("/", "comp=list&maxresults=1")):
        page = page_of(blobs.send("GET", path, f"{query}&prefix=", version=version))
        assert (page.find("Prefix") is not None) == is_echoed
        page = page_of(blobs.send("GET", path, f"{query}&prefix=a", version=version))
        assert page.findtext("Prefix") == "a"
        assert page_of(blobs.send("GET", path, query, version=version)).find("Prefix") is None


@pytest.mark.parametrize("version", ["2017-04-17", "2018-03-28", "2018-11-09", "2019-02-02"])
def test_the_tier_of_a_snapshot(container: Container, version: str) -> None:
    container.put("a").expect(201)
    container.send("PUT", "a", "comp=snapshot").expect(201)
    answer = container.send("GET", query="restype=container&comp=list&include=snapshots", version=version)
    snapshot, base = page_of(answer).iter("Blob")
    has_tier = version >= "2018-11-09"
    for name in ("AccessTier", "AccessTierInferred"):
        assert (snapshot.find(f"Properties/{name}") is not None) == has_tier
        assert base.find(f"Properties/{name}") is not None


@pytest.mark.parametrize("version", ["2017-07-29", "2018-03-28", "2018-11-09", "2021-12-02"])
def test_the_lease_of_a_deleted_blob(keeping: Container, version: str) -> None:
    keeping.put("deleted").expect(201)
    keeping.put("kept").expect(201)
    keeping.send("DELETE", "deleted").expect(202)
    answer = keeping.send("GET", query="restype=container&comp=list&include=deleted", version=version)
    deleted, kept = page_of(answer).iter("Blob")
    assert (deleted.findtext("Deleted"), deleted.find("Properties/LeaseState")) == ("true", None)
    assert deleted.findtext("Properties/LeaseStatus") == ("" if version < "2018-11-09" else None)
    assert kept.findtext("Properties/LeaseStatus") == "unlocked"


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
        ("maxresults=x", "InvalidQueryParameterValue"),
        ("marker=x", "InvalidQueryParameterValue"),
        ("include=x", "InvalidQueryParameterValue"),
        ("delimiter=/&include=snapshots", "InvalidQueryParameterValue"),
    ):
        assert container.send("GET", query=f"restype=container&comp=list&{query}").code == (400, code)


@pytest.mark.parametrize("name", ["Year", "year", "MONTH", "Day", "hour", "Minute", "second", "and", "Or", "not"])
def test_names_of_tags_that_need_quotes(container: Container, name: str) -> None:
    container.put("a", x_ms_tags=f"{name}=1&Age=2").expect(201)
    found = "restype=container&comp=blobs&where="
    for where in (f"{name}='1'", f"Age='2' AND {name}='1'"):
        assert container.send("GET", query=found + quote(where)).code == (400, "InvalidQueryParameterValue")
        assert container.send("GET", "a", headers={"x-ms-if-tags": where}).code == (400, "InvalidHeaderValue")
    for where in (f"\"{name}\"='1'", "Age='2'", f"Age='2' AND \"{name}\"='1'"):
        assert b"<Name>a</Name>" in container.send("GET", query=found + quote(where)).expect(200).body
        container.send("GET", "a", headers={"x-ms-if-tags": where}).expect(200)


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
