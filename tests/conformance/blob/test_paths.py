"""What the path of a blob names: one blob for all spellings, by every way to name one. Source: reference §32.1."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.conformance.answers import Answer
from tests.conformance.client import Client
from tests.conformance.sas import moment, query_text
from tests.conformance.signing import Endpoint, Signer, Unsigned, anonymous, full_shared_key, signature

from .blobs import Blobs, Container, names_of, new_name

SPELLINGS = {
    "a%5Cb": "a/b",
    "a\\b": "a/b",
    "a%5c%5Cb%5C": "a//b/",
    "a/./b": "a/b",
    "a/%2E/b": "a/b",
    "./a": "a",
    "a/x/../b": "a/b",
    "a/x/%2e%2E/b": "a/b",
    "a/x/.%2E/b": "a/b",
    "a%5Cx%5C..%5Cb": "a/b",
    "a%2Fx%2F..%2Fb": "a/b",
    "a//../b": "a/b",
    "a/b/.": "a/b/",
    "a/b/x/..": "a/b/",
    "note.": "note",
    "note%2E..": "note",
    "a/note.%2e": "a/note",
    "a/...": "a/",
}
"""A spelling of the path of a blob -> the blob's name."""
KEPT = ("a//b", "/a", "a/", ".a", "..a", "a/.b/..c", "a./b", "a.b", "%5Cb", "a%2Eb", "a b+c", "a\u00a0b")
"""Names that are their own path, once they are percent-encoded."""
FORBIDDEN = ("\x01", "\t", "\n", "\x1f", "\x7f", "\x80", "\x81", "\x9f", "\ue000", "\uf8ff")
ALLOWED = (" ", "\xa0", "\ud7ff", "\uf900", "\U0001f600", "\U000f0000")


def send(container: Container, method: str, path: str, query: str = "", **options: object) -> Answer:
    """Send a request to a blob of a container, given its path as it is."""
    return container.blobs.send(method, f"/{container.name}/{path}", query, **options)  # type: ignore[arg-type]  # the same ones


def put(container: Container, path: str, data: bytes = b"x") -> Answer:
    """Put a block blob."""
    return send(container, "PUT", path, body=data, headers={"x-ms-blob-type": "BlockBlob"})


def signed_as(path: str) -> Signer:
    """Return a signer that signs another path than the one that is sent."""

    def sign(endpoint: Endpoint, request: Unsigned) -> str:
        return full_shared_key(endpoint, request._replace(path=path))

    return sign


def blob_sas(endpoint: Endpoint, container: str, name: str = "", permission: str = "racwd") -> str:
    """Return a service SAS for a blob by its name, or for a container."""
    kind, version, expiry = "b" if name else "c", "2018-11-09", moment(60)
    resource = f"/blob/{endpoint.account}/{container}" + (f"/{name}" if name else "")
    lines = [permission, "", expiry, resource, "", "", "", version, kind, "", "", "", "", "", ""]
    fields = {"sv": version, "sr": kind, "sp": permission, "se": expiry}
    return query_text({**fields, "sig": signature(endpoint.key, "\n".join(lines))})


@pytest.mark.parametrize("path", SPELLINGS)
def test_a_spelling_names_its_blob(container: Container, path: str) -> None:
    put(container, path, b"pea").expect(201)
    assert names_of(container.list()) == [SPELLINGS[path]]
    assert send(container, "GET", path).expect(200).body == b"pea"
    assert send(container, "GET", quote(SPELLINGS[path])).expect(200).body == b"pea"
    send(container, "DELETE", path).expect(202)
    assert names_of(container.list()) == []


@pytest.mark.parametrize("name", KEPT)
def test_a_name_that_looks_like_a_spelling_is_kept(container: Container, name: str) -> None:
    put(container, quote(name)).expect(201)
    assert names_of(container.list()) == [name]


@pytest.mark.parametrize("character", FORBIDDEN)
def test_characters_that_no_name_has(container: Container, character: str) -> None:
    for name in (f"a{character}b", character, f"a/{character}"):
        assert put(container, quote(name)).code == (400, "InvalidResourceName"), name
        assert send(container, "GET", quote(name)).status == 400
    assert names_of(container.list()) == []


