from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.engine.ordinal import ordinal
from lazulite.table.indexes.encoding import (
    ABSENT,
    NOT_A_NUMBER,
    UNITS_MAX,
    encode_value,
    end_of_values,
    entity_of,
    entry_in_partition,
    entry_in_table,
    escape,
    is_exact,
    unescape,
)
from lazulite.table.model import edm
from lazulite.table.query.filter import Comparison, Operator
from tests.table.query.filter.trees import evaluate, values

any_text = st.text(st.characters(exclude_categories=()), max_size=6)
key_text = st.text(st.characters(codec="utf-8"), max_size=6)
long_texts = st.builds(lambda unit, count, end: unit * count + end, any_text, st.integers(0, 90), any_text)
long_bytes = st.builds(lambda byte, count: bytes([byte]) * count, st.integers(0, 255), st.integers(0, 300))
any_value = st.one_of(values, long_texts, long_bytes)


@given(any_text, any_text)
@example("\ud7ff", "\ud800")
@example("\U0001f600", "\uffff")
@example("\0", "\1")
def test_escaped_text_has_the_order_of_its_code_units(one: str, other: str) -> None:
    assert (ordinal(escape(one)) < ordinal(escape(other))) == (ordinal(one) < ordinal(other))
    assert "\0" not in escape(one)
    escape(one).encode()  # It has no surrogates.


@given(key_text)
@example("\0\1\2\U0001f600\ue000\uffff")
def test_escaped_text_is_read_back(text: str) -> None:
    assert unescape(escape(text)) == text


@given(any_value, any_value)
@example(2**53, 2**53 + 1)
@example(float(2**53), 2**53 + 1)
@example(2**63 - 1, float(2**63))
@example(-(2**63), -(2**63) + 1)
@example(0.0, -0.0)
@example("a" * UNITS_MAX, "a" * (UNITS_MAX + 1))
@example("a" * (UNITS_MAX - 1) + "\U0001f600", "a" * (UNITS_MAX - 1) + "\U0001f601")
def test_values_that_a_filter_compares_have_the_order_of_their_encodings(one: edm.Value, other: edm.Value) -> None:
    first, second = ordinal(encode_value(one)), ordinal(encode_value(other))
    if _holds(one, "lt", other):
        assert first < second or (first == second and not is_exact(one))
    if _holds(one, "gt", other):
        assert first > second or (first == second and not is_exact(other))
    if _holds(one, "eq", other):
        assert first == second
    if first == second and is_exact(one) and is_exact(other):
        assert _holds(one, "eq", other) or first == ordinal(NOT_A_NUMBER)


def _holds(one: edm.Value, operator: Operator, other: edm.Value) -> bool:
    if other == "" and isinstance(one, float | edm.DateTime):
        return False  # That order is not one of the encodings.
    return evaluate(Comparison("A", operator, other), {"A": one}) is True


@given(st.lists(any_value, min_size=2, max_size=5))
def test_no_encoding_is_the_beginning_of_another_one(found: list[edm.Value]) -> None:
    encoded = {encode_value(value) for value in found} | {ABSENT}
    assert not any(one.startswith(other) or other.startswith(one) for one, other in combinations(encoded, 2))


@given(st.lists(st.one_of(st.none(), any_value), min_size=1, max_size=2), key_text, key_text)
def test_an_entry_names_its_entity(found: list[edm.Value | None], partition: str, row: str) -> None:
    encoded = "".join(map(encode_value, found))
    assert end_of_values(encoded + row, len(found)) == len(encoded)
    assert entity_of(entry_in_partition(encoded, (partition, row)), len(found), in_table=False) == (partition, row)
    assert entity_of(entry_in_table(encoded, (partition, row)), len(found), in_table=True) == (partition, row)


@given(st.lists(st.tuples(key_text, key_text), min_size=2, max_size=2, unique=True))
@example([("a", "b"), ("a\0", "")])
def test_entries_of_one_value_have_the_order_of_their_entities(keys: list[tuple[str, str]]) -> None:
    one, other = ((ordinal(partition), ordinal(row)) for partition, row in keys)
    first, second = (entry_in_table("s\0", key) for key in keys)
    assert (ordinal(first[1]) < ordinal(second[1])) == (one < other)


@pytest.mark.parametrize("text", ["", "q", "n12", "sabc", "b2", "d1"])
def test_what_is_no_entry_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not an entry"):
        end_of_values(text, 1)
