"""Reference §32.2: what an old version does not know, or must have.

The rows of `docs/versions.md` say since which version a response has a header, or a list an element. Each is looked for
in that version, and in the one of the day before.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import Answer, xml_text
from tests.conformance.client import Client
from tests.conformance.signing import anonymous
from tests.docs_support import table_rows

from .blobs import Blobs, Container, new_name
from .conftest import REHYDRATING, VERSIONED, _Tested
from .resources import Resource

NEWEST = "2026-10-06"
ROWS = [row for row in table_rows("docs/versions.md") if len(row) == 4 and row[0].startswith("`")]
HEADER = "response header"
Send = Callable[[str], Answer]
"""Sends a request in a version."""

NOT_SHOWN = frozenset(
    {"x-ms-copy-status-description", "CopyStatusDescription", "Deleted", "DeletedTime", "RemainingRetentionDays"}
)
"""Headers and elements that nothing here leads to: failed copies, and soft deletion, which would be for all tests."""


def rows(what: str) -> list[tuple[str, str]]:
    """The names of a kind, each with its first version."""
    return [(name.strip("`"), since) for name, of, since, _ in ROWS if of == what and name.strip("`") not in NOT_SHOWN]


LATER = [(name.strip("`"), of.split()[-1], since) for name, of, since, _ in ROWS if of.startswith(f"{HEADER} of ")]


def before(version: str) -> str:
    """The version of the day before."""
    return (date.fromisoformat(version) - timedelta(days=1)).isoformat()


class Exchange(NamedTuple):
    """A request whose response has headers that not all versions have."""

    operation: str
    send: Send


class Shown(NamedTuple):
    """An account of each kind, with blobs whose responses have everything that there is."""

    exchanges: list[Exchange]
    containers: list[Container]


@pytest.fixture(scope="module")
def shown(_tested: _Tested) -> Iterator[Shown]:
    """Blobs, and requests to them, whose responses have all headers and elements."""
    if not {VERSIONED, REHYDRATING} <= _tested.switched.keys():
        pytest.skip("this endpoint has no accounts with the switches")
    endpoints = (_tested.endpoint, _tested.switched[VERSIONED], _tested.switched[REHYDRATING])
    clients = [Client(endpoint, _tested.clock) for endpoint in endpoints]
    containers = [Container(Blobs(client), new_name()) for client in clients]
    for container in containers:
        container.send("PUT", query="restype=container").expect(201)
    plain, versioned, slow = containers
    exchanges = [*_of_containers(plain), *_of_blobs(plain), *_of_versions(versioned), *_of_pending(slow)]
    yield Shown(exchanges, containers)
    plain.send("PUT", query="restype=container&comp=lease", headers={"x-ms-lease-action": "break"})
    for container in containers:
        container.send("DELETE", query="restype=container")
    for client in clients:
        client.close()


def _of_containers(container: Container) -> Iterator[Exchange]:
    public = {"x-ms-blob-public-access": "blob"}
    container.send("PUT", query="restype=container&comp=acl", headers=public).expect(200)
    Resource(container).lease("acquire", duration=-1).expect(201)
    yield _read("GetContainerProperties", container, query="restype=container")
    yield _read("GetAccountInformation", container, query="restype=account&comp=properties")


def _of_blobs(container: Container) -> Iterator[Exchange]:
    stored = {"x-ms-blob-content-disposition": "inline", "x-ms-meta-a": "1", "x-ms-tags": "a=1"}
    source = Resource(container, "source")
    source.put(b"0123456789", stored).expect(201)
    url = f"{container.blobs.client.endpoint.base}{container.name}/source"
    copy = Resource(container, "copy")
    given = {"x-ms-copy-source": url, "x-ms-access-tier": "Cool", "x-ms-tags": "a=1"}
    copy.send("PUT", headers=given).expect(202)
    copy.lease("acquire", duration=-1).expect(201)
    copy.send("PUT", "comp=snapshot").expect(201)
    inferred = Resource(container, "inferred")
    inferred.put(b"x").expect(201)
    inferred.send("PUT", "comp=snapshot").expect(201)
    Resource(container, "smart").put(b"x", {"x-ms-access-tier": "Smart"}, version="2026-06-06").expect(201)
    log = Resource(container, "log")
    log.send("PUT", headers={"x-ms-blob-type": "AppendBlob"}).expect(201)
    log.send("PUT", "comp=appendblock", body="x").expect(201)
    log.send("PUT", "comp=seal").expect(200)
    for name in ("copy", "inferred", "smart", "log"):
        yield _read("GetBlobProperties", container, name, method="HEAD")
        yield _read("GetBlob", container, name, headers={"x-ms-range": "bytes=0-0"})
    yield Exchange("AppendBlock", lambda version: _append(container, version))
    yield Exchange("DeleteBlob", lambda version: _delete(container, version))
    yield Exchange("PutBlob", lambda version: _put(container, version))


def _of_versions(container: Container) -> Iterator[Exchange]:
    Resource(container, "gone").put(b"x").expect(201)
    Resource(container, "gone").send("DELETE").expect(202)
    Resource(container, "kept").put(b"x").expect(201)
    yield _read("GetBlobProperties", container, "kept", method="HEAD")
    yield Exchange("PutBlob", lambda version: _put(container, version))


def _of_pending(container: Container) -> Iterator[Exchange]:
    blob = Resource(container, "pending")
    blob.put(b"x", {"x-ms-access-tier": "Archive"}).expect(201)
    blob.send("PUT", "comp=tier", {"x-ms-access-tier": "Hot"}).expect(202)
    yield _read("GetBlobProperties", container, "pending", method="HEAD")
    taken = Resource(container, "taken")
    taken.put(b"x").expect(201)
    time = taken.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    for tier in ("Archive", "Hot"):
        taken.send("PUT", f"comp=tier&snapshot={time}", {"x-ms-access-tier": tier})


def _read(
    operation: str,
    container: Container,
    blob: str = "",
    query: str = "",
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    return Exchange(
        operation,
        lambda version: container.send(method, blob, query, headers=headers, version=version),
    )


def _put(container: Container, version: str) -> Answer:
    headers = {"x-ms-blob-type": "BlockBlob"}
    return container.send("PUT", "put", body=b"x", headers=headers, version=version).expect(201)


def _append(container: Container, version: str) -> Answer:
    container.send("PUT", "appended", headers={"x-ms-blob-type": "AppendBlob"}).expect(201)
    return container.send("PUT", "appended", "comp=appendblock", body=b"x", version=version).expect(201)


def _delete(container: Container, version: str) -> Answer:
    container.put("deleted").expect(201)
    return container.send("DELETE", "deleted", version=version).expect(202)


def check(exchanges: list[Exchange], header: str, since: str) -> None:
    """Look for a header of the newest version in its first one, and in the one before."""
    having = [each for each in exchanges if each.send(NEWEST).header(header) is not None]
    assert having, "no response has it"
    for each in having:
        assert each.send(since).header(header) is not None, each.operation
        assert each.send(before(since)).header(header) is None, each.operation


@pytest.mark.parametrize(("header", "since"), rows(HEADER))
def test_response_headers(shown: Shown, header: str, since: str) -> None:
    later = {operation for name, operation, _ in LATER if name == header}
    check([each for each in shown.exchanges if each.operation not in later], header, since)


@pytest.mark.parametrize(("header", "operation", "since"), LATER)
def test_headers_that_an_operation_has_later(shown: Shown, header: str, operation: str, since: str) -> None:
    exchanges = [each for each in shown.exchanges if each.operation == operation]
    check(exchanges, header, since)


def elements(shown: Shown, version: str, *, of_snapshots: bool) -> set[str]:
    """The elements of the listed blobs in a version, or those of the snapshots."""
    known = [word for word, since in rows("word of `include` of blobs") if version >= since]
    words = ",".join(["snapshots", "metadata", *known])
    found: set[str] = set()
    for container in shown.containers:
        query = f"restype=container&comp=list&include={words}"
        page = container.send("GET", query=query, version=version).expect(200)
        for blob in ET.fromstring(xml_text(page.body)).iterfind("Blobs/Blob"):
            if (blob.find("Snapshot") is not None) == of_snapshots:
                found |= {each.tag for each in blob} | {each.tag for each in blob.iterfind("Properties/*")}
    return found


@pytest.mark.parametrize(("element", "since"), rows("element of a blob"))
def test_elements_of_blobs(shown: Shown, element: str, since: str) -> None:
    assert element in elements(shown, since, of_snapshots=False)
    assert element not in elements(shown, before(since), of_snapshots=False)


@pytest.mark.parametrize(("element", "since"), rows("element of a snapshot"))
def test_elements_of_snapshots(shown: Shown, element: str, since: str) -> None:
    assert element in elements(shown, since, of_snapshots=True)
    assert element not in elements(shown, before(since), of_snapshots=True)


@pytest.mark.parametrize(("element", "since"), [row for row in rows("element of a container") if row[0] != "Version"])
def test_elements_of_containers(shown: Shown, element: str, since: str) -> None:
    container = shown.containers[0]

    def listed(version: str) -> set[str]:
        page = container.blobs.send("GET", "/", f"comp=list&prefix={container.name}", version=version).expect(200)
        return {each.tag for each in ET.fromstring(xml_text(page.body)).iterfind("Containers/Container/Properties/*")}

    assert element in listed(since)
    assert element not in listed(before(since))


@pytest.mark.parametrize(("word", "since"), rows("word of `include` of blobs"))
def test_words_of_include(container: Container, word: str, since: str) -> None:
    query = f"restype=container&comp=list&include={word}"
    container.send("GET", query=query, version=since).expect(200)
    assert container.send("GET", query=query, version=before(since)).code == (400, "InvalidQueryParameterValue")


def test_containers_that_are_deleted_are_listed_since_2019_12_12(blobs: Blobs) -> None:
    blobs.send("GET", "/", "comp=list&include=deleted", version="2019-12-12").expect(200)
    old = blobs.send("GET", "/", "comp=list&include=deleted", version="2019-07-07")
    assert old.code == (400, "InvalidQueryParameterValue")


def test_old_lists_have_urls(container: Container) -> None:
    container.put("a b").expect(201)
    query = "restype=container&comp=list"
    assert b"<Url>" not in container.send("GET", query=query, version="2013-08-15").expect(200).body
    page = container.send("GET", query=query, version="2013-08-14").expect(200)
    assert f"{container.name}/{quote('a b')}</Url>".encode() in page.body


def test_an_empty_prefix_is_shown_since_2018_11_09(container: Container) -> None:
    for path, query in ((f"/{container.name}", "restype=container&comp=list"), ("/", "comp=list&maxresults=1")):
        for version, shown in (("2018-11-09", True), ("2018-03-28", False)):
            page = container.blobs.send("GET", path, f"{query}&prefix=", version=version).expect(200)
            assert (b"<Prefix />" in page.body) == shown, (path, version)


def test_etags_are_quoted_since_2011_08_18(blob: Resource) -> None:
    quoted = blob.send("HEAD", version="2011-08-18").etag
    assert re.fullmatch('"0x[0-9A-F]+"', quoted)
    assert blob.send("HEAD", version="2009-09-19").etag == quoted.strip('"')


def test_an_open_range_is_known_since_2011_08_18(blob: Resource) -> None:
    for name in ("Range", "x-ms-range"):
        assert blob.send("GET", headers={name: "bytes=3-"}, version="2011-08-18").expect(206).body == b"3456789"
        assert blob.send("GET", headers={name: "bytes=3-"}, version="2009-09-19").expect(200).body == b"0123456789"
        assert blob.send("GET", headers={name: "bytes=3-4"}, version="2009-09-19").expect(206).body == b"34"


def test_a_star_is_a_condition_of_reads_since_2016_05_31(blob: Resource) -> None:
    for version, code in (("2016-05-31", (400, "UnsatisfiableCondition")), ("2015-12-11", (200, ""))):
        answer = blob.send("GET", headers={"If-None-Match": "*"}, version=version)
        assert answer.code == code


def test_a_rejection_has_its_code_as_a_header_since_2017_07_29(missing: Resource) -> None:
    assert missing.send("HEAD", version="2017-07-29").expect(404).header("x-ms-error-code") == "BlobNotFound"
    old = missing.send("GET", version="2017-04-17").expect(404)
    assert (old.header("x-ms-error-code"), old.code) == (None, (404, "BlobNotFound"))


@pytest.fixture(scope="module")
def public(blobs: Blobs) -> Iterator[Container]:
    """A container whose blobs are read without credentials."""
    container = Container(blobs, new_name())
    container.send("PUT", query="restype=container", headers={"x-ms-blob-public-access": "blob"}).expect(201)
    yield container
    container.send("DELETE", query="restype=container")


def test_a_stranger_without_a_version_gets_no_newer_header(public: Container) -> None:
    public.put("a", x_ms_tags="a=1").expect(201)
    answer = public.send("GET", "a", headers={"x-ms-version": None, "Accept": None}, signer=anonymous).expect(200)
    assert answer.header("x-ms-version") == "2009-09-19"
    named = {name.lower() for name, _ in answer.headers} - {"x-ms-client-request-id", "vary", "connection"}
    assert named == {
        *("content-length", "content-type", "content-md5", "last-modified", "etag", "server", "date"),
        *("x-ms-request-id", "x-ms-version", "x-ms-lease-status", "x-ms-blob-type"),
    }


def test_a_stranger_without_a_version_lists_as_in_2009_09_19(blobs: Blobs) -> None:
    container = Container(blobs, new_name())
    container.send("PUT", query="restype=container", headers={"x-ms-blob-public-access": "container"}).expect(201)
    container.put("a").expect(201)
    unversioned = {"x-ms-version": None, "Accept": None}
    query = "restype=container&comp=list"
    answer = container.send("GET", query=query, headers=unversioned, signer=anonymous).expect(200)
    assert answer.header("x-ms-version") == "2009-09-19"
    (blob,) = ET.fromstring(xml_text(answer.body)).iterfind("Blobs/Blob")
    assert [each.tag for each in blob] == ["Name", "Url", "Properties"]
    assert [each.tag for each in blob.iterfind("Properties/*")] == [
        *("Last-Modified", "Etag", "Content-Length", "Content-Type", "Content-Encoding", "Content-Language"),
        *("Content-MD5", "Cache-Control", "BlobType", "LeaseStatus"),
    ]
    container.send("DELETE", query="restype=container").expect(202)
    gone = container.send("GET", query=query, headers=unversioned, signer=anonymous).expect(404)
    assert (gone.header("x-ms-error-code"), gone.header("x-ms-version")) == (None, None)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_stranger_without_a_version_gets_a_bare_404(public: Container, shared: Container, method: str) -> None:
    for container, name in ((public, "missing"), (shared, "private"), (shared, "")):
        answer = container.send(method, name, headers={"x-ms-version": None, "Accept": None}, signer=anonymous)
        answer.expect(404)
        assert (answer.header("x-ms-error-code"), answer.header("x-ms-version")) == (None, None), name


@pytest.mark.parametrize(
    ("method", "query", "since"),
    [
        ("PUT", "comp=tier", "2017-04-17"),
        ("PUT", "comp=undelete", "2017-07-29"),
        ("GET", "restype=account&comp=properties", "2018-03-28"),
        ("PUT", "comp=seal", "2019-12-12"),
        ("GET", "comp=tags", "2019-12-12"),
    ],
)
def test_operations_came_with_versions(missing: Resource, method: str, query: str, since: str) -> None:
    headers = {"x-ms-access-tier": "Hot"} if "tier" in query else {}
    assert missing.send(method, query, headers, version=since).status in (200, 404)
    assert missing.send(method, query, headers, version=before(since)).code == (400, "InvalidQueryParameterValue")


def test_operations_on_accounts_and_containers_came_with_versions(blobs: Blobs, container: Container) -> None:
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    for version, code in (("2018-11-09", "InvalidInput"), ("2018-03-28", "InvalidQueryParameterValue")):
        assert blobs.send("POST", "/", "comp=batch", headers=headers, body="--b--", version=version).code == (400, code)
    deleted = {"x-ms-deleted-container-name": "gone", "x-ms-deleted-container-version": "01D6EFFE3CFFC228"}
    query = "restype=container&comp=undelete"
    assert container.send("PUT", query=query, headers=deleted, version="2019-12-12").status in (404, 409)
    old = container.send("PUT", query=query, headers=deleted, version="2019-07-07")
    assert old.code == (400, "InvalidQueryParameterValue")


def test_batches_of_a_container_came_with_2020_04_08(container: Container) -> None:
    def submit(version: str) -> Answer:
        headers = {"Content-Type": "multipart/mixed; boundary=b"}
        query = "restype=container&comp=batch"
        return container.send("POST", query=query, headers=headers, body="--b--", version=version)

    assert submit("2020-02-10").code == (400, "InvalidQueryParameterValue")
    assert submit("2020-04-08").code == (400, "InvalidInput")


def test_a_batch_without_a_boundary_has_one_rejected_part(blob: Resource) -> None:
    body = f"--b\r\nContent-Type: application/http\r\n\r\nDELETE /{blob.name} HTTP/1.1\r\n\r\n\r\n--b--\r\n"
    blobs = blob.container.blobs
    answer = blobs.send("POST", "/", "comp=batch", headers={"Content-Type": "multipart/mixed"}, body=body).expect(202)
    assert answer.required("Content-Type").startswith("multipart/mixed; boundary=batchresponse_")
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer.body) == [b"400"]
    assert b"x-ms-error-code: InvalidHeaderValue" in answer.body
    blob.facts()


def test_the_blob_service_sends_no_cache_control_of_its_own(shared: Container, blob: Resource) -> None:
    for query in (
        "restype=container&comp=acl",
        "restype=container&comp=list",
        "restype=container&comp=blobs&where=a%3D'1'",
    ):
        assert shared.send("GET", query=query).expect(200).header("Cache-Control") is None, query
    for query in ("comp=list", "restype=service&comp=properties", "comp=blobs&where=a%3D'1'"):
        assert shared.blobs.send("GET", "/", query).expect(200).header("Cache-Control") is None, query
    assert blob.send("GET", "comp=tags").expect(200).header("Cache-Control") is None


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_append_and_page_blobs_have_no_tier(shared: Container, method: str) -> None:
    shared.send("PUT", "appended", headers={"x-ms-blob-type": "AppendBlob"}).expect(201)
    page = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "0"}
    shared.send("PUT", "paged", headers=page).expect(201)
    for name in ("appended", "paged"):
        for version in ("2019-02-02", NEWEST):
            answer = shared.send(method, name, version=version).expect(200)
            assert [header for header, _ in answer.headers if header.lower().startswith("x-ms-access-tier")] == []


def test_the_smart_tier(blob: Resource) -> None:
    blob.send("PUT", "comp=tier", {"x-ms-access-tier": "Smart"}, version="2026-06-06").expect(200)
    answer = blob.send("HEAD", version="2026-06-06").expect(200)
    assert (answer.header("x-ms-access-tier"), answer.header("x-ms-smart-access-tier")) == ("Smart", "Hot")


def test_writes_have_a_tier_since_2018_11_09(missing: Resource) -> None:
    for version, tier in (("2018-11-09", "Cool"), ("2018-03-28", "Hot")):
        missing.put(b"x", {"x-ms-access-tier": "Cool"}, version=version).expect(201)
        assert missing.facts().header("x-ms-access-tier") == tier


def test_the_304_of_page_ranges_has_a_type(shared: Container) -> None:
    page = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}
    etag = shared.send("PUT", "pages", headers=page).expect(201).etag
    answer = shared.send("GET", "pages", "comp=pagelist", headers={"If-None-Match": etag}).expect(304)
    assert (answer.header("Content-Type"), answer.body) == ("application/xml", b"")
    read = shared.send("GET", "pages", headers={"If-None-Match": etag}).expect(304)
    assert read.header("Content-Type") is None
