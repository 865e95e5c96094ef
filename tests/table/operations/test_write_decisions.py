"""What a write tells in advance of what it will do, and merges: done in advance, and as text."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lazulite.engine.commit import Commit, ConditionalWrite, Decision, Expect, Precondition, Values
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.steps import finish
from lazulite.table.model.edm import INT32, INT64, STRING
from lazulite.table.model.entity import PROPERTIES_MAX, SURELY_SMALL
from lazulite.table.model.row import (
    Property,
    assemble,
    decode_members,
    decode_row,
    encode_keys,
    encode_properties,
    in_order,
)
from lazulite.table.operations.write_decisions import (
    APPLY_ALL,
    APPLY_ONE,
    MERGE,
    EntityWrite,
    WriteRejectedError,
    apply_all,
    apply_one,
    merge_members,
)
from tests.table.strategies import keys, properties
from tests.table.writes import NOW, STORED, writes


def _fits(expected: Precondition, current: bytes | None) -> bool:
    if expected.expects is (Expect.PRESENT if current is None else Expect.ABSENT):
        return False
    return current is None or expected.timestamp in (None, NOW)


def _expected(commit: Commit[int], current: Values | None) -> Sequence[Precondition | None]:
    assert commit.preconditions is not None
    return commit.preconditions(current)


@given(writes("r"), st.sampled_from([None, STORED]))
def test_what_is_decided_on_an_example_is_decided_on_the_row(write: EntityWrite, current: bytes | None) -> None:
    assume(write.condition is None or write.kind.must_exist)  # An If-Match says what kind of write it is.
    try:
        done = apply_one(replace(write)).decide([current], NOW + 1)
    except ServiceError:
        done = None
    commit = apply_one(write)
    [expected] = _expected(commit, None)
    if expected is None:
        [expected] = _expected(commit, [current])
    if expected is not None and _fits(expected, current):
        assert done == commit.decide([expected.example], NOW + 1)
    else:
        assert done is None


@given(writes("r"), st.sampled_from([None, STORED]))
def test_a_precondition_given_a_row_holds_for_that_row_only(write: EntityWrite, current: bytes | None) -> None:
    [expected] = _expected(apply_one(write), [current])
    assert expected is None or expected[:2] == ((Expect.ABSENT, None) if current is None else (Expect.PRESENT, NOW))


@given(st.tuples(writes("a"), writes("b")), st.lists(st.sampled_from([None, STORED]), min_size=2, max_size=2))
def test_writes_together_state_what_each_does(several: tuple[EntityWrite, ...], current: list[bytes | None]) -> None:
    assume(all(write.condition is None or write.kind.must_exist for write in several))
    commit = apply_all(several)
    expected = [each for each in _expected(commit, None) if each is not None]
    assert (len(expected) < 2) == any(write.precondition() is None for write in several)
    if len(expected) == 2 and all(map(_fits, expected, current)):
        assert commit.decide(current, NOW + 1) == commit.decide([each.example for each in expected], NOW + 1)


@given(writes("r"), st.sampled_from([None, STORED]))
def test_a_conditional_write_does_what_is_decided_on_the_row(write: EntityWrite, current: bytes | None) -> None:
    assume(write.condition is None or write.kind.must_exist)
    done: bytes | ServiceError | None
    try:
        done = replace(write).apply(current, NOW + 1)
    except ServiceError as error:
        done = error
    conditional = write.conditional(None, read=False) or write.conditional(current, read=True)
    if conditional is None:  # The primary is asked: it rejects, or merges in steps.
        assert isinstance(done, ServiceError)
        return
    if _met(conditional, current):
        assert done == (conditional.parts and APPLY_ONE.complete(NOW + 1, conditional.parts))
    else:
        assert isinstance(done, ServiceError)


@given(
    st.tuples(writes("a"), writes("b")),
    st.lists(st.sampled_from([None, STORED]), min_size=2, max_size=2),
    st.booleans(),
)
def test_conditional_writes_of_a_transaction_do_what_is_decided_on_its_rows(
    several: tuple[EntityWrite, ...], current: list[bytes | None], read: bool
) -> None:
    assume(all(write.condition is None or write.kind.must_exist for write in several))
    assert APPLY_ALL.conditional is not None
    conditional = APPLY_ALL.conditional([replace(write) for write in several], current if read else None)
    try:
        decision = apply_all(several).decide(current, NOW + 1)
    except WriteRejectedError:
        assert conditional is None or not all(map(_met, conditional, current))
        return
    assert isinstance(decision, Decision)
    assert (conditional is None) == (not read and any(write.kind.merges for write in several))
    if conditional is not None:
        assert all(map(_met, conditional, current))
        completed = [parts and APPLY_ALL.complete(NOW + 1, parts) for _, parts in conditional]
        assert completed == list(decision.changes.values())


def _met(write: ConditionalWrite, value: bytes | None) -> bool:
    expected = write.expected
    if value is None or expected is None or expected is True:
        return expected is True or (value is None and expected is None)
    return value.startswith(expected)


@given(writes("r"))
def test_a_conditional_merge_holds_for_the_version_of_the_row_that_was_read(write: EntityWrite) -> None:
    merge = replace(write, kind=MERGE, condition=None)
    assert merge.conditional(None, read=False) is None
    conditional = merge.conditional(STORED, read=True)
    if conditional is not None:
        assert STORED.startswith(conditional.expected)  # type: ignore[arg-type]  # of a row that is present
        assert not OTHER.startswith(conditional.expected)  # type: ignore[arg-type]  # likewise


OTHER = assemble(NOW + 1, encode_keys("p", "r"), encode_properties({"A": Property(INT32, "2")}))


def _applied(write: EntityWrite, current: bytes | None) -> bytes | str | None:
    try:
        return write.apply(current, NOW + 2)
    except ServiceError as error:
        return error.code


@given(writes("r"), st.sampled_from([None, STORED]), st.sampled_from([None, STORED, OTHER]))
def test_a_merge_done_in_advance_is_the_merge(write: EntityWrite, before: bytes | None, current: bytes | None) -> None:
    """Whatever the row was then, and is now."""
    done = _applied(write, current)
    finish(write.premerge(before))
    expected = write.precondition()
    if write.premerged is not None and expected is not None and current == before:
        assert _applied(write, expected.example) == done
    assert _applied(write, current) == done


def row_of(some: Mapping[str, Property], partition: str = "p", row: str = "r") -> bytes:
    return assemble(10**17, encode_keys(partition, row), encode_properties(some))


@given(properties, properties, keys, keys)
def test_texts_merge_as_decoded_properties_do(
    stored: dict[str, Property], sent: dict[str, Property], partition: str, row: str
) -> None:
    current = row_of(stored, partition, row)
    merged = merge_members(current, encode_properties(in_order(sent)))
    expected = encode_properties(in_order({**stored, **sent}))
    is_plain = "".join({**stored, **sent}).isascii()
    assert merged == (expected if is_plain else None)


@given(properties)
def test_members_decode_to_the_properties_that_were_encoded(some: dict[str, Property]) -> None:
    assert decode_members(encode_properties(some)) == some == decode_row(row_of(some)).properties


def test_a_type_replaces_a_type() -> None:
    current = row_of({"A": Property(INT64, '"5"'), "b": Property(INT32, "1"), "C": Property(INT64, '"6"')})
    sent = {"A": Property(STRING, '"x"'), "C": Property(INT32, "7")}
    assert merge_members(current, encode_properties(sent)) == ',"A":"x","C":7,"b":1'


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ({"é": Property(INT32, "1")}, {"A": Property(INT32, "1")}),
        ({"A": Property(INT32, "1")}, {"é": Property(INT32, "1")}),
        ({"A": Property(STRING, f'"{"x" * (SURELY_SMALL // 2)}"')}, {"A": Property(INT32, "1")}),
        ({}, {"A": Property(STRING, f'"{"x" * (SURELY_SMALL // 2)}"')}),
        ({f"A{number}": Property(INT32, "1") for number in range(PROPERTIES_MAX)}, {"B": Property(INT32, "1")}),
    ],
)
def test_unusual_merges_take_the_decoded_properties(stored: dict[str, Property], sent: dict[str, Property]) -> None:
    assert merge_members(row_of(stored), encode_properties(sent)) is None
