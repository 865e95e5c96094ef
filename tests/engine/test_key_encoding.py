import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.engine.contract import KeyRange
from lazulite.engine.key_encoding import (
    META_PREFIX,
    SPACE_MAX,
    decode_key,
    decode_keys,
    decode_text,
    encode_key,
    encode_keys,
    encode_text,
    range_bounds,
    space_end,
    space_prefix,
)
from lazulite.engine.ordinal import ordinal

NEAR_EDGES = "\0\x01\x7f\x80߿ࠀ\ud7ff\ue000￾￿\U00010000\U0010ffffaé"
texts = st.text(st.sampled_from(NEAR_EDGES), max_size=6) | st.text(max_size=20)
keys = st.tuples(texts, texts)


def order(key: tuple[str, str]) -> tuple[bytes, bytes]:
    return ordinal(key[0]), ordinal(key[1])


@given(texts, texts)
def test_text_sorts_by_utf16_code_unit(a: str, b: str) -> None:
    assert (encode_text(a) < encode_text(b)) == (ordinal(a) < ordinal(b))


@given(texts)
def test_text_round_trips(text: str) -> None:
    assert decode_text(encode_text(text)) == text


@given(keys, keys)
def test_keys_sort_by_partition_then_row(a: tuple[str, str], b: tuple[str, str]) -> None:
    assert (encode_key(7, *a) < encode_key(7, *b)) == (order(a) < order(b))


@given(keys, keys)
def test_different_keys_never_meet(a: tuple[str, str], b: tuple[str, str]) -> None:
    assert (encode_key(7, *a) == encode_key(7, *b)) == (a == b)


@given(texts, st.lists(texts))
def test_keys_of_several_rows_are_those_of_each(partition: str, rows: list[str]) -> None:
    assert encode_keys(7, partition, rows) == [encode_key(7, partition, row) for row in rows]


@given(keys)
def test_keys_round_trip(key: tuple[str, str]) -> None:
    assert decode_key(encode_key(0, *key)) == key


@given(
    st.lists(keys, min_size=1, max_size=5), st.sampled_from([0, 5, 237, 255, 0xFF00, 0xFF0000FF, 0xED5ED, SPACE_MAX])
)
@example([("\0", "\0\0\0\0\0\0\x05"), ("", "")], 5)
def test_keys_round_trip_together(found: list[tuple[str, str]], space: int) -> None:
    partitions, rows = decode_keys([encode_key(space, *key) for key in found])
    assert list(zip(partitions, rows, strict=True)) == found


@given(keys, keys, keys)
def test_range_bounds_hold_exactly_the_range(
    key: tuple[str, str], lower: tuple[str, str], upper: tuple[str, str]
) -> None:
    first, end = range_bounds(7, KeyRange(lower, upper))
    assert (first <= encode_key(7, *key) < end) == (order(lower) <= order(key) < order(upper))


@given(keys, st.integers(0, SPACE_MAX))
def test_a_space_lies_between_its_bounds_and_below_the_stores_own_facts(key: tuple[str, str], space: int) -> None:
    encoded = encode_key(space, *key)
    assert space_prefix(space) <= encoded < space_end(space) <= META_PREFIX
    assert range_bounds(space, KeyRange(key, None)) == (encoded, space_end(space))


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\U00010000\ud800"])
def test_a_lone_surrogate_is_rejected(text: str) -> None:
    with pytest.raises(UnicodeEncodeError):
        encode_key(1, text, "")


@pytest.mark.parametrize("space", [-1, SPACE_MAX + 1, 2**64])
def test_an_impossible_space_is_rejected(space: int) -> None:
    with pytest.raises(ValueError, match="a space is a number"):
        encode_key(space, "", "")
