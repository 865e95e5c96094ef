"""Metadata of headers: what is read, rejected, equal and written."""

import pytest

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fields import METADATA_PREFIX, JoinedValue
from lazulite.protocol.metadata import METADATA_BYTES_MAX, is_same_metadata, metadata_headers, read_metadata


def test_metadata_is_in_the_order_of_its_names_and_written_as_read() -> None:
    headers = {"x-ms-meta-b": "2", "x-ms-meta-a": "1", "x-ms-version": "2021-12-02", "x-ms-meta": "?"}
    read = read_metadata(headers)
    assert read == (("a", "1"), ("b", "2"))
    assert metadata_headers(read) == [("x-ms-meta-a", "1"), ("x-ms-meta-b", "2")]


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("", "1", "EmptyMetadataKey"),
        ("1a", "1", "InvalidMetadata"),
        ("a-b", "1", "InvalidMetadata"),
        ("a", "\u00e9", "InvalidMetadata"),
        ("a", JoinedValue("1,2"), "InvalidMetadata"),
        ("a", "x" * METADATA_BYTES_MAX, "MetadataTooLarge"),
    ],
)
def test_other_metadata_is_rejected(name: str, text: str, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        read_metadata({f"{METADATA_PREFIX}{name}": text})
    assert caught.value.code == code


def test_metadata_of_the_greatest_size_is_read() -> None:
    assert read_metadata({f"{METADATA_PREFIX}a": "x" * (METADATA_BYTES_MAX - 1)})


def test_the_case_of_names_makes_no_difference() -> None:
    assert is_same_metadata((("A", "x"),), (("a", "x"),))
    assert not is_same_metadata((("A", "x"),), (("a", "X"),))
