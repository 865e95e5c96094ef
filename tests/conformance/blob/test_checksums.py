"""Checksums of requests and responses. Source: reference §36.5."""

from .blobs import Container, new_name
from .resources import Resource
from .test_errors import APPEND_BLOB

EIGHT_BYTES = "MDAwMDAwMDA="


def test_an_append_blob_keeps_the_md5_that_it_was_created_with(shared: Container) -> None:
    log = Resource(shared, new_name())
    log.send("PUT", headers=APPEND_BLOB | {"x-ms-blob-content-md5": EIGHT_BYTES}).expect(201)
    log.send("PUT", "comp=appendblock", body=b"x").expect(201)
    log.send("PUT", "comp=appendblock", {"x-ms-blob-content-md5": "AAAA"}, body=b"y").expect(201)
    assert log.send("HEAD").expect(200).header("Content-MD5") == EIGHT_BYTES