@pytest.mark.parametrize("character", ALLOWED)
def test_characters_beside_them(container: Container, character: str) -> None:
    put(container, quote(f"a{character}b")).expect(201)
    assert names_of(container.list()) == [f"a{character}b"]


@pytest.mark.parametrize("path", ["{}%5Ca", "{}\\a", "x/../{}/a", "./{}/a", "%2E/{}%5C.%5Ca"])
def test_a_spelling_names_its_container(container: Container, path: str) -> None:
    sent = "/" + path.format(container.name)
    container.blobs.send("PUT", sent, body=b"x", headers={"x-ms-blob-type": "BlockBlob"}).expect(201)
    assert names_of(container.list()) == ["a"]


def test_dots_do_not_leave_the_account(container: Container) -> None:
    put(container, "a").expect(201)
    container.blobs.send("GET", f"/../../{container.name}/a").expect(200)
    container.blobs.send("GET", f"/../other/%2E%2E/%2E%2E/{container.name}/a").expect(200)


def test_a_blob_of_the_root_container_has_no_slash(blobs: Blobs) -> None:
    blobs.send("PUT", "/$root", "restype=container")
    root = Container(blobs, "$root")
    for path in ("dir/blob", "dir%5Cblob", "dir%2Fblob", "dir//"):
        answer = put(root, path)
        assert answer.code == (400, "InvalidUri"), path
        assert answer.rejection.message == "The requested URI does not represent any resource on the server."
    name = new_name()
    put(root, f"dir/../{name}.").expect(201)
    blobs.send("GET", f"/{name}").expect(200)
    blobs.send("DELETE", f"/{name}..").expect(202)


@pytest.mark.parametrize("path", ["a/b", "a%5Cb", "a\\b", "a/./b", "a/x/%2e./b", "a/b."])
def test_a_sas_of_a_blob_is_good_for_each_spelling(container: Container, blob_endpoint: Endpoint, path: str) -> None:
    put(container, "a/b", b"pea").expect(201)
    token = blob_sas(blob_endpoint, container.name, "a/b")
    assert send(container, "GET", path, token, signer=anonymous).expect(200).body == b"pea"


@pytest.mark.parametrize("name", ["a\\b", "a/./b", "a/b.", "a"])
def test_a_sas_of_another_name_is_not(container: Container, blob_endpoint: Endpoint, name: str) -> None:
    put(container, "a/b").expect(201)
    token = blob_sas(blob_endpoint, container.name, name)
    for path in ("a/b", quote(name)):
        answer = send(container, "GET", path, token, signer=anonymous)
        assert answer.status == 403 or (name, path) == ("a", "a"), answer


def test_a_sas_of_a_container_stays_in_it(container: Container, shared: Container, blob_endpoint: Endpoint) -> None:
    name = new_name()
    put(shared, name).expect(201)
    token = blob_sas(blob_endpoint, container.name)
    for path in (f"../{shared.name}/{name}", f"%2E%2E/{shared.name}/{name}", f"..%5C{shared.name}%5C{name}"):
        assert send(container, "GET", path, token, signer=anonymous).code == (403, "AuthenticationFailed")
        assert send(container, "DELETE", path, token, signer=anonymous).status == 403
    shared.send("GET", name).expect(200)


def test_a_public_container_stays_alone(container: Container, shared: Container) -> None:
    container.send("PUT", query="restype=container&comp=acl", headers={"x-ms-blob-public-access": "blob"}).expect(200)
    name = new_name()
    put(shared, name).expect(201)
    put(container, "a/b", b"pea").expect(201)
    assert send(container, "GET", "a%5Cb", signer=anonymous).expect(200).body == b"pea"
    for path in (f"../{shared.name}/{name}", f"%2E%2E%5C{shared.name}/{name}"):
        assert send(container, "GET", path, signer=anonymous).status in {401, 403, 404}


