"""Index tags in a header, and their limits."""

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.tags import TAGS_MAX, check_tags, read_tags, read_tags_header, write_tags
from lazulite.protocol.errors import ServiceError
from tests.blob.model.tag_texts import TAGS


@given(TAGS)
def test_tags_survive_the_header(tags: dict[str, str]) -> None:
    assert read_tags_header(urlencode(tags)) == tags


@given(st.text() | st.lists(st.tuples(st.text(), st.text())).map(urlencode))
def test_any_header_is_read_or_rejected(text: str) -> None:
    try:
        tags = read_tags_header(text)
    except ServiceError as error:
        assert error.status == 400
    else:
        assert check_tags(tags.items()) == tags


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("=v", "EmptyTagName"),
        ("a=1&", "EmptyTagName"),
        ("a=1&a=2", "DuplicateTagNames"),
        ("a=%21", "InvalidTag"),
        ("a=%FF", "InvalidTag"),
        ("a=\xe9", "InvalidTag"),
        ("a!=1", "InvalidTag"),
        ("a=1%0A", "InvalidTag"),
        ("a" * 129 + "=1", "TagsTooLarge"),
        ("a=" + "v" * 257, "TagsTooLarge"),
        ("&".join(f"t{number}=v" for number in range(TAGS_MAX + 1)), "TagsTooLarge"),
    ],
)
def test_wrong_tags_are_rejected(text: str, code: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        read_tags_header(text)
    assert rejected.value.code == code


def test_a_plus_is_a_blank_and_an_empty_value_is_one() -> None:
    assert read_tags_header("") == {}
    assert read_tags_header("a+b=c%2Bd=e&f") == {"a b": "c+d=e", "f": ""}
    assert read_tags_header("a" * 128 + "=" + "v" * 256) == {"a" * 128: "v" * 256}


@given(TAGS)
def test_tags_survive_the_document(tags: dict[str, str]) -> None:
    assert list(read_tags(write_tags(tags)).items()) == list(tags.items())


@given(st.text().map(str.encode) | st.text().map(lambda text: f"<Tags><TagSet>{text}</TagSet></Tags>".encode()))
def test_any_document_is_read_or_rejected(body: bytes) -> None:
    try:
        read_tags(body)
    except ServiceError as error:
        assert error.status == 400


def _tags(inner: str) -> str:
    return f"<Tags><TagSet>{inner}</TagSet></Tags>"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("<Tags/>", "InvalidXmlDocument"),
        ("<TagSet/>", "InvalidXmlDocument"),
        ("<Tags><TagSet/><TagSet/></Tags>", "InvalidXmlDocument"),
        (_tags("<Label/>"), "InvalidXmlDocument"),
        (_tags("<Tag><Key>a</Key></Tag>"), "InvalidXmlDocument"),
        (_tags("<Tag><Key>a</Key><Key>a</Key></Tag>"), "InvalidXmlDocument"),
        (_tags("<Tag><Key><b/></Key><Value/></Tag>"), "InvalidXmlDocument"),
        (_tags("<Tag><Key/><Value/></Tag>"), "EmptyTagName"),
        (_tags("<Tag><Key>a</Key><Value>!</Value></Tag>"), "InvalidTag"),
        (_tags("<Tag><Key>a</Key><Value/></Tag>" * 2), "DuplicateTagNames"),
    ],
)
def test_wrong_documents_are_rejected(body: str, code: str) -> None:
    with pytest.raises(ServiceError) as rejected:
        read_tags(body.encode())
    assert rejected.value.code == code


def test_the_document_to_the_byte() -> None:
    start = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?><Tags>'
    assert write_tags({}) == start + b"<TagSet /></Tags>"
    one = b"<TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"
    assert write_tags({"a": "b"}) == start + one
    assert read_tags(start + b"<TagSet></TagSet></Tags>") == {}
