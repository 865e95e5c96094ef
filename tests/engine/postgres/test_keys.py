from hypothesis import given
from hypothesis import strategies as st

from lazulite.engine.postgres.keys import (
    INDEX_KEY_BYTES_MAX,
    PREFIX_BYTES,
    after_group,
    encode_text,
    in_group,
    index_key,
    text_index_key,
)
from tests.engine.postgres.odd_keys import odd_texts

keys = odd_texts.map(encode_text)


@given(st.lists(keys, min_size=2, max_size=2, unique=True))
def test_forms_differ_and_keep_the_order_of_keys_outside_a_group(two: list[bytes]) -> None:
    lower, upper = sorted(two)
    assert index_key(lower) != index_key(upper)
    together = in_group(lower) and in_group(upper) and lower[:PREFIX_BYTES] == upper[:PREFIX_BYTES]
    assert together or index_key(lower) < index_key(upper)


@given(st.lists(keys.filter(in_group), min_size=1, max_size=1), keys)
def test_a_group_is_a_range_of_forms(long: list[bytes], other: bytes) -> None:
    key = long[0]
    member = in_group(other) and other[:PREFIX_BYTES] == key[:PREFIX_BYTES]
    assert (key[:PREFIX_BYTES] < index_key(other) < after_group(key)) == member
    assert (other < after_group(key)) == (index_key(other) < after_group(key))


@given(odd_texts)
def test_the_form_of_a_text_is_that_of_its_key(text: str) -> None:
    assert text_index_key(text) == index_key(encode_text(text))


@given(st.text(max_size=1024))
def test_a_form_fits_into_the_index(text: str) -> None:
    assert len(index_key(encode_text(text))) <= INDEX_KEY_BYTES_MAX
    assert 2 * INDEX_KEY_BYTES_MAX + 8 + 8 + 2 * 4 + 8 <= 2704
