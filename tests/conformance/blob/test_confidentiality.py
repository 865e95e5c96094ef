"""What a reader may learn: no credentials of others, no tags without their permission, nothing unpublished."""

from collections.abc import Iterator

import pytest
from tests.conformance.answers import Answer
from tests.conformance.sas import account_sas
from tests.conformance.signing import Endpoint, anonymous

from .blobs import Blobs, Container, id_of, new_name
from .resources import Resource

TAGGED = {"x-ms-tags": "class=secret"}
MATCHES, DIFFERS = "\"class\"='secret'", "\"class\"='open'"


@pytest.fixture
def public(blobs: Blobs) -> Iterator[Container]:
    """A container whose blobs are listed without credentials."""
    container = Container(blobs, new_name())
    container.send("PUT", query="restype=container", headers={"x-ms-blob-public-access": "container"}).expect(201)
    yield container
    container.send("DELETE", query="restype=container")


@pytest.fixture
def tagged(public: Container) -> Resource:
    """A public blob with a tag."""
    blob = Resource(public, "tagged")
    blob.put(b"x", TAGGED).expect(201)
    return blob


def sas(endpoint: Endpoint, permissions: str) -> str:
    """An account SAS for blobs and containers."""
    return account_sas(endpoint, {"ss": "b", "srt": "co", "sp": permissions})


def url_of(blob: Resource, query: str) -> str:
    """The URL of a blob with a query string."""
    return f"{blob.container.blobs.client.endpoint.base}{blob.container.name}/{blob.name}?{query}"


def shown(blob: Resource) -> list[bytes]:
    """What readers without credentials see of a copied blob: its head, and a list."""
    head = blob.send("HEAD", signer=anonymous).expect(200)
    page = blob.container.send("GET", query="restype=container&comp=list&include=copy", signer=anonymous).expect(200)
    return [head.required("x-ms-copy-source").encode(), page.body]


def test_the_source_of_a_copy_is_shown_without_its_sas(
    blob: Resource, public: Container, blob_endpoint: Endpoint
) -> None:
    copy = Resource(public, "copy")
    taken = blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    for query in ("", f"&snapshot={taken}"):
        sent = url_of(blob, sas(blob_endpoint, "r") + query)
        for sync in ({}, {"x-ms-requires-sync": "true"}):
            copy.send("PUT", headers={"x-ms-copy-source": sent, **sync}).expect(202)
            plain = url_of(blob, query[1:]).removesuffix("?")
            source, page = shown(copy)
            assert source == plain.encode()
            assert f"<CopySource>{plain}</CopySource>".encode() in page
            assert b"sig=" not in page


def test_a_snapshot_of_a_copy_shows_no_sas(blob: Resource, public: Container, blob_endpoint: Endpoint) -> None:
    copy = Resource(public, "copy")
    copy.send("PUT", headers={"x-ms-copy-source": url_of(blob, sas(blob_endpoint, "r"))}).expect(202)
    taken = copy.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    head = copy.send("HEAD", f"snapshot={taken}", signer=anonymous).expect(200)
    assert head.required("x-ms-copy-source") == url_of(blob, "").removesuffix("?")


def denied(answer: Answer) -> None:
    """Check that a request without credentials is rejected as such."""
    assert answer.code in ((401, "NoAuthenticationInformation"), (404, "ResourceNotFound"))


def test_only_committed_blocks_are_public(public: Container, blob_endpoint: Endpoint) -> None:
    public.put_block("begun", "hidden").expect(201)
    public.put_block("done", "first").expect(201)
    public.put_list("done", ("Latest", "first")).expect(201)
    public.put_block("done", "hidden").expect(201)
    for name in ("begun", "done"):
        for type_ in ("all", "uncommitted"):
            query = f"comp=blocklist&blocklisttype={type_}"
            denied(public.send("GET", name, query, signer=anonymous))
            token = sas(blob_endpoint, "r")
            answer = public.send("GET", name, f"{query}&{token}", signer=anonymous).expect(200)
            assert id_of("hidden").encode() in answer.body
    for query in ("comp=blocklist", "comp=blocklist&blocklisttype=committed"):
        answer = public.send("GET", "done", query, signer=anonymous).expect(200)
        assert id_of("first").encode() in answer.body
        assert id_of("hidden").encode() not in answer.body
        hidden = public.send("GET", "begun", query, signer=anonymous)
        assert hidden.code == public.send("GET", "absent", query, signer=anonymous).code == (404, "BlobNotFound")


@pytest.mark.parametrize("word", ["uncommittedblobs", "deleted", "deletedwithversions"])
def test_lists_of_what_is_not_published(public: Container, blob_endpoint: Endpoint, word: str) -> None:
    public.put_block("begun", "hidden").expect(201)
    query = f"restype=container&comp=list&include=snapshots,{word}"
    denied(public.send("GET", query=query, signer=anonymous))
    public.send("GET", query=f"{query}&{sas(blob_endpoint, 'l')}", signer=anonymous).expect(200)
    assert b"begun" not in public.send("GET", query="restype=container&comp=list", signer=anonymous).body