@pytest.mark.parametrize("path", ["a%5Cb", "a\\b", "a/x/%2E%2e/b", "a/./b", "a/b."])
def test_the_path_that_it_names_may_be_signed(container: Container, blob_endpoint: Endpoint, path: str) -> None:
    """Shared Key covers the path as it is sent, or the one that it names."""
    put(container, "a/b").expect(201)
    signer = signed_as(f"{blob_endpoint.prefix}/{container.name}/a/b")
    send(container, "GET", path, signer=signer).expect(200)
    signer = signed_as(f"{blob_endpoint.prefix}/{container.name}/b")
    assert send(container, "GET", path, signer=signer).code == (403, "AuthenticationFailed")


def test_a_name_in_the_query(container: Container, blob_endpoint: Endpoint) -> None:
    """Lazulite's own way to names that no path has. It reads and deletes, and a SAS has to be for that name."""
    put(container, "a/b", b"pea").expect(201)
    query = "lazulite-name=a%2Fb"
    assert container.send("GET", query=query).expect(200).body == b"pea"
    assert container.send("GET", query="lazulite-name=a%5Cb").code == (404, "BlobNotFound")
    headers = {"x-ms-blob-type": "BlockBlob"}
    answer = container.send("PUT", query="lazulite-name=a%5Cb", body=b"x", headers=headers)
    assert answer.code == (400, "InvalidQueryParameterValue")
    token = blob_sas(blob_endpoint, container.name, "b")
    assert container.send("GET", query=f"{query}&{token}", signer=anonymous).code == (403, "AuthenticationFailed")
    token = blob_sas(blob_endpoint, container.name, "a/b")
    container.send("DELETE", query=f"{query}&{token}", signer=anonymous).expect(202)
    assert names_of(container.list()) == []


def source_headers(endpoint: Endpoint, container: Container, path: str) -> dict[str, str]:
    """Return the headers that name a blob as a source, with a SAS for its name."""
    token = blob_sas(endpoint, container.name, SPELLINGS[path])
    return {"x-ms-copy-source": f"{endpoint.scheme}://{endpoint.host}{endpoint.prefix}/{container.name}/{path}?{token}"}


@pytest.mark.parametrize("path", ["a%5Cb", "a/x/../b", "a/x/.%2E/b", "note."])
def test_the_source_of_a_copy(container: Container, blob_endpoint: Endpoint, path: str) -> None:
    put(container, quote(SPELLINGS[path]), b"pea").expect(201)
    source = source_headers(blob_endpoint, container, path)
    container.send("PUT", "copy", headers=source).expect(202)
    container.send("PUT", "sync", headers={**source, "x-ms-requires-sync": "true"}).expect(202)
    container.send("PUT", "put", headers={**source, "x-ms-blob-type": "BlockBlob"}).expect(201)
    container.send("PUT", "block", "comp=block&blockid=eA%3D%3D", headers=source).expect(201)
    for name in ("copy", "sync", "put"):
        assert container.send("GET", name).expect(200).body == b"pea"
    same = {"x-ms-copy-source": source["x-ms-copy-source"].partition("?")[0]}
    container.send("PUT", "own", headers=same).expect(202)


def test_a_source_in_another_container(container: Container, shared: Container, blob_endpoint: Endpoint) -> None:
    """The SAS of one container does not open another one, to which dots lead."""
    name, end = new_name(), blob_endpoint
    put(shared, name).expect(201)
    token = blob_sas(end, container.name)
    url = f"{end.scheme}://{end.host}{end.prefix}/{container.name}/../{shared.name}/{name}?{token}"
    assert container.send("PUT", "copy", headers={"x-ms-copy-source": url}).status == 403


def batch(container: Container, endpoint: Endpoint, *paths: str, query: str) -> Answer:
    """Delete blobs by a batch, each with a SAS of the container."""
    token = blob_sas(endpoint, container.name)
    parts = "".join(
        f"--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"DELETE {endpoint.prefix}/{path}?{token} HTTP/1.1\r\nContent-Length: 0\r\n\r\n\r\n"
        for path in paths
    )
    where = f"/{container.name}" if "restype" in query else "/"
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    return container.blobs.send("POST", where, query, body=f"{parts}--b--\r\n", headers=headers)


