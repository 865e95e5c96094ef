"""Copies of blobs: what a copy has of its source. Source: reference §41."""

import pytest

from .blobs import Container, new_name
from .resources import Resource
from .test_errors import APPEND_BLOB, url_of


@pytest.mark.parametrize(
    ("is_sealed", "header", "seals"),
    [
        (True, None, True),
        (True, "false", False),
        (True, "true", True),
        (False, None, False),
        (False, "false", False),
        (False, "true", True),
    ],
)
def test_a_copy_is_sealed_as_the_request_says_or_else_as_its_source(
    shared: Container, is_sealed: bool, header: str | None, seals: bool
) -> None:
    source, copy = Resource(shared, new_name()), Resource(shared, new_name())
    source.send("PUT", headers=APPEND_BLOB).expect(201)
    if is_sealed:
        source.send("PUT", "comp=seal").expect(200)
    copy.send("PUT", headers={"x-ms-copy-source": url_of(source), "x-ms-seal-blob": header}).expect(202)
    assert copy.send("HEAD").expect(200).header("x-ms-blob-sealed") == ("true" if seals else None)
    assert copy.send("PUT", "comp=appendblock", body=b"x").status == (409 if seals else 201)
    assert source.send("HEAD").header("x-ms-blob-sealed") == ("true" if is_sealed else None)


def test_a_block_blob_is_not_sealed(blob: Resource, missing: Resource) -> None:
    headers = {"x-ms-copy-source": url_of(blob), "x-ms-seal-blob": "true"}
    assert missing.send("PUT", headers=headers).code == (400, "InvalidHeaderValue")
    missing.send("PUT", headers=headers | {"x-ms-seal-blob": "false"}).expect(202)