def test_tags_are_listed_with_the_permission_alone(tagged: Resource, blob_endpoint: Endpoint) -> None:
    list_, query = tagged.container, "restype=container&comp=list"
    denied(list_.send("GET", query=f"{query}&include=tags", signer=anonymous))
    for permissions, sees in (("l", False), ("rl", False), ("lt", True)):
        token = sas(blob_endpoint, permissions)
        plain = list_.send("GET", query=f"{query}&{token}", signer=anonymous).expect(200)
        assert (b"TagCount" in plain.body) is sees, permissions
        answer = list_.send("GET", query=f"{query}&include=metadata,tags&{token}", signer=anonymous)
        if sees:
            assert b"<Value>secret</Value>" in answer.body
        else:
            assert answer.code == (403, "AuthorizationPermissionMismatch")
    assert b"TagCount" not in list_.send("GET", query=query, signer=anonymous).body


def test_the_number_of_tags_is_shown_with_the_permission_alone(tagged: Resource, blob_endpoint: Endpoint) -> None:
    for method in ("GET", "HEAD"):
        assert tagged.send(method).header("x-ms-tag-count") == "1"
        assert tagged.send(method, signer=anonymous).expect(200).header("x-ms-tag-count") is None
        for permissions, count in (("r", None), ("rt", "1")):
            answer = tagged.send(method, sas(blob_endpoint, permissions), signer=anonymous).expect(200)
            assert answer.header("x-ms-tag-count") == count, permissions


@pytest.mark.parametrize(
    ("method", "query", "permissions"),
    [
        ("GET", "", "r"),
        ("HEAD", "", "r"),
        ("GET", "comp=metadata", "r"),
        ("GET", "comp=blocklist", "r"),
        ("PUT", "comp=metadata", "w"),
        ("PUT", "comp=properties", "w"),
        ("PUT", "comp=snapshot", "w"),
        ("PUT", "comp=tier", "w"),
        ("DELETE", "", "d"),
    ],
)
def test_a_condition_on_tags_needs_their_permission(
    tagged: Resource, blob_endpoint: Endpoint, method: str, query: str, permissions: str
) -> None:
    tier = {"x-ms-access-tier": "Cool"} if "tier" in query else {}
    answers = []
    for condition in (MATCHES, DIFFERS):
        headers = {"x-ms-if-tags": condition, **tier}
        both = "&".join(part for part in (query, sas(blob_endpoint, permissions)) if part)
        answers.append(tagged.send(method, both, headers, signer=anonymous))
        if method in ("GET", "HEAD"):
            answers.append(tagged.send(method, query, headers, signer=anonymous))
    assert {answer.status for answer in answers} <= {401, 403, 404}
    assert not any(answer.header("etag") for answer in answers)
    permitted = "&".join(part for part in (query, sas(blob_endpoint, f"{permissions}t")) if part)
    assert tagged.send(method, permitted, {"x-ms-if-tags": MATCHES, **tier}, signer=anonymous).status < 300


def test_tags_of_a_source_need_their_permission(
    tagged: Resource, container: Container, blob_endpoint: Endpoint
) -> None:
    copy = Resource(container, "copy")
    kinds: tuple[dict[str, str], ...] = ({}, {"x-ms-requires-sync": "true"}, {"x-ms-blob-type": "BlockBlob"})
    asked = [{"x-ms-copy-source-tag-option": "COPY"}, {"x-ms-source-if-tags": MATCHES}]
    for kind in kinds:
        for wanted in asked:
            for query, is_permitted in (
                ("", False),
                (sas(blob_endpoint, "r"), False),
                (sas(blob_endpoint, "rt"), True),
            ):
                source = {"x-ms-copy-source": url_of(tagged, query).removesuffix("?")}
                if "x-ms-requires-sync" not in kind and "x-ms-blob-type" not in kind and not query:
                    continue  # A plain copy within the account is opened by the account's key.
                answer = copy.send("PUT", headers={**kind, **wanted, **source}, body=b"" if kind else None)
                assert (answer.status < 300) is is_permitted, (kind, wanted, query)


@pytest.mark.parametrize(
    "target",
    [
        "DELETE /{name}?restype=container",
        "DELETE /{name}?RESTYPE=container",
        "DELETE /{name}?restype=&restype=container",
        "DELETE /{name}?restype=container&comp=",
        "PUT /{name}?restype=container&comp=tier",
        "PUT /{name}?restype=container",
        "PUT /{name}/blob?comp=metadata",
        "DELETE /{name}/blob?comp=lease",
        "GET /{name}/blob",
    ],
)
def test_a_batch_runs_deletions_and_tiers_of_blobs_alone(container: Container, target: str) -> None:
    container.put("blob").expect(201)
    method, _, url = target.format(name=container.name).partition(" ")
    endpoint = container.blobs.client.endpoint
    part = (
        f"--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"{method} {endpoint.prefix}{url} HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
    )
    token = sas(endpoint, "rwdlac")
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    signed = part.replace(" HTTP/1.1", f"{'&' if '?' in url else '?'}{token} HTTP/1.1")
    for body in (part, signed):
        answer = container.blobs.send("POST", "/", "comp=batch", headers=headers, body=f"{body}--b--\r\n")
        assert answer.code == (400, "InvalidInput")
    container.send("GET", query="restype=container").expect(200)
    container.send("HEAD", "blob").expect(200)
