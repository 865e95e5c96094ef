"""Index tags in a header, and their limits."""

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.model.tags import TAGS_MAX, check_tags, read_tags_header
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
