"""Limits of requests, by their version."""

import pytest
from tests.conformance.access_policies import malformed
from tests.conformance.answers import Answer, xml_text

from .blobs import Container, new_name
from .resources import Resource

MIB = 1024 * 1024
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
BLOCK = "comp=block&blockid=YQ%3D%3D"
SIZES: dict[str, tuple[tuple[str, int], ...]] = {
    "PutBlob": (("2015-12-11", 64), ("2016-05-31", 256), ("2019-07-07", 256), ("2019-12-12", 5000)),
    "PutBlock": (("2015-12-11", 4), ("2016-05-31", 100), ("2019-07-07", 100), ("2019-12-12", 4000)),
    "AppendBlock": (("2015-12-11", 4), ("2021-12-02", 4), ("2022-11-02", 100)),
}
"""The most MiB of a body, by versions."""


def announce(blob: Resource, operation: str, length: int, version: str) -> Answer:
    """Announce a body without sending any of it, on a connection that ends then."""
    query, headers = {"PutBlob": ("", BLOCK_BLOB), "PutBlock": (BLOCK, {}), "AppendBlock": ("comp=appendblock", {})}[
        operation
    ]
    return blob.send("PUT", query, {**headers, "Content-Length": str(length), "Connection": "close"}, version=version)


@pytest.mark.parametrize(
    ("operation", "version", "mib"), [(name, *each) for name, table in SIZES.items() for each in table]
)
def test_the_size_of_a_body(missing: Resource, operation: str, version: str, mib: int) -> None:
    answer = announce(missing, operation, mib * MIB + 1, version)
    assert answer.code == (413, "RequestBodyTooLarge")
    assert f"<MaxLimit>{mib * MIB}</MaxLimit>" in xml_text(answer.body)
    assert answer.rejection.message == "The request body is too large and exceeds the maximum permissible limit."


def test_a_body_of_the_whole_size(missing: Resource) -> None:
    missing.send("PUT", BLOCK, body=bytes(4 * MIB), version="2015-12-11").expect(201)
    missing.send("PUT", headers={"x-ms-blob-type": "AppendBlob"}).expect(201)
    missing.send("PUT", "comp=appendblock", body=bytes(4 * MIB)).expect(201)


def test_a_page_write(missing: Resource) -> None:
    missing.send("PUT", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(8 * MIB)}).expect(201)
    page = {"x-ms-page-write": "update"}
    last = 4 * MIB
    whole = page | {"x-ms-range": f"bytes=0-{last - 1}"}
    missing.send("PUT", "comp=page", whole, body=bytes(last)).expect(201)
    beyond = page | {"x-ms-range": f"bytes=0-{last + 511}", "Content-Length": str(last + 512), "Connection": "close"}
    assert missing.send("PUT", "comp=page", beyond).code == (413, "RequestBodyTooLarge")
    clear = {"x-ms-page-write": "clear", "x-ms-range": f"bytes=0-{8 * MIB - 1}"}
    missing.send("PUT", "comp=page", clear).expect(201)


def test_the_length_of_a_page_blob(missing: Resource) -> None:
    def create(length: str) -> Answer:
        return missing.send("PUT", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": length})

    for length in ("8796093022209", "8796093022720", "511", "-512", "x"):
        assert create(length).code == (400, "InvalidHeaderValue")
    create("8796093022208").expect(201)
    assert missing.facts().header("Content-Length") == "8796093022208"


def test_the_length_of_a_name(shared: Container) -> None:
    longest = new_name()[:10] + "\u00fc" * 1014
    Resource(shared, longest).put(b"x").expect(201)
    assert Resource(shared, longest).send("GET").expect(200).body == b"x"
    assert Resource(shared, longest + "x").put(b"x").status == 400


@pytest.mark.parametrize("name", ["ab", "a" * 64, "Upper", "a--b", "-ab", "ab-", "a_b"])
def test_names_of_containers(container: Container, name: str) -> None:
    answer = Resource(Container(container.blobs, name)).send("PUT")
    assert answer.code in ((400, "InvalidResourceName"), (400, "OutOfRangeInput"))


def test_metadata(blob: Resource) -> None:
    blob.send("PUT", "comp=metadata", {f"x-ms-meta-{name}": "x" * 2000 for name in "abcd"}).expect(200)
    answer = blob.send("PUT", "comp=metadata", {f"x-ms-meta-{name}": "x" * 2048 for name in "abcd"})
    assert answer.code == (400, "MetadataTooLarge")
    assert blob.facts().header("x-ms-meta-a") == "x" * 2000


def tags(count: int, key: str = "k", value: str = "v") -> bytes:
    """A document of tags."""
    each = "".join(f"<Tag><Key>{key}{number}</Key><Value>{value}</Value></Tag>" for number in range(count))
    return f"<Tags><TagSet>{each}</TagSet></Tags>".encode()


@pytest.mark.unverified
def test_tags(blob: Resource) -> None:
    for body in (tags(10), tags(1, "k" * 127), tags(1, value="v" * 256), tags(0)):
        blob.send("PUT", "comp=tags", body=body).expect(204)
    for body in (tags(11), tags(1, "k" * 128), tags(1, value="v" * 257)):
        assert blob.send("PUT", "comp=tags", body=body).status == 400


def test_policies(own: Resource) -> None:
    one = "<SignedIdentifier><Id>{}</Id><AccessPolicy><Permission>r</Permission></AccessPolicy></SignedIdentifier>"

    def put(count: int) -> Answer:
        body = "".join(one.format(number) for number in range(count))
        return own.send("PUT", "comp=acl", body=f"<SignedIdentifiers>{body}</SignedIdentifiers>".encode())

    put(5).expect(200)
    assert put(6).code == (400, "InvalidXmlDocument")


CONTAINER_ACLS = malformed("racwdl")


@pytest.mark.parametrize("text", CONTAINER_ACLS.values(), ids=CONTAINER_ACLS)
def test_invalid_contents_of_an_acl(own: Resource, text: str) -> None:
    assert own.send("PUT", "comp=acl", body=text).code == (400, "InvalidXmlDocument")


def test_the_size_of_a_page(container: Container) -> None:
    container.put("a").expect(201)
    assert container.list("maxresults=5001").findtext("MaxResults") == "5000"
    for text in ("0", "-1"):
        answer = container.send("GET", query=f"restype=container&comp=list&maxresults={text}")
        assert answer.code == (400, "OutOfRangeQueryParameterValue")


def test_the_length_of_a_block_id(missing: Resource) -> None:
    longest = "YWFh" * 21 + "YQ%3D%3D"
    missing.send("PUT", f"comp=block&blockid={longest}", body=b"x").expect(201)
    longer = "YWFh" * 22
    assert missing.send("PUT", f"comp=block&blockid={longer}", body=b"x").status == 400


def test_the_length_of_a_source(missing: Resource) -> None:
    headers = {"x-ms-copy-source": "http://a.example/c/" + "x" * 2048}
    assert missing.send("PUT", headers=headers).status == 400