@pytest.mark.parametrize("query", ["comp=batch", "restype=container&comp=batch"])
def test_the_parts_of_a_batch(container: Container, shared: Container, blob_endpoint: Endpoint, query: str) -> None:
    for name in ("a/b", "note", "kept"):
        put(container, name).expect(201)
    c, other = container.name, new_name()
    put(shared, other).expect(201)
    answer = batch(container, blob_endpoint, f"{c}/a%5Cb", f"{c}/note.", query=query).expect(202)
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer.body) == [b"202", b"202"]
    assert names_of(container.list()) == ["kept"]
    answer = batch(container, blob_endpoint, f"{c}/../{shared.name}/{other}", query=query)
    if "restype" in query:
        assert answer.code == (400, "InvalidInput")
    else:
        assert re.findall(rb"HTTP/1\.1 (\d+)", answer.expect(202).body) == [b"403"]
    shared.send("GET", other).expect(200)


def test_other_operations_name_the_same(container: Container) -> None:
    put(container, "a/b").expect(201)
    for path in ("a%5Cb", "a/./b"):
        send(container, "PUT", path, "comp=metadata", headers={"x-ms-meta-Colour": path[1:2] + "red"}).expect(200)
        send(container, "PUT", path, "comp=snapshot").expect(201)
        send(container, "PUT", path, "comp=tags", body="<Tags><TagSet></TagSet></Tags>").expect(204)
        send(container, "PUT", path, "comp=tier", headers={"x-ms-access-tier": "Cool"}).expect(200)
        send(container, "GET", path, "comp=blocklist").expect(200)
    assert len(names_of(container.list("include=snapshots"))) == 3


def test_parameters_of_a_list_are_no_paths(container: Container) -> None:
    for name in ("a/b", "a/c", "b"):
        put(container, name).expect(201)
    for query in ("prefix=a%5C", "prefix=a/../a", "prefix=a/b.", "prefix=./a"):
        assert names_of(container.list(query)) == [], query
    assert names_of(container.list("prefix=a/")) == ["a/b", "a/c"]
    assert names_of(container.list("startFrom=a%5Cb")) == ["b"]
    assert names_of(container.list("startFrom=a/c/..")) == ["b"]


@pytest.fixture
def secondary(blob_endpoint: Endpoint) -> Iterator[Blobs]:
    """The blobs of the account at its secondary endpoint."""
    client = Client(blob_endpoint)
    client.endpoint = blob_endpoint.secondary
    yield Blobs(client)
    client.close()


def test_the_secondary(container: Container, secondary: Blobs) -> None:
    put(container, "a/b", b"pea").expect(201)
    for path in ("a%5Cb", "a/x/../b", "a/b."):
        assert secondary.send("GET", f"/{container.name}/{path}").expect(200).body == b"pea"


@pytest.fixture
def hosted(blob_endpoint: Endpoint) -> Iterator[Blobs]:
    """The blobs of the account in host style."""
    host, _, port = blob_endpoint.host.partition(":")
    if not blob_endpoint.is_path_style or host not in {"127.0.0.1", "localhost"}:
        pytest.skip("the endpoint is not on this machine; if it is in host style, every test is about that")
    client = Client(blob_endpoint)
    client.endpoint = blob_endpoint._replace(host=f"{blob_endpoint.account}.blob.localhost:{port}", prefix="")
    yield Blobs(client)
    client.close()


@pytest.mark.parametrize("path", ["a%5Cb", "a/x/../b", "a/b.", "../{}/a/b", "../../{}%5Ca%5Cb"])
def test_host_style(container: Container, hosted: Blobs, blob_endpoint: Endpoint, path: str) -> None:
    put(container, "a/b", b"pea").expect(201)
    sent = f"/{container.name}/{path.format(container.name)}"
    assert hosted.send("GET", sent).expect(200).body == b"pea"
    assert hosted.send("GET", sent, signer=signed_as(f"/{container.name}/a/b")).expect(200).body == b"pea"
    token = blob_sas(blob_endpoint, container.name, "a/b")
    assert hosted.send("GET", sent, token, signer=anonymous).expect(200).body == b"pea"
